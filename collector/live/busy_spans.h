// How long anything was going on, of spans that come nearly in order. Bounded: what lies before the
// last 32 to 64 gaps counts as covered. Thread-compatible.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ranktap::collector {

class BusySpans {
 public:
  // Adds [begin, end) as far as no earlier span has covered it.
  void Add(int64_t begin, int64_t end) {
    if (end <= begin || end <= forgotten_) return;
    if (begin < forgotten_) begin = forgotten_;
    // Nearly all lie behind, or go on with the last one.
    if (count_ == 0 || begin > spans_[count_ - 1].end) {
      if (count_ == kMost) MakeRoom();
      spans_[count_++] = {begin, end};
      total_ += end - begin;
      return;
    }
    Span& last = spans_[count_ - 1];
    if (begin < last.begin) return Insert(begin, end);
    const int64_t more = std::max<int64_t>(end - last.end, 0);
    total_ += more;
    last.end += more;
  }
  // ns that are covered so far.
  int64_t total() const { return total_; }
  // The end of the last one.
  int64_t end() const { return count_ == 0 ? forgotten_ : spans_[count_ - 1].end; }

 private:
  struct Span {
    int64_t begin = 0, end = 0;
  };
  static constexpr size_t kMost = 64;

  void MakeRoom();
  // One that begins before the last one does: joins all that it touches.
  void Insert(int64_t begin, int64_t end);

  std::array<Span, kMost> spans_;  // disjoint, by time
  size_t count_ = 0;
  int64_t total_ = 0;
  int64_t forgotten_ = INT64_MIN;  // nothing before counts any more
};

}  // namespace ranktap::collector
