// The part of a step that a host was in at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/facts/causes/explained_time.h"
#include "collector/facts/causes/host_places.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

class HostPhases {
 public:
  explicit HostPhases(const Trace& trace);

  // visit(cause, gap, start, end) for each piece of [start, end): the cause of a pass or a pause,
  // else nullopt and between which passes it lies (PassGaps::At).
  template <typename Visit>
  void Split(int64_t start, int64_t end, Visit&& visit) const;

 private:
  PassGaps gaps_;
  std::vector<Explained::Piece> pieces_;
};

template <typename Visit>
void HostPhases::Split(int64_t start, int64_t end, Visit&& visit) const {
  auto at = std::ranges::upper_bound(
      pieces_, start, {}, [](const Explained::Piece& piece) { return piece.interval.second; });
  for (; start < end; ++at) {
    const bool none = at == pieces_.end() || at->interval.first >= end;
    const int64_t begin = none ? end : std::max(start, at->interval.first);
    if (begin > start) visit(std::optional<Cause>(), gaps_.At(start), start, begin);
    if (none) return;
    start = std::min(end, at->interval.second);
    visit(std::optional<Cause>(at->cause), std::string_view(), begin, start);
  }
}

}  // namespace ranktap::collector
