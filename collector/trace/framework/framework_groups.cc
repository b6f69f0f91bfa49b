#include "collector/trace/framework/framework_groups.h"

#include <nlohmann/json.hpp>

#include "collector/file/json.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

using Json = nlohmann::json;

constexpr proto::RowFields kGroup = proto::kGroupsRow;

std::string Text(const Json& row, std::string_view key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

void TakeFrameworkGroups(Trace* trace) {
  for (const std::string_view line : MarkedLines(*trace, kCommDomain, proto::kGroupsMark)) {
    const Json row = ParseJson(line);
    if (!row.is_object()) continue;
    ProcessGroup group{.name = Text(row, kGroup.Key("name")),
                       .description = Text(row, kGroup.Key("description")),
                       .backend = Text(row, kGroup.Key("backend")),
                       .size = 0,
                       .ranks = {}};
    const auto size = row.find(kGroup.Key("size")), ranks = row.find(kGroup.Key("ranks"));
    if (size != row.end() && size->is_number_unsigned()) group.size = size->get<uint32_t>();
    if (ranks != row.end() && ranks->is_array()) {
      for (const Json& rank : *ranks) {
        if (rank.is_number_unsigned()) group.ranks.push_back(rank.get<uint32_t>());
      }
    }
    trace->process_groups.push_back(std::move(group));
  }
}

}  // namespace ranktap::collector
