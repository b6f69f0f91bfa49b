#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// How much GPU time a thread had launched up to a moment: a range's share is a difference. Quick
// where moments come nearly in order. Not safe from several threads.
class LaunchedWork {
 public:
  explicit LaunchedWork(const Trace& trace)
      : calls_(trace.api_calls), slots_(trace.writers.size(), kNone), launched_(calls_.size()) {
    Add(trace.kernels);
    Add(trace.copies);
    Add(trace.memsets);
    Add(trace.graph_launches);
    NumberWriters();
    AddUp();
  }

  int64_t Between(uint16_t writer, int64_t start, int64_t end) const {
    if (writer >= slots_.size() || slots_[writer] == kNone) return 0;
    const size_t first = FirstFrom(start, last_), after = FirstFrom(end, first);
    last_ = first;
    return Before(writer, after) - Before(writer, first);
  }

 private:
  void Add(const DeviceWork& work) {
    for (size_t i = 0; i < work.size(); ++i) {
      if (work.launch[i] != kNone) launched_[work.launch[i]] += work.end[i] - work.start[i];
    }
  }
  void NumberWriters() {
    uint16_t last = UINT16_MAX;
    for (size_t i = 0; i < launched_.size(); ++i) {
      const uint16_t writer = calls_.writer[i];
      if (writer == last || writer >= slots_.size() || launched_[i] == 0) continue;
      if (slots_[writer] == kNone) slots_[writer] = writers_++;
      last = writer;
    }
    block_ = std::max<size_t>(64, size_t{8} * writers_);
  }
  void AddUp() {
    std::vector<int64_t> so_far(writers_);
    before_.reserve((launched_.size() / block_ + 1) * writers_);
    for (size_t i = 0; i <= launched_.size(); ++i) {
      if (i % block_ == 0) before_.insert(before_.end(), so_far.begin(), so_far.end());
      if (i == launched_.size()) break;
      const uint16_t writer = calls_.writer[i];
      if (writer >= slots_.size() || slots_[writer] == kNone) continue;
      launched_[i] = so_far[slots_[writer]] += launched_[i];
    }
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
    for (size_t i = call; i > begin; --i) {
      if (calls_.writer[i - 1] == writer) return launched_[i - 1];
    }
    return before_[call / block_ * writers_ + slots_[writer]];
  }

  const ApiCalls& calls_;
  std::vector<uint32_t> slots_;  // by writer; kNone: it launched nothing
  uint32_t writers_ = 0;         // that launched
  // By call: what it launched; then what its writer had launched up to and with it.
  std::vector<int64_t> launched_;
  size_t block_ = 0;             // calls
  std::vector<int64_t> before_;  // by block and slot: what was launched before the block
  mutable size_t last_ = 0;
};

}  // namespace ranktap::collector
