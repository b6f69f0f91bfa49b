#include "collector/trace/graph_launch_ids.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace ranktap::collector {
namespace {

// 0: not a capture by CUPTI.
uint32_t CuptiVersion(const Trace& trace) {
  uint32_t version = 0;
  for (const v1::Library& library : trace.hello.libraries()) {
    const std::string& text = library.version();
    if (library.name() == "cupti") {
      (void)std::from_chars(text.data(), text.data() + text.size(), version);
    }
  }
  return version;
}

}  // namespace

// As graph_ids_wrong_in_later_sessions of the agent's cupti_features.h, whose note tells the user.
int64_t GraphIdsWrongFrom(const Trace& trace) {
  constexpr uint32_t kFirstWrong = 130000, kFirstRight = 130101;
  int64_t from = std::numeric_limits<int64_t>::max();
  const uint32_t version = CuptiVersion(trace);
  if (version < kFirstWrong || version >= kFirstRight) return from;
  for (const Gap& gap : trace.gaps) {
    if (gap.source == "cupti" && !gap.open) from = std::min(from, gap.end);
  }
  return from;
}

}  // namespace ranktap::collector
