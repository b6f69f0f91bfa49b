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

uint32_t HostLane::AddLaunch(int64_t time) {
  if (!launches_.empty() && time < launches_.back()) return kNone;
  launches_.push_back(time);
  return static_cast<uint32_t>(launches_.size() - 1);
}

void HostLane::Forget() {
  cuts_ = {};
  launches_ = Column<int64_t>();
  before_ = {};
  after_ = {};
  launching_ = {};
}

// Steps, phases and waits come in order: a few runs to merge.
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
  launching_.resize(launches_.size());
  first_ = static_cast<uint32_t>(builder->size());
  int64_t at = first;
  const auto add = [&](int64_t start, int64_t end) {
    last_ = builder->AddNode(NodeKind::kHost, trace_, writer_, start, end - start) + 1;
  };
  // What begins within a wait before it begins as that ends.
  const auto come_to = [&](int64_t time) {
    const int64_t begin = std::max(time, at);
    if (begin > at || last_ == 0) add(at, begin);
    at = begin;
    return last_ - 1;
  };
  size_t launch = 0;
  for (const Cut& cut : cuts_) {
    for (; launch < launches_.size() && launches_[launch] <= cut.begin; ++launch) {
      launching_[launch] = come_to(launches_[launch]);
    }
    before_[cut.number] = come_to(cut.begin);
    if (cut.waits) {
      at = std::max(cut.end, at);
      add(at, at);
    }
    after_[cut.number] = last_ - 1;
  }
  for (; launch < launches_.size(); ++launch) launching_[launch] = come_to(launches_[launch]);
  if (last > at || last_ == 0) add(at, std::max(at, last));
  builder->AddSeries({.to = first_, .size = last_ - first_, .kind = EdgeKind::kThread});
}

}  // namespace ranktap::collector
