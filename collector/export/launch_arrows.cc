#include "collector/export/launch_arrows.h"

#include <algorithm>

namespace ranktap::collector {

std::array<const DeviceWork*, LaunchArrows::kTables> LaunchArrows::Tables(const Trace& trace) {
  return {&trace.kernels, &trace.copies, &trace.memsets, &trace.graph_launches};
}

LaunchArrows::LaunchArrows(const Trace& trace, const ExportOptions& kept, uint64_t first)
    : first_(first), last_of_call_(trace.api_calls.size(), kNone) {
  const auto tables = Tables(trace);
  const ApiCalls& calls = trace.api_calls;
  uint32_t arrows = 0;
  for (size_t t = 0; t < kTables; ++t) {
    const DeviceWork& work = *tables[t];
    arrows_[t].assign(work.size(), kNone);
    for (size_t i = 0; i < work.size(); ++i) {
      const uint32_t call = work.launch[i];
      if (call == kNone || work.start[i] == kUntimed || !kept.Keeps(work.start[i], work.end[i]) ||
          !kept.Keeps(calls.start[call], calls.end[call])) {
        continue;
      }
      const uint32_t arrow = arrows++;
      if (last_of_call_[call] != kNone) {
        previous_.resize(arrow + 1, kNone);
        previous_[arrow] = last_of_call_[call];
      }
      arrows_[t][i] = last_of_call_[call] = arrow;
    }
  }
}

std::span<const uint64_t> LaunchArrows::AllFrom(uint32_t last) {
  from_.clear();
  for (uint32_t arrow = last; arrow != kNone;
       arrow = arrow < previous_.size() ? previous_[arrow] : kNone) {
    from_.push_back(first_ + arrow);
  }
  return from_;
}

}  // namespace ranktap::collector
