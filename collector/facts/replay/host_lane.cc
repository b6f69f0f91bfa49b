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

// Steps, phases, waits and the launches of each stream come in order: a few runs to merge.
void HostLane::SortCuts() {
  const auto less = [](const Cut& a, const Cut& b) {
    return std::tuple(a.begin, a.waits, a.end, a.number) <
           std::tuple(b.begin, b.waits, b.end, b.number);
  };
  std::vector<std::ptrdiff_t> runs = {0};  // where each begins; then the end
  for (size_t i = 1; i < cuts_.size(); ++i) {
    if (less(cuts_[i], cuts_[i - 1])) runs.push_back(static_cast<std::ptrdiff_t>(i));
  }
  runs.push_back(static_cast<std::ptrdiff_t>(cuts_.size()));
  while (runs.size() > 2) {
    std::vector<std::ptrdiff_t> merged;
    for (size_t i = 0; i + 1 < runs.size(); i += 2) {
      merged.push_back(runs[i]);
      if (i + 2 == runs.size()) break;
      const auto begin = cuts_.begin();
      std::inplace_merge(begin + runs[i], begin + runs[i + 1], begin + runs[i + 2], less);
    }
    merged.push_back(runs.back());
    runs = std::move(merged);
  }
}

void HostLane::Build(int64_t first, int64_t last, GraphBuilder* builder) {
  SortCuts();
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
