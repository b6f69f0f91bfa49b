#include "collector/import/kineto/kineto_arrows.h"

#include "collector/import/json_scan.h"

namespace ranktap::collector {

bool KinetoArrows::Add(const KinetoEvent& event) {
  uint64_t id = 0;
  if (!event.has_ts || !ParseUnsigned(event.id, &id)) return false;
  const bool is_backward = event.category == "fwdbwd" || event.name == "fwdbwd";
  const FlowKind kind = is_backward ? FlowKind::kForwardBackward : FlowKind::kOther;
  Arrow& arrow = arrows_[{static_cast<uint8_t>(kind), id}];
  if (event.phase == 's') {
    arrow.start = event.ts_ns;
    arrow.writer = threads_->WriterOf(event);
    arrow.has_start = true;
  } else {
    arrow.end = event.ts_ns;
    arrow.to_writer = threads_->WriterOf(event);
    arrow.has_end = true;
  }
  return true;
}

size_t KinetoArrows::AddTo(Trace* trace) const {
  Flows& flows = trace->flows;
  size_t halves = 0;
  for (const auto& [key, arrow] : arrows_) {
    if (!arrow.has_start || !arrow.has_end) {
      ++halves;
      continue;
    }
    flows.start.push_back(arrow.start);
    flows.end.push_back(arrow.end);
    flows.from_writer.push_back(arrow.writer);
    flows.to_writer.push_back(arrow.to_writer);
    flows.id.push_back(key.second);
    flows.kind.push_back(key.first);
    ++trace->events;
  }
  return halves;
}

}  // namespace ranktap::collector
