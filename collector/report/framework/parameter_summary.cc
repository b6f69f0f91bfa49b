
#include <cmath>
#include <sstream>

#include "collector/analysis/framework/model_tree.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

// "475.1 M float32 + 2 k int64", decimal.
std::string Elements(const ByDtype& amounts) {
  std::string text;
  for (const auto& [dtype, amount] : amounts) {
    double value = static_cast<double>(amount.elements);
    const char* unit = "";
    for (const char* larger : {" k", " M", " G", " T"}) {
      if (value < 1000) break;
      value /= 1000;
      unit = larger;
    }
    std::ostringstream number;
    number << std::round(value * 100) / 100;
    text += (text.empty() ? "" : " + ") + number.str() + unit + " " + dtype;
  }
  return text;
}

}  // namespace

Table TabulateParameters(const Run& run, const ReportOptions&) {
  Table table{.name = "parameters",
              .title = "what the modules are made of, one rank",
              .columns = {{"module", Unit::kText},
                          {"class", Unit::kText, Shown::kDetail},
                          {"parameters", Unit::kCount},
                          {"by_dtype", Unit::kText},
                          {"expert_parameters", Unit::kCount},
                          {"parameter_bytes", Unit::kBytes},
                          {"buffer_bytes", Unit::kBytes, Shown::kDetail},
                          {"gradient_bytes", Unit::kBytes},
                          {"state_bytes", Unit::kBytes},
                          {"extra", Unit::kText, Shown::kDetail}}};
  for (const Trace& trace : run.traces) {
    for (const ModelModule& module : DescribeModelWithChildren(trace)) {
      const auto bytes = [&module](Part part) {
        return Sum(module.own[static_cast<size_t>(part)]).bytes;
      };
      const ByDtype& parameters = module.own[static_cast<size_t>(Part::kParameters)];
      table.rows.push_back({module.name, module.type, Sum(parameters).elements,
                            Elements(parameters), module.expert_parameters,
                            bytes(Part::kParameters), bytes(Part::kBuffers),
                            bytes(Part::kGradients), bytes(Part::kStates), module.extra});
    }
    if (!table.rows.empty()) break;
  }
  if (table.rows.empty()) {
    table.notes.push_back(
        "no model was described; PyTorch's hooks do it after the first step, at --level full");
  }
  return table;
}

}  // namespace ranktap::collector
