#include "collector/live/busy_spans.h"

#include <algorithm>

namespace ranktap::collector {

// Half at once: moving one each time would cost as much as all of them.
void BusySpans::MakeRoom() {
  constexpr size_t kDropped = kMost / 2;
  forgotten_ = spans_[kDropped - 1].end;
  std::copy(spans_.begin() + kDropped, spans_.end(), spans_.begin());
  count_ -= kDropped;
}

void BusySpans::Insert(int64_t begin, int64_t end) {
  if (count_ == kMost) {
    MakeRoom();
    if (end <= forgotten_) return;
    begin = std::max(begin, forgotten_);
  }
  size_t first = count_;
  while (first > 0 && spans_[first - 1].end >= begin) --first;
  size_t past = first;
  int64_t known = 0;
  int64_t joined_begin = begin, joined_end = end;
  for (; past < count_ && spans_[past].begin <= end; ++past) {
    known += spans_[past].end - spans_[past].begin;
    joined_begin = std::min(joined_begin, spans_[past].begin);
    joined_end = std::max(joined_end, spans_[past].end);
  }
  total_ += joined_end - joined_begin - known;
  if (past == first) {
    std::copy_backward(spans_.begin() + static_cast<ptrdiff_t>(first),
                       spans_.begin() + static_cast<ptrdiff_t>(count_),
                       spans_.begin() + static_cast<ptrdiff_t>(count_) + 1);
    ++count_;
    spans_[first] = {joined_begin, joined_end};
    return;
  }
  spans_[first] = {joined_begin, joined_end};
  std::copy(spans_.begin() + static_cast<ptrdiff_t>(past),
            spans_.begin() + static_cast<ptrdiff_t>(count_),
            spans_.begin() + static_cast<ptrdiff_t>(first) + 1);
  count_ -= past - first - 1;
}

}  // namespace ranktap::collector
