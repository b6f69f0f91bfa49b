// Names that columns had in the release before this one; the next one drops them.
#pragma once

#include <span>
#include <string_view>

#include "collector/report/table.h"

namespace ranktap::collector {

struct FormerName {
  std::string_view report, former, now;
};

std::span<const FormerName> FormerColumnNames();

// --columns, --sort and --where then take the former names of the table's columns too.
void AcceptFormerNames(Table* table);

}  // namespace ranktap::collector
