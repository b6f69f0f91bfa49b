// The order of a rank's device work: on a stream one after the other, and across streams where one
// was told to wait for an event of another. While a work graph is built, kernels A to C come so:
//
//   Add(A on stream 7)    nothing before it
//   Add(B on stream 20)   nothing: stream 20 was not told to wait
//   Add(C on stream 20)   B, and A where cudaStreamWaitEvent(20, event of 7) was called before C
//                         and after A was launched
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "collector/facts/device_timeline.h"
#include "collector/facts/stream_waits.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

class StreamOrder {
 public:
  explicit StreamOrder(const Trace& trace);
  // `node` stands for `span`, which ends at `end`. Returns the nodes that it had to wait for. Spans
  // of a stream come in their order.
  std::vector<uint32_t> Add(const DeviceSpan& span, uint32_t node, int64_t end);

 private:
  struct Work {
    uint32_t node = 0;
    int64_t launched = 0, end = 0;
  };
  using Stream = std::pair<uint32_t, uint32_t>;  // device, stream

  void AddRecordedWaits();
  void AddAwaited(const DeviceSpan& span, std::vector<uint32_t>* before);

  const Trace& trace_;
  std::map<uint32_t, std::vector<StreamWait>> waits_;
  std::map<Stream, std::vector<Work>> work_;
  std::map<Stream, size_t> next_wait_;  // the first that no work has heeded
};

}  // namespace ranktap::collector
