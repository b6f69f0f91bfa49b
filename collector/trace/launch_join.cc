#include "collector/trace/launch_join.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "collector/trace/at_once.h"
#include "collector/trace/graph_launch_ids.h"
#include "collector/trace/pages_ahead.h"

namespace ranktap::collector {
namespace {

// Work may begin before its call by a device's clock, which is off by microseconds; the next call
// with the same id is 2^32 calls away.
int64_t LatestCallOf(int64_t work_start) {
  constexpr int64_t kMostClockError = 1'000'000;
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();
  return work_start > kLatest - kMostClockError ? kLatest : work_start + kMostClockError;
}

// Rows of ids that count up: the column itself is the index. Neighbours in time are mostly of two
// streams, whose launches are far from each other: what follows either of the last two places is
// looked at first, then ever more around the last.
class CountingIds {
 public:
  explicit CountingIds(const Column<uint32_t>& ids) : ids_(ids.data()), rows_(ids.size()) {}

  uint32_t Find(uint32_t id) {
    if (const size_t row = FindBehind(at_, id); row != rows_) {
      at_ = row + 1;
      return static_cast<uint32_t>(row);
    }
    size_t row = FindBehind(before_, id);
    if (row == rows_) row = Search(id);
    const bool is_there = row < rows_ && ids_[row] == id;
    before_ = std::exchange(at_, row + (is_there ? 1 : 0));
    return is_there ? static_cast<uint32_t>(row) : kNone;
  }

 private:
  // rows_: not there.
  size_t FindBehind(size_t at, uint32_t id) const {
    for (const size_t end = std::min(at + 4, rows_); at < end; ++at) {
      if (ids_[at] == id) return at;
    }
    return rows_;
  }
  // The first that is not before it.
  size_t Search(uint32_t id) const {
    size_t near = 16, from = std::min(at_, rows_), to = from;
    while (from > 0 && ids_[from - 1] >= id) from -= std::min(from, near *= 2);
    while (to < rows_ && ids_[to] < id) to += std::min(rows_ - to, near *= 2);
    return static_cast<size_t>(std::lower_bound(ids_ + from, ids_ + to, id) - ids_);
  }

  const uint32_t* ids_;
  size_t rows_;
  size_t at_ = 0, before_ = 0;
};

// Rows of the API calls by correlation id. Ids of one thread count up with the time. Those of one
// process have few holes, so a plain array does for all others but hostile or very sparse traces,
// which get a sorted list.
class CallIndex {
 public:
  explicit CallIndex(const ApiCalls& calls) : calls_(calls) {
    const size_t rows = calls.size();
    if (rows == 0) return;
    const auto end = calls.correlation.end();
    counts_up_ = std::adjacent_find(calls.correlation.begin(), end, std::greater_equal()) == end;
    if (counts_up_) return;
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

  // Then CountingIds are the index, and Find finds nothing.
  bool counts_up() const { return counts_up_; }
  const Column<uint32_t>& ids() const { return calls_.correlation; }

  uint32_t Find(uint32_t correlation, int64_t work_start) const {
    const int64_t start = LatestCallOf(work_start);
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
  bool counts_up_ = false;
  uint32_t low_ = 0;
  std::vector<uint32_t> dense_;     // by correlation - low_: the last row
  std::vector<uint32_t> previous_;  // by row: the one before with the same id; empty: all unique
  std::vector<std::pair<uint32_t, uint32_t>> sorted_;
};

constexpr size_t kRowsAPage = 4096 / sizeof(uint32_t);
constexpr size_t kRowsAtATime = 1 << 16;  // joined by one thread; a thread takes longer than fewer

// Launches of rows [first, end); `find` takes an id and its row.
template <typename Find>
void JoinRows(const DeviceWork& work, size_t first, size_t end, uint32_t* launch, Find&& find) {
  const uint32_t* const ids = work.correlation.data();
  PagesAhead pages;
  for (size_t i = first; i < end; ++i) {
    if (i % kRowsAPage == 0) {
      pages.Prepare(launch + first, (i - first) * sizeof(*launch), (end - first) * sizeof(*launch));
    }
    // 0 does not name a correlation: work that a device launched itself.
    launch[i] = ids[i] == 0 ? kNone : find(ids[i], i);
  }
}

void Join(const CallIndex& calls, DeviceWork* work) {
  const size_t rows = work->size();
  work->launch.Truncate(0);
  uint32_t* const launch = work->launch.Grow(rows);
  ForEachOnIdle((rows + kRowsAtATime - 1) / kRowsAtATime, [&](size_t part) {
    const size_t first = part * kRowsAtATime, end = std::min(rows, first + kRowsAtATime);
    if (calls.counts_up()) {
      CountingIds ids(calls.ids());
      return JoinRows(*work, first, end, launch, [&](uint32_t id, size_t) { return ids.Find(id); });
    }
    JoinRows(*work, first, end, launch,
             [&](uint32_t id, size_t i) { return calls.Find(id, work->start[i]); });
  });
}

// A call that is not the work's would take its line, range and step with it.
void Unjoin(int64_t graph_ids_wrong_from, bool is_graph, DeviceWork* work) {
  for (size_t i = 0; i < work->size(); ++i) {
    const bool is_later = work->start[i] >= graph_ids_wrong_from || work->start[i] == kUntimed;
    if (is_later && (is_graph || work->graph.At(i) != 0)) work->launch[i] = kNone;
  }
}

}  // namespace

void JoinLaunches(Trace* trace) {
  const CallIndex calls(trace->api_calls);
  Join(calls, &trace->kernels);
  Join(calls, &trace->copies);
  Join(calls, &trace->memsets);
  Join(calls, &trace->graph_launches);
  const int64_t graph_ids_wrong_from = GraphIdsWrongFrom(*trace);
  if (graph_ids_wrong_from == std::numeric_limits<int64_t>::max()) return;
  Unjoin(graph_ids_wrong_from, false, &trace->kernels);
  Unjoin(graph_ids_wrong_from, false, &trace->copies);
  Unjoin(graph_ids_wrong_from, false, &trace->memsets);
  Unjoin(graph_ids_wrong_from, true, &trace->graph_launches);
}

}  // namespace ranktap::collector
