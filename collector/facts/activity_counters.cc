#include "collector/facts/activity_counters.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "collector/trace/table_merge.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kUsageWindows = 200;
constexpr size_t kMostPoints = 4000, kLongCurve = 2000;

using Point = ActivityCounter::Point;
// When something began and when it was over.
struct Changes {
  std::vector<int64_t> added, removed;
};

// Points by time. Where there are many, the largest of each part of the time.
class Curve {
 public:
  // All points are from `first` to `last`.
  Curve(int64_t first, int64_t last) : first_(first) {
    // Damaged times have buckets that an int64 cannot count: each point is kept.
    constexpr int64_t kMost = int64_t{1} << 62;
    if (-kMost < first && first <= last && last < kMost) length_ = last - first + 1;
  }

  [[gnu::always_inline]] void Add(int64_t time, int64_t value) {
    if (time >= bucket_end_) return Begin(time, value);
    most_ = std::max(most_, value);
  }
  std::vector<Point> Take() {
    EndBucket();
    return std::move(points_);
  }

 private:
  void EndBucket() {
    if (!points_.empty()) points_.back().value = static_cast<double>(most_);
  }
  int64_t BucketOf(int64_t time) const {
    return static_cast<int64_t>(static_cast<double>(time - first_) / static_cast<double>(length_) *
                                kLongCurve);
  }
  void Begin(int64_t time, int64_t value) {
    EndBucket();
    most_ = value;
    points_.push_back({time, static_cast<double>(value)});
    if (is_long_) return BeginBucket(time);
    if (points_.size() <= kMostPoints || length_ == 0) return;
    is_long_ = true;
    for (const Point& earlier : std::exchange(points_, {})) {
      Add(earlier.time, static_cast<int64_t>(earlier.value));
    }
  }
  void BeginBucket(int64_t time) {
    const int64_t bucket = BucketOf(time);
    // Looked for once a bucket: a division for each point takes longer than all else about it.
    bucket_end_ = first_ + static_cast<int64_t>(static_cast<double>(bucket + 1) / kLongCurve *
                                                static_cast<double>(length_));
    while (bucket_end_ > time && BucketOf(bucket_end_ - 1) > bucket) --bucket_end_;
    while (BucketOf(bucket_end_) <= bucket) ++bucket_end_;
  }

  int64_t first_, length_ = 0;  // 0: not known
  bool is_long_ = false;        // false: there are few points, and each is kept
  int64_t bucket_end_ = std::numeric_limits<int64_t>::min(), most_ = 0;  // of the last point's
  std::vector<Point> points_;
};

void Sort(std::vector<int64_t>* times) {
  if (!std::ranges::is_sorted(*times)) std::ranges::sort(*times);
}

// At equal times what is added comes first: a count is never below nothing. All times are from
// `first` to `last`. add_until(time, change) calls change(its time, how many) for what was added
// since the last call and until `time`, visit_removed(remove) calls remove(its time) for what was
// removed; both by time.
template <typename AddUntil, typename VisitRemoved>
std::vector<Point> Summed(int64_t first, int64_t last, AddUntil add_until,
                          VisitRemoved visit_removed) {
  int64_t now = first, value = 0;
  Curve curve(first, last);
  const auto change = [&](int64_t time, int64_t by) {
    if (time != now) curve.Add(std::exchange(now, time), value);
    value += by;
  };
  visit_removed([&](int64_t time) {
    add_until(time, change);
    change(time, -1);
  });
  add_until(INT64_MAX, change);
  curve.Add(now, value);
  return curve.Take();
}

// The share of each of 200 equal times that is busy.
class Usage {
 public:
  Usage(int64_t first, int64_t last)
      : last_(last),
        window_(std::max<int64_t>((last - first + kUsageWindows - 1) / kUsageWindows, 1)),
        from_(first),
        to_(std::min(first + window_, last)) {}

  // From `first` to `last`, by start; what touches counts once.
  void Add(int64_t start, int64_t end) {
    start = std::max(start, reached_);
    if (end <= start) return;
    reached_ = end;
    while (start >= to_) EndWindow();
    for (; end > to_; EndWindow()) {
      sum_ += to_ - start;
      start = to_;
    }
    sum_ += end - start;
  }
  std::vector<Point> Take() {
    while (from_ < last_) EndWindow();
    points_.push_back({last_, 0});
    return std::move(points_);
  }

 private:
  void EndWindow() {
    points_.push_back({from_, static_cast<double>(sum_) / static_cast<double>(to_ - from_)});
    sum_ = 0;
    from_ = to_;
    to_ = std::min(from_ + window_, last_);
  }

  int64_t last_, window_, from_, to_;
  int64_t reached_ = std::numeric_limits<int64_t>::min(), sum_ = 0;
  std::vector<Point> points_;
};

