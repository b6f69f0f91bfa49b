#include "collector/analysis/parameter_summary.h"

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"

namespace ranktap::collector {
namespace {

using Json = nlohmann::json;

struct Amount {
  int64_t elements = 0, bytes = 0;
};

constexpr std::array<const char*, 4> kKinds = {"parameters", "buffers", "gradients", "states"};

struct ModuleParts {
  std::string name, type, extra;
  std::array<std::map<std::string, Amount>, 4> parts;  // by dtype

  void Add(const ModuleParts& other) {
    for (size_t kind = 0; kind < parts.size(); ++kind) {
      for (const auto& [dtype, amount] : other.parts[kind]) {
        parts[kind][dtype].elements += amount.elements;
        parts[kind][dtype].bytes += amount.bytes;
      }
    }
  }
  Amount Sum(size_t kind) const {
    Amount sum;
    for (const auto& [dtype, amount] : parts[kind]) {
      sum.elements += amount.elements;
      sum.bytes += amount.bytes;
    }
    return sum;
  }
};

ModuleParts ParseModule(const Json& row) {
  ModuleParts module{.name = row.value("module", ""),
                     .type = row.value("class", ""),
                     .extra = row.value("extra", "")};
  for (size_t kind = 0; kind < kKinds.size(); ++kind) {
    const auto found = row.find(kKinds[kind]);
    if (found == row.end() || !found->is_object()) continue;
    for (const auto& [dtype, amount] : found->items()) {
      if (!amount.is_array() || amount.size() != 2 || !amount[0].is_number_integer() ||
          !amount[1].is_number_integer()) {
        continue;
      }
      module.parts[kind][dtype] = {amount[0].get<int64_t>(), amount[1].get<int64_t>()};
    }
  }
  return module;
}

// Modules in the program's order, each with everything below it.
std::vector<ModuleParts> FindModules(const Trace& trace) {
  std::vector<ModuleParts> modules;
  for (const std::string_view line : MarkedLines(trace, kModuleDomain, "tree")) {
    const Json row = Json::parse(line, nullptr, false);
    if (row.is_object()) modules.push_back(ParseModule(row));
  }
  std::map<std::string, size_t> by_name;
  for (size_t i = 0; i < modules.size(); ++i) by_name[modules[i].name] = i;
  const std::vector<ModuleParts> own = modules;
  for (const ModuleParts& module : own) {
    std::string above = module.name;
    for (size_t dot = above.rfind('.'); dot != std::string::npos; dot = above.rfind('.')) {
      above.resize(dot);
      if (const auto found = by_name.find(above); found != by_name.end()) {
        modules[found->second].Add(module);
      }
    }
  }
  return modules;
}

// "475.1 M float32 + 2 k int64", decimal.
std::string ByDtype(const std::map<std::string, Amount>& amounts) {
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

Table TabulateParameters(const Run& run) {
  Table table{.name = "parameters",
              .title = "what the modules are made of, one rank",
              .columns = {{"module", Unit::kText},
                          {"class", Unit::kText},
                          {"parameters", Unit::kCount},
                          {"by_dtype", Unit::kText},
                          {"parameter_bytes", Unit::kBytes},
                          {"buffer_bytes", Unit::kBytes},
                          {"gradient_bytes", Unit::kBytes},
                          {"state_bytes", Unit::kBytes},
                          {"extra", Unit::kText, true}}};
  for (const Trace& trace : run.traces) {
    for (const ModuleParts& module : FindModules(trace)) {
      table.rows.push_back({module.name, module.type, module.Sum(0).elements,
                            ByDtype(module.parts[0]), module.Sum(0).bytes, module.Sum(1).bytes,
                            module.Sum(2).bytes, module.Sum(3).bytes, module.extra});
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
