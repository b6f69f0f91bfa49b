// What a rank's device work came after, and the host calls that waited for it: the edges that the
// critical path, exported graphs and replays share. Work is named by its place in DeviceTimeline().
//
//   host       sync(7) called .......... returned      waits for A; what C ends after is not its
//   own stream 7   A...............B..                     Before(B) is A stream 9 C...... of C: A,
//   where cudaStreamWaitEvent(9, an
//                                                      event of 7) came between their launches
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/facts/device_timeline.h"
#include "collector/facts/stream_numbers.h"
#include "collector/facts/sync_calls.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// A host call that returns when a device has come to some point.
struct DeviceReturn {
  int64_t called = 0, returned = 0;
  uint32_t row = 0;  // of api_calls, or of event_calls
  uint16_t writer = 0;
  bool is_event_call = false;
  bool only_asks = false;   // cudaEventQuery
  uint32_t latest = kNone;  // of the work that it waited for, what ended last
  uint32_t first = 0;       // of that work, in DeviceOrder::awaited()
};

// Which stream a call waited for, as synchronisation records say.
class StreamsOfSyncs {
 public:
  explicit StreamsOfSyncs(const Trace& trace);
  // kNone: for all, or nobody said so.
  uint32_t Of(const DeviceReturn& back) const;

 private:
  const Trace& trace_;
  const std::vector<CallOfRecord>& named_;
  std::unordered_map<uint32_t, uint32_t> by_correlation_;
};

class DeviceOrder {
 public:
  // A call that waited may have returned `clock_ns` before its work ended, by clocks of which one
  // is the device's.
  explicit DeviceOrder(const Trace& trace, int64_t clock_ns = 0);

  // The work before it on its stream; kNone: it is the first.
  uint32_t Before(uint32_t work) const { return before_[work]; }
  // The last of all to end at `time` or before; kNone: none.
  uint32_t LastEnded(int64_t time) const;
  // All of it, by end.
  const std::vector<uint32_t>& by_end() const { return by_end_; }
  // By time of return.
  const std::vector<DeviceReturn>& returns() const { return returns_; }
  // On each stream that the call was for, the last work that was launched before the call and had
  // ended when it returned.
  std::span<const uint32_t> AwaitedBy(const DeviceReturn& back) const;
  // Work, and work of another stream that was recorded in an event it waited for; by the first.
  std::vector<std::pair<uint32_t, uint32_t>> EventWaits() const;

 private:
  int64_t Launched(uint32_t work) const {
    const uint32_t launch = spans_[work].launch;
    return launch == kNone ? INT64_MIN : trace_.api_calls.start[launch];
  }
  uint32_t LaunchedBy(uint32_t work, int64_t called, int64_t ended) const;
  // `stream_of`: each piece's, by number.
  void FindAwaited(int64_t clock_ns, const StreamNumbers& streams,
                   const std::vector<uint32_t>& stream_of);

  const Trace& trace_;
  const DeviceSpans& spans_;
  std::vector<uint32_t> before_, by_end_, awaited_;
  std::vector<DeviceReturn> returns_;
};

// Answers of DeviceOrder that are looked for where they are asked, for who comes to little of the
// work: the path through 64 ranks. Where that takes long, the whole order is made after all.
class NearbyOrder {
 public:
  // `is_little`: of the work; else the whole order is made at once.
  NearbyOrder(const Trace& trace, bool is_little);

  uint32_t Before(uint32_t work);
  // `near`: work that ends nearly then.
  uint32_t LastEnded(int64_t time, uint32_t near);
  // By time of return; without `latest` and `first`.
  const std::vector<DeviceReturn>& returns();
  // `latest` of one of them.
  uint32_t LatestOf(const DeviceReturn& back, uint32_t near);

 private:
  struct Ended {
    uint32_t last = kNone;
    bool is_tied = false;   // other work ended at the same time
    bool is_known = false;  // false: too many steps were taken
  };
  const DeviceOrder& Whole();
  Ended FindEnded(int64_t time, uint32_t near);

  const Trace& trace_;
  const DeviceSpans& spans_;
  const int64_t longest_ns_;  // piece
  size_t steps_left_ = 0;     // of searches
  std::optional<StreamsOfSyncs> synced_;
  std::vector<DeviceReturn> returns_;  // once synced_ is there
  std::optional<DeviceOrder> whole_;
};

}  // namespace ranktap::collector
