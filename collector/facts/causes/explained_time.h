// Moments of a host with the first of several causes that holds. A part of waterfall.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/facts/numbers/interval_set.h"

namespace ranktap::collector {

class Explained {
 public:
  // A cause that comes later gets what those before it left.
  void Add(Cause cause, const std::vector<Interval>& set) {
    for (const Interval& piece : Difference(set, taken_)) pieces_.push_back({piece, cause});
    taken_.insert(taken_.end(), set.begin(), set.end());
    taken_ = Merged(std::move(taken_));
  }
  struct Piece {
    Interval interval;
    Cause cause{};
  };
  // By start.
  std::vector<Piece> Take() {
    std::sort(pieces_.begin(), pieces_.end(),
              [](const Piece& a, const Piece& b) { return a.interval < b.interval; });
    return std::move(pieces_);
  }

 private:
  std::vector<Piece> pieces_;
  std::vector<Interval> taken_;
};

// Calls visit(start, end, cause) for [start, end), piece by piece; `otherwise` where no piece is.
class PieceCursor {
 public:
  explicit PieceCursor(std::vector<Explained::Piece> pieces) : pieces_(std::move(pieces)) {}
  template <typename Visit>
  void Split(int64_t start, int64_t end, Cause otherwise, Visit&& visit) {
    while (start < end) {
      while (at_ < pieces_.size() && pieces_[at_].interval.second <= start) ++at_;
      const bool none = at_ == pieces_.size();
      const bool holds = !none && pieces_[at_].interval.first <= start;
      const int64_t change = none    ? end
                             : holds ? pieces_[at_].interval.second
                                     : pieces_[at_].interval.first;
      const int64_t until = std::min(end, change);
      visit(start, until, holds ? pieces_[at_].cause : otherwise);
      start = until;
    }
  }

 private:
  std::vector<Explained::Piece> pieces_;
  size_t at_ = 0;
};

}  // namespace ranktap::collector
