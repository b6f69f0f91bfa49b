#include "collector/facts/replay/host_lane.h"

#include <algorithm>
#include <tuple>

namespace ranktap::collector {

uint32_t HostLane::Add(int64_t begin, int64_t end, bool waits) {
  const auto number = static_cast<uint32_t>(cuts_.size());
  cuts_.push_back({begin, std::max(begin, end), waits, number});
  return number;
}
uint32_t HostLane::AddPoint(int64_t time) { return Add(time, time, false); }
uint32_t HostLane::AddWait(int64_t begin, int64_t end) { return Add(begin, end, true); }

void HostLane::Build(int64_t first, int64_t last, GraphBuilder* builder) {
  std::ranges::sort(cuts_, {}, [](const Cut& cut) {
    return std::tuple(cut.begin, cut.waits, cut.end, cut.number);
  });
  before_.resize(cuts_.size());
  after_.resize(cuts_.size());
  int64_t at = first;
  uint32_t node = kNone;
  const auto add = [&](int64_t start, int64_t end) {
    const uint32_t before = node;
    node = builder->AddNode(NodeKind::kHost, trace_, writer_, start, end - start);
    nodes_.push_back(node);
    builder->AddEdge(before, node, EdgeKind::kThread);
  };
  for (const Cut& cut : cuts_) {
    // What begins within a wait before it begins as that ends.
    const int64_t begin = std::max(cut.begin, at), end = std::max(cut.end, begin);
    if (begin > at || node == kNone) add(at, begin);
    at = begin;
    before_[cut.number] = node;
    if (cut.waits) {
      add(end, end);
      at = end;
    }
    after_[cut.number] = node;
  }
  if (last > at || node == kNone) add(at, std::max(at, last));
}

}  // namespace ranktap::collector
