#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// How much GPU time a thread had launched up to a moment: a range's share is a difference. Quick
// where moments come nearly in order. Not safe from several threads.
class LaunchedWork {
 public:
  explicit LaunchedWork(const Trace& trace)
      : calls_(trace.api_calls), slots_(trace.writers.size(), kNone) {
    if (Fill(trace, &narrow_)) return;
    narrow_ = {};
    Fill(trace, &wide_);
  }

  int64_t Between(uint16_t writer, int64_t start, int64_t end) const {
    if (writer >= slots_.size() || slots_[writer] == kNone) return 0;
    const size_t first = FirstFrom(start, last_), after = FirstFrom(end, first);
    last_ = first;
    return Before(writer, after) - Before(writer, first);
  }

 private:
  // False: a sum does not fit, and all of it is to be done again.
  template <typename Ns>
  bool Fill(const Trace& trace, std::vector<Ns>* launched) {
    launched->assign(calls_.size(), 0);
    for (const DeviceWork* const work : {static_cast<const DeviceWork*>(&trace.kernels),
                                         static_cast<const DeviceWork*>(&trace.copies),
                                         static_cast<const DeviceWork*>(&trace.memsets),
                                         static_cast<const DeviceWork*>(&trace.graph_launches)}) {
      if (!Add(*work, launched->data())) return false;
    }
    if (block_ == 0) NumberWriters(*launched);
    return AddUp(launched->data());
  }
  template <typename Ns>
  static bool Put(int64_t ns, Ns* to) {
    *to = static_cast<Ns>(ns);
    return static_cast<int64_t>(*to) == ns;
  }
  template <typename Ns>
  bool Add(const DeviceWork& work, Ns* launched) {
    bool fits = true;
    for (size_t i = 0; i < work.size(); ++i) {
      if (work.launch[i] == kNone) continue;
      Ns& of = launched[work.launch[i]];
      fits &= Put(static_cast<int64_t>(of) + work.end[i] - work.start[i], &of);
    }
    return fits;
  }
  template <typename Ns>
  void NumberWriters(const std::vector<Ns>& launched) {
    uint16_t last = UINT16_MAX;
    for (size_t i = 0; i < launched.size(); ++i) {
      const uint16_t writer = calls_.writer[i];
      if (writer == last || writer >= slots_.size() || launched[i] == 0) continue;
      if (slots_[writer] == kNone) slots_[writer] = writers_++;
      last = writer;
    }
    block_ = std::max<size_t>(64, size_t{8} * writers_);
  }
  template <typename Ns>
  bool AddUp(Ns* launched) {
    std::vector<int64_t> so_far(writers_);  // before the block, and in it
    std::vector<int64_t> in_block(writers_);
    before_.clear();
    before_.reserve((calls_.size() / block_ + 1) * writers_);
    bool fits = true;
    for (size_t i = 0; i <= calls_.size(); ++i) {
      if (i % block_ == 0) {
        for (size_t slot = 0; slot < writers_; ++slot)
          so_far[slot] += std::exchange(in_block[slot], 0);
        before_.insert(before_.end(), so_far.begin(), so_far.end());
      }
      if (i == calls_.size()) break;
      const uint16_t writer = calls_.writer[i];
      if (writer >= slots_.size() || slots_[writer] == kNone) continue;
      int64_t& sum = in_block[slots_[writer]];
      sum += static_cast<int64_t>(launched[i]);
      fits &= Put(sum, &launched[i]);
    }
    return fits;
  }
  // The first call that begins at `time` or later, looked for from call `near` on.
  size_t FirstFrom(int64_t time, size_t near) const {
    const TimeColumn& starts = calls_.start;
    size_t low = near, high = near, step = 1;
    if (near < starts.size() && starts[near] < time) {
      for (; high < starts.size() && starts[high] < time; high += step, step *= 2) low = high;
      high = std::min(high, starts.size());
    } else {
      for (; low > 0 && starts[low - 1] >= time; low -= std::min(low, step), step *= 2) high = low;
    }
    return static_cast<size_t>(std::lower_bound(starts.begin() + low, starts.begin() + high, time) -
                               starts.begin());
  }
  // What the writer had launched before this call.
  int64_t Before(uint16_t writer, size_t call) const {
    const size_t begin = call / block_ * block_;
    const int64_t before = before_[call / block_ * writers_ + slots_[writer]];
    for (size_t i = call; i > begin; --i) {
      if (calls_.writer[i - 1] != writer) continue;
      return before + (narrow_.empty() ? wide_[i - 1] : int64_t{narrow_[i - 1]});
    }
    return before;
  }

  const ApiCalls& calls_;
  std::vector<uint32_t> slots_;  // by writer; kNone: it launched nothing
  uint32_t writers_ = 0;         // that launched
  // By call: what its writer had launched up to and with it since the block began. One of both.
  std::vector<uint32_t> narrow_;
  std::vector<int64_t> wide_;
  size_t block_ = 0;             // calls
  std::vector<int64_t> before_;  // by block and slot: what was launched before the block
  mutable size_t last_ = 0;
};

}  // namespace ranktap::collector