void AddDevices(const Trace& trace, std::vector<ActivityCounter>* counters) {
  // As they are: DeviceTimeline() would be made for this alone where a run is exported.
  const DeviceWork* const tables[] = {&trace.kernels, &trace.copies, &trace.memsets,
                                      &trace.graph_launches};
  std::vector<MergedTable> merged;
  for (const DeviceWork* const work : tables) merged.push_back({&work->start, &work->end});
  std::set<uint32_t> devices;
  for (const Lane& lane : trace.lanes) devices.insert(lane.device);
  const TimeColumn& starts = trace.api_calls.start;
  const TimeColumn::View calls = starts.view();
  for (const uint32_t number : devices) {
    const auto is_here = [&trace, number, one = devices.size() == 1](const DeviceWork& work,
                                                                     size_t row) {
      return (one || trace.lanes[work.lane[row]].device == number) && work.start[row] != kUntimed;
    };
    const auto is_launched = [calls](uint32_t call, int64_t start) {
      return call != kNone && calls[call] <= start;
    };
    int64_t first = INT64_MAX, last = INT64_MIN;  // of what is busy
    int64_t last_launched = INT64_MIN;            // when the last piece began
    // Pieces of work by call. Work of several streams does not begin as it was launched: it is
    // counted, not sorted.
    std::vector<uint32_t> launched(starts.size());
    for (const DeviceWork* const work : tables) {
      for (size_t i = 0; i < work->size(); ++i) {
        if (!is_here(*work, i)) continue;
        const int64_t start = work->start[i], end = work->end[i];
        if (end > start) {
          first = std::min(first, start);
          last = std::max(last, end);
        }
        const uint32_t call = work->launch[i];
        if (!is_launched(call, start)) continue;
        ++launched[call];
        last_launched = std::max(last_launched, start);
      }
    }
    Usage usage(std::min(first, last), last);
    const auto visit = [&](auto began) {
      MergeTables(merged, [&](size_t table, size_t row) {
        const DeviceWork& work = *tables[table];
        if (!is_here(work, row)) return;
        const int64_t start = work.start[row];
        usage.Add(start, work.end[row]);
        if (is_launched(work.launch[row], start)) began(start);
      });
    };
    size_t call = 0;
    while (call < starts.size() && launched[call] == 0) ++call;
    const auto add_until = [&, calls](int64_t time, auto change) {
      for (; call < starts.size() && calls[call] <= time; ++call) {
        if (launched[call] != 0) change(calls[call], launched[call]);
      }
    };
    const int64_t first_launch = call < starts.size() ? calls[call] : INT64_MAX;
    std::vector<Point> pending = Summed(first_launch, last_launched, add_until, visit);
    if (first < last) counters->push_back({"gpu_usage_ratio", number, usage.Take()});
    if (last_launched != INT64_MIN)
      counters->push_back({"pending work", number, std::move(pending)});
  }
}

void AddAllocations(const Trace& trace, std::vector<ActivityCounter>* counters) {
  const Allocations& all = trace.allocations;
  std::map<uint32_t, Changes> of_memory;  // by device, kNone: the host's
  std::map<std::pair<uint32_t, uint64_t>, bool> alive;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all.relabelled.At(i) != 0 || all.bytes[i] == 0) continue;
    const bool on_gpu = all.device.At(i) != 0 && all.device_type.At(i) != 0;
    const uint32_t memory = on_gpu ? all.device.At(i) - 1u : kNone;
    bool& is_alive = alive[{memory, all.address.At(i)}];
    const bool is_given_out = all.bytes[i] > 0;
    // Memory that was there before recording began is given back without having been counted.
    if (is_alive == is_given_out) continue;
    is_alive = is_given_out;
    Changes& changes = of_memory[memory];
    (is_given_out ? changes.added : changes.removed).push_back(all.start[i]);
  }
  for (auto& [memory, changes] : of_memory) {
    auto& [added, removed] = changes;
    Sort(&added), Sort(&removed);
    const int64_t first = std::min(added.front(), removed.empty() ? INT64_MAX : removed.front());
    const int64_t last = std::max(added.back(), removed.empty() ? INT64_MIN : removed.back());
    size_t next = 0;
    const auto add_until = [&, &added = added](int64_t time, auto change) {
      for (; next < added.size() && added[next] <= time; ++next) change(added[next], 1);
    };
    const auto visit = [&removed = removed](auto remove) {
      std::ranges::for_each(removed, remove);
    };
    counters->push_back({"alive tensors", memory, Summed(first, last, add_until, visit)});
  }
}

}  // namespace

std::vector<ActivityCounter> ActivityCounters(const Trace& trace) {
  std::vector<ActivityCounter> counters;
  AddDevices(trace, &counters);
  AddAllocations(trace, &counters);
  return counters;
}

}  // namespace ranktap::collector
