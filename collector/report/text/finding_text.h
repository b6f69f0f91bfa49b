// Findings of rules as a person reads them: a paragraph each, and one line for what was not
// checked.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collector/report/table.h"
#include "collector/report/text/cell_text.h"

namespace ranktap::collector {

// A table of rules, with what each found and advises.
bool AreFindings(const Table& table);

// Rule, amount, rank / place / finding / advice / command. Places and commands are never broken.
std::string FormatFinding(const Table& table, size_t row, size_t width, TimeUnit time_unit);

// One note in place of all those that begin with kNotChecked; --verbose lists them.
std::vector<std::string> WithoutUncheckedRules(const std::vector<std::string>& notes);

}  // namespace ranktap::collector
