#include "collector/facts/activity_counters.h"

#include <algorithm>
#include <map>
#include <utility>

#include "collector/facts/device_timeline.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kUsageWindows = 200;
constexpr size_t kMostPoints = 4000, kLongCurve = 2000;

using Point = ActivityCounter::Point;
using Changes = std::vector<std::pair<int64_t, int64_t>>;  // time, by how much

std::vector<Point> Shortened(std::vector<Point> points) {
  if (points.size() <= kMostPoints) return points;
  const int64_t first = points.front().time;
  const int64_t length = points.back().time - first + 1;
  std::vector<Point> shorter;
  int64_t last_bucket = -1;
  for (const Point& point : points) {
    const auto bucket = static_cast<int64_t>(static_cast<double>(point.time - first) /
                                             static_cast<double>(length) * kLongCurve);
    if (bucket != last_bucket) {
      shorter.push_back(point);
      last_bucket = bucket;
    } else {
      shorter.back().value = std::max(shorter.back().value, point.value);
    }
  }
  return shorter;
}

// At equal times what is added comes first: a count is never below nothing.
std::vector<Point> Summed(Changes changes) {
  std::ranges::sort(changes, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  std::vector<Point> points;
  int64_t value = 0;
  for (const auto& [time, by] : changes) {
    value += by;
    if (!points.empty() && points.back().time == time) {
      points.back().value = static_cast<double>(value);
    } else {
      points.push_back({time, static_cast<double>(value)});
    }
  }
  return Shortened(std::move(points));
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
  std::map<uint32_t, std::vector<DeviceSpan>> of_device;
  std::map<uint32_t, Changes> pending;
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    of_device[span.device].push_back(span);
    if (span.launch == kNone || trace.api_calls.start[span.launch] > span.start) continue;
    pending[span.device].emplace_back(trace.api_calls.start[span.launch], 1);
    pending[span.device].emplace_back(span.start, -1);
  }
  for (const auto& [device, spans] : of_device) {
    const std::vector<Interval> busy = MergedIntervals(spans);
    if (!busy.empty()) counters->push_back({"gpu_usage_ratio", device, Usage(busy)});
    const auto changes = pending.find(device);
    if (changes != pending.end()) {
      counters->push_back({"pending work", device, Summed(std::move(changes->second))});
    }
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
    of_memory[memory].emplace_back(all.start[i], is_given_out ? 1 : -1);
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
