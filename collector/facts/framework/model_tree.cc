#include "collector/facts/framework/model_tree.h"

#include <algorithm>
#include <cstdlib>

#include "collector/file/json.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

constexpr proto::RowFields kRow = proto::kTreeRow;
constexpr std::array<std::string_view, kParts> kKeys = {kRow.Key("parameters"), kRow.Key("buffers"),
                                                        kRow.Key("gradients"), kRow.Key("states")};

// {"float32": [elements, bytes]}
ByDtype ParseAmounts(const Json& row, std::string_view key) {
  ByDtype amounts;
  const Json& found = row[key];
  if (!found.is_object()) return amounts;
  for (const auto& [dtype, amount] : found.items()) {
    if (!amount.is_array() || amount.size() != 2 || !amount[0].is_number_integer() ||
        !amount[1].is_number_integer()) {
      continue;
    }
    amounts[dtype] = {amount[0].get<int64_t>(), amount[1].get<int64_t>()};
  }
  return amounts;
}

// {"4": elements}: of experts that four ranks share out.
void ParseExperts(const Json& row, ModelModule* module) {
  const Json& found = row[kRow.Key("experts")];
  if (!found.is_object()) return;
  for (const auto& [ranks, elements] : found.items()) {
    if (!elements.is_number_integer()) continue;
    const auto here = elements.get<int64_t>();
    int64_t everywhere = 0;
    if (__builtin_mul_overflow(here, std::strtoll(ranks.c_str(), nullptr, 10), &everywhere)) {
      continue;
    }
    module->expert_parameters += here;
    module->expert_parameters_of_model += everywhere;
  }
}

void Forget(const std::string& name, std::vector<ModelModule>* modules) {
  const auto found =
      std::find_if(modules->begin(), modules->end(),
                   [&name](const ModelModule& module) { return module.name == name; });
  if (found != modules->end()) modules->erase(found);
}

}  // namespace

Amount Sum(const ByDtype& amounts) {
  Amount sum;
  for (const auto& [dtype, amount] : amounts) {
    sum.elements += amount.elements;
    sum.bytes += amount.bytes;
  }
  return sum;
}

std::vector<ModelModule> DescribeModel(const Trace& trace) {
  std::vector<ModelModule> modules;
  for (const std::string_view line : MarkedLines(trace, kModuleDomain, proto::kTreeMark)) {
    const Json row = ParseJson(line);
    if (!row.is_object()) continue;
    ModelModule module{.name = row.TextOf(kRow.Key("module")),
                       .type = row.TextOf(kRow.Key("class")),
                       .extra = row.TextOf(kRow.Key("extra")),
                       .own = {},
                       .parameters = ParseAmounts(row, kRow.Key("all"))};
    for (size_t part = 0; part < kParts; ++part) {
      module.own[part] = ParseAmounts(row, kKeys[part]);
    }
    ParseExperts(row, &module);
    module.expert_tensors_split = row[kRow.Key("expert_tensors_split")] == true;
    if (row[kRow.Key("again")] == true) Forget(module.name, &modules);
    modules.push_back(std::move(module));
  }
  return modules;
}

std::vector<ModelModule> DescribeModelWithChildren(const Trace& trace) {
  const std::vector<ModelModule> own = DescribeModel(trace);
  std::vector<ModelModule> modules = own;
  std::map<std::string, size_t> by_name;
  for (size_t i = 0; i < modules.size(); ++i) by_name[modules[i].name] = i;
  for (const ModelModule& module : own) {
    std::string above = module.name;
    for (size_t dot = above.rfind('.'); dot != std::string::npos; dot = above.rfind('.')) {
      above.resize(dot);
      const auto found = by_name.find(above);
      if (found == by_name.end()) continue;
      for (size_t part = 0; part < kParts; ++part) {
        for (const auto& [dtype, amount] : module.own[part]) {
          Amount& sum = modules[found->second].own[part][dtype];
          sum.elements += amount.elements;
          sum.bytes += amount.bytes;
        }
      }
    }
  }
  return modules;
}

}  // namespace ranktap::collector
