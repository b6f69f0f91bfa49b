// A moment of a step went to one of these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ranktap::collector {

// In order of precedence: a moment belongs to the first that holds on any of the rank's devices.
enum class Cause : uint8_t {
  kCompute,      // a compute kernel runs
  kTransfer,     // a collective moves data, and nothing computes
  kWait,         // a collective runs, but its last member has not arrived yet. Of a rank without
                 // a device, this and kTransfer are the host's
  kMemory,       // only copies or memsets run
  kNotRecorded,  // nothing is known to run, and capture was off
  kCheckpoint,   // idle; the next work was not launched yet; the host saved a checkpoint
  kCollection,   // the same; Python collected garbage
  kDataLoading,  // the same; the host was in the data loader
  kCapture,      // the same; the host captured a CUDA graph, or made it ready to run
  kSync,         // idle and not launched; the host had been waiting for the device when it ran dry,
                 // for at least as long as this lasts
  kHost,     // idle and not launched: the host was busy otherwise, or in a launch of 30 us or more
  kLatency,  // idle for less than 30 us with the next work launched already
  kDependency,  // idle for longer with the next work launched: it waited for something
  // A rank that used no device: the work of its host.
  kOptimizer,
  kBackward,
  kForward,
};
inline constexpr size_t kCauses = 16;
std::string_view NameOf(Cause cause);

using CauseTimes = std::array<int64_t, kCauses>;

}  // namespace ranktap::collector
