// `report RUN hang`: what the collector's watch saw while the job hung, before what the calls say.
#pragma once

#include <optional>
#include <string>

#include "collector/report/table.h"

namespace ranktap::collector {

// Puts a row for each hang before the rows of `table`, which is hang's, and its sentence in the
// title. Nothing where the watch saw none.
void AddHangNotes(const std::string& run, Table* table);

// The whole table for a run in which nothing was traced. nullopt: the watch saw no hang.
std::optional<Table> OfHangNotes(const std::string& run);

}  // namespace ranktap::collector
