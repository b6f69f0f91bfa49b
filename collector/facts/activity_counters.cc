#include "collector/facts/activity_counters.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "collector/facts/device_timeline.h"

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

  void Add(const Point& point) {
    if (is_long_) return AddToBucket(point);
    points_.push_back(point);
    if (points_.size() <= kMostPoints || length_ == 0) return;
    is_long_ = true;
    for (const Point& earlier : std::exchange(points_, {})) AddToBucket(earlier);
  }
  std::vector<Point> Take() { return std::move(points_); }

 private:
  int64_t BucketOf(int64_t time) const {
    return static_cast<int64_t>(static_cast<double>(time - first_) / static_cast<double>(length_) *
                                kLongCurve);
  }
  void AddToBucket(const Point& point) {
    if (point.time < bucket_end_) {
      points_.back().value = std::max(points_.back().value, point.value);
      return;
    }
    const int64_t bucket = BucketOf(point.time);
    points_.push_back(point);
    // Looked for once a bucket: a division for each point takes longer than all else about it.
    bucket_end_ = first_ + static_cast<int64_t>(static_cast<double>(bucket + 1) / kLongCurve *
                                                static_cast<double>(length_));
    while (bucket_end_ > point.time && BucketOf(bucket_end_ - 1) > bucket) --bucket_end_;
    while (BucketOf(bucket_end_) <= bucket) ++bucket_end_;
  }

  int64_t first_, length_ = 0;  // 0: not known
  bool is_long_ = false;        // false: there are few points, and each is kept
  int64_t bucket_end_ = std::numeric_limits<int64_t>::min();
  std::vector<Point> points_;
};

void Sort(std::vector<int64_t>* times) {
  if (!std::ranges::is_sorted(*times)) std::ranges::sort(*times);
}

// At equal times what is added comes first: a count is never below nothing.
std::vector<Point> Summed(Changes changes) {
  auto& [added, removed] = changes;
  Sort(&added), Sort(&removed);
  if (added.empty() && removed.empty()) return {};
  constexpr int64_t kNever = INT64_MAX;
  const auto first_of = [](const auto& times) { return times.empty() ? kNever : times.front(); };
  const auto last_of = [](const auto& times) { return times.empty() ? INT64_MIN : times.back(); };
  Curve curve(std::min(first_of(added), first_of(removed)),
              std::max(last_of(added), last_of(removed)));
  int64_t value = 0;
  for (size_t a = 0, r = 0; a < added.size() || r < removed.size();) {
    const int64_t time =
        std::min(a < added.size() ? added[a] : kNever, r < removed.size() ? removed[r] : kNever);
    for (; a < added.size() && added[a] == time; ++a) ++value;
    for (; r < removed.size() && removed[r] == time; ++r) --value;
    curve.Add({time, static_cast<double>(value)});
  }
  return curve.Take();
}

std::vector<Point> Usage(const std::vector<Interval>& busy) {
  const int64_t first = busy.front().first, last = busy.back().second;
  const int64_t window = std::max<int64_t>((last - first + kUsageWindows - 1) / kUsageWindows, 1);
  std::vector<Point> points;
  size_t at = 0;
  for (int64_t from = first; from < last; from += window) {
    const int64_t to = std::min(from + window, last);
    int64_t sum = 0;
    while (at < busy.size() && busy[at].second <= from) ++at;
    for (size_t i = at; i < busy.size() && busy[i].first < to; ++i) {
      sum += std::min(busy[i].second, to) - std::max(busy[i].first, from);
    }
    points.push_back({from, static_cast<double>(sum) / static_cast<double>(to - from)});
  }
  points.push_back({last, 0});
  return points;
}

void AddDevices(const Trace& trace, std::vector<ActivityCounter>* counters) {
  struct Device {
    std::vector<Interval> busy;
    Changes pending;
  };
  std::map<uint32_t, Device> devices;
  std::pair<const uint32_t, Device>* last = nullptr;
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    if (last == nullptr || last->first != span.device) {
      last = &*devices.try_emplace(span.device).first;
    }
    Device& device = last->second;
    if (span.end > span.start) {  // by start: as Merged()
      if (!device.busy.empty() && span.start <= device.busy.back().second) {
        device.busy.back().second = std::max(device.busy.back().second, span.end);
      } else {
        device.busy.emplace_back(span.start, span.end);
      }
    }
    if (span.launch == kNone || trace.api_calls.start[span.launch] > span.start) continue;
    device.pending.added.push_back(trace.api_calls.start[span.launch]);
    device.pending.removed.push_back(span.start);
  }
  for (auto& [device, of] : devices) {
    if (!of.busy.empty()) counters->push_back({"gpu_usage_ratio", device, Usage(of.busy)});
    if (of.pending.added.empty()) continue;
    counters->push_back({"pending work", device, Summed(std::move(of.pending))});
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
    counters->push_back({"alive tensors", memory, Summed(std::move(changes))});
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
