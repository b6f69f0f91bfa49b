#include "collector/trace/launch_join.h"

#include <algorithm>
#include <vector>

namespace ranktap::collector {
namespace {

// Rows of the API calls by correlation id. Ids of one process count up with few holes, so a plain
// array does for all but hostile or very sparse traces, which get a sorted list.
class CallIndex {
 public:
  explicit CallIndex(const ApiCalls& calls) : calls_(calls) {
    const size_t rows = calls.size();
    if (rows == 0) return;
    const auto [low, high] =
        std::minmax_element(calls.correlation.begin(), calls.correlation.end());
    low_ = *low;
    const uint64_t width = uint64_t{*high} - *low + 1;
    if (width <= rows * 8 + 1024) {
      FillDense(width);
    } else {
      FillSorted();
    }
  }

  uint32_t Find(uint32_t correlation, int64_t start) const {
    if (!dense_.empty()) {
      const uint64_t at = uint64_t{correlation} - low_;
      if (correlation < low_ || at >= dense_.size() || dense_[at] == kNone) return kNone;
      return previous_.empty() ? dense_[at] : LastBefore(dense_[at], start);
    }
    const auto end =
        std::upper_bound(sorted_.begin(), sorted_.end(), std::pair(correlation, kNone));
    uint32_t first = kNone;
    for (auto at = end; at != sorted_.begin() && std::prev(at)->first == correlation; --at) {
      first = std::prev(at)->second;
      if (calls_.start[first] <= start) return first;
    }
    return first;
  }

 private:
  void FillDense(uint64_t width) {
    dense_.assign(width, kNone);
    for (uint32_t row = 0; row < calls_.size(); ++row) {
      uint32_t& slot = dense_[calls_.correlation[row] - low_];
      if (slot != kNone) {
        previous_.resize(calls_.size(), kNone);
        previous_[row] = slot;
      }
      slot = row;
    }
  }
  void FillSorted() {
    sorted_.reserve(calls_.size());
    for (uint32_t row = 0; row < calls_.size(); ++row) {
      sorted_.emplace_back(calls_.correlation[row], row);
    }
    std::sort(sorted_.begin(), sorted_.end());
  }
  uint32_t LastBefore(uint32_t row, int64_t start) const {
    while (calls_.start[row] > start && previous_[row] != kNone) row = previous_[row];
    return row;
  }

  const ApiCalls& calls_;
  uint32_t low_ = 0;
  std::vector<uint32_t> dense_;     // by correlation - low_: the last row
  std::vector<uint32_t> previous_;  // by row: the one before with the same id; empty: all unique
  std::vector<std::pair<uint32_t, uint32_t>> sorted_;
};

void Join(const CallIndex& calls, DeviceWork* work) {
  const size_t rows = work->size();
  work->launch.Truncate(0);
  uint32_t* const launch = work->launch.Grow(rows);
  for (size_t i = 0; i < rows; ++i) {
    // 0 is no correlation: work that a device launched itself.
    launch[i] =
        work->correlation[i] == 0 ? kNone : calls.Find(work->correlation[i], work->start[i]);
  }
}

}  // namespace

void JoinLaunches(Trace* trace) {
  const CallIndex calls(trace->api_calls);
  Join(calls, &trace->kernels);
  Join(calls, &trace->copies);
  Join(calls, &trace->memsets);
  Join(calls, &trace->graph_launches);
}

}  // namespace ranktap::collector
