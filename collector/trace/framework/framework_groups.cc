#include "collector/trace/framework/framework_groups.h"

#include "collector/file/json.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

constexpr proto::RowFields kGroup = proto::kGroupsRow;

}  // namespace

void TakeFrameworkGroups(Trace* trace) {
  for (const std::string_view line : MarkedLines(*trace, kCommDomain, proto::kGroupsMark)) {
    const Json row = ParseJson(line);
    if (!row.is_object()) continue;
    ProcessGroup group{.name = row.TextOf(kGroup.Key("name")),
                       .description = row.TextOf(kGroup.Key("description")),
                       .backend = row.TextOf(kGroup.Key("backend")),
                       .size = 0,
                       .ranks = {}};
    const Json &size = row[kGroup.Key("size")], &ranks = row[kGroup.Key("ranks")];
    if (size.is_number_unsigned()) group.size = size.get<uint32_t>();
    if (ranks.is_array()) {
      for (const Json& rank : ranks) {
        if (rank.is_number_unsigned()) group.ranks.push_back(rank.get<uint32_t>());
      }
    }
    trace->process_groups.push_back(std::move(group));
  }
}

}  // namespace ranktap::collector
