#include "collector/facts/device_search.h"

#include <algorithm>

namespace ranktap::collector {

int64_t LongestWork(const Trace& trace) {
  constexpr int64_t kMost = int64_t{1} << 61;  // times of a damaged file are added to it
  int64_t longest = 0;
  for (const StreamWork& stream : WorkOfStreams(trace)) {
    longest = std::max(longest, stream.longest_ns);
  }
  return std::min(longest, kMost);
}

size_t FirstAfter(const DeviceSpans& spans, int64_t time, size_t near) {
  const auto is_after = [&](size_t i) { return spans[i].start > time; };
  size_t low = std::min(near, spans.size()), high = low;  // low - 1 is not after it, high is
  for (size_t step = 1; low > 0 && is_after(low - 1); step *= 2) {
    high = low - 1;
    low -= std::min(low, step);
  }
  for (size_t step = 1; high < spans.size() && !is_after(high); step *= 2) {
    low = high + 1;
    high += std::min(spans.size() - high, step);
  }
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (is_after(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace ranktap::collector
