// Commands that reports name, with the run that was opened in place of the word RUN.
#pragma once

#include <string>
#include <vector>

#include "collector/report/table.h"

namespace ranktap::collector {

// In the table's notes, sentences and commands: "ranktap report RUN syncs" becomes "ranktap report
// 'my run' syncs". `inputs`: the paths that were opened.
void NameTheRun(const std::vector<std::string>& inputs, Table* table);

}  // namespace ranktap::collector
