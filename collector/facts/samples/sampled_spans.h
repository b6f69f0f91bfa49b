// Samples of one thread as nested spans, as if each call of a line had been recorded. Of looks at
//
//   main:9 > step:3    main:9 > step:3    main:9    main:12
//
// come main:9 over the first three, step:3 over the first two, and main:12 over the last.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/facts/samples/host_samples.h"

namespace ranktap::collector {

struct SampledSpan {
  uint32_t thread = 0, frame = 0;
  uint32_t depth = 0;  // of its frame; 0: the outermost
  int64_t start = 0, end = 0;
  int64_t cpu_ns = 0;  // that the thread ran meanwhile
};

// By thread, of each by start and with the outer ones first.
std::vector<SampledSpan> SpansOf(const HostSamples& samples);

}  // namespace ranktap::collector
