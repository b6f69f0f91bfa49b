#include <fmt/core.h>

#include <cmath>
#include <sstream>

#include "collector/facts/framework/model_tree.h"
#include "collector/report/capture/origin_advice.h"
#include "collector/report/columns.h"
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
    text += fmt::format("{}{}{} {}", text.empty() ? "" : " + ", number.str(), unit, dtype);
  }
  return text;
}

const ByDtype& Of(const ModelModule& module, Part part) {
  return module.own[static_cast<size_t>(part)];
}

const ColumnsOf<ModelModule> kParameterColumns = {
    {"module", Unit::kText, "The module's name in the model.",
     [](const ModelModule& module) { return module.name; }},
    {"class", Unit::kText, "The module's class.",
     [](const ModelModule& module) { return module.type; }, Shown::kDetail},
    {"parameters", Unit::kCount, "The number of parameters.",
     [](const ModelModule& module) { return Sum(Of(module, Part::kParameters)).elements; }},
    {"by_dtype", Unit::kText, "The number of parameters of each dtype.",
     [](const ModelModule& module) { return Elements(Of(module, Part::kParameters)); }},
    {"expert_parameters", Unit::kCount,
     "The number of parameters that belong to experts of a mixture.",
     [](const ModelModule& module) { return module.expert_parameters; }},
    {"parameter_bytes", Unit::kBytes, "The bytes of the parameters.",
     [](const ModelModule& module) { return Sum(Of(module, Part::kParameters)).bytes; }},
    {"buffer_bytes", Unit::kBytes, "The bytes of the buffers.",
     [](const ModelModule& module) { return Sum(Of(module, Part::kBuffers)).bytes; },
     Shown::kDetail},
    {"gradient_bytes", Unit::kBytes, "The bytes of the gradients.",
     [](const ModelModule& module) { return Sum(Of(module, Part::kGradients)).bytes; }},
    {"state_bytes", Unit::kBytes, "The bytes of the optimizer's state.",
     [](const ModelModule& module) { return Sum(Of(module, Part::kStates)).bytes; }},
    {"extra", Unit::kText, "What else the module says of itself (extra_repr).",
     [](const ModelModule& module) { return module.extra; }, Shown::kDetail},
};

// The first rank that told speaks for all.
std::vector<ModelModule> DescribeFirstModel(const Run& run) {
  for (const Trace& trace : run.traces) {
    std::vector<ModelModule> modules = DescribeModelWithChildren(trace);
    if (!modules.empty()) return modules;
  }
  return {};
}

}  // namespace

Table TabulateParameters(const Run& run, const ReportOptions&) {
  Table table =
      TableOf("what the modules are made of, one rank", kParameterColumns, DescribeFirstModel(run));
  if (table.rows.empty()) {
    table.notes.push_back(WhyNoModel(run));
  }
  return table;
}

}  // namespace ranktap::collector
