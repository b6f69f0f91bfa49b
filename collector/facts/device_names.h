// The names of device work as numbers that mean the same on all ranks. A part of patterns.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/facts/device_timeline.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Spans with equal keys have equal names: asked once a key, not once a span.
uint64_t KeyOfName(const Trace& trace, const DeviceSpan& span);

// Numbers follow the order of the texts, so that they do not depend on the order of the input.
class DeviceNames {
 public:
  using Timeline = const DeviceSpans& (*)(const Trace& trace);
  DeviceNames(const Run& run, Timeline timeline);

  uint32_t Of(size_t trace, const DeviceSpan& span) const {
    return span.table == DeviceSpan::Table::kKernel
               ? traces_[trace].kernels[span.name]
               : traces_[trace].others.at(KeyOfName(run_.traces[trace], span));
  }
  const std::string& Text(uint32_t number) const { return texts_[number]; }

 private:
  struct OfTrace {
    std::vector<uint32_t> kernels;  // by Dictionary::String
    std::unordered_map<uint64_t, uint32_t> others;
  };

  const Run& run_;
  std::vector<OfTrace> traces_;
  std::vector<std::string> texts_;
};

}  // namespace ranktap::collector
