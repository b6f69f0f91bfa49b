// The CUDA entry points that are recorded, by their names: callback ids differ by library version
// and only ever grow, names do not change.
// Runs on: Build on the arming thread, Find on user threads.  May not: in Find allocate or lock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/arena.h"
#include "agent/sources/cupti/cupti_abi.h"
#include "agent/sources/cupti/cupti_api.h"

namespace ranktap::agent::cupti {

enum class CallGroup : uint8_t {
  kNone = 0,  // not recorded
  kLaunch,
  kGraphLaunch,
  kHostFunction,  // launched as a kernel is, but no record stands for it
  kSynchronize,
  kCopy,  // and memset, prefetch
  kAllocate,
  kEvent,
};

// The arguments that an event call has.
enum class EventArguments : uint8_t { kNone, kEvent, kEventStream, kStreamEvent };

struct Call {
  proto::ArenaRef api = 0;
  CallGroup group = CallGroup::kNone;
  EventArguments arguments = EventArguments::kNone;
};

// By the function's name as CUPTI gives it ("cudaLaunchKernel_v7000"). Pure.
Call ClassifyCall(std::string_view name);
// Without the version that CUPTI appends to names of the runtime.
std::string_view PlainName(std::string_view name);

class CallTable {
 public:
  // Asks the library for all its names. Interns those that are recorded.
  void Build(const Api& api, Arena& names);

  // group kNone for what is not recorded.
  const Call& Find(Domain domain, uint32_t cbid) const {
    static constexpr Call kUnknown{};
    const auto& calls = domain == Domain::kRuntime ? runtime_ : driver_;
    return cbid < calls.size() ? calls[cbid] : kUnknown;
  }

  // Every recorded entry point, to enable.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (uint32_t cbid = 0; cbid < runtime_.size(); ++cbid) {
      if (runtime_[cbid].group != CallGroup::kNone) visit(Domain::kRuntime, cbid, runtime_[cbid]);
    }
    for (uint32_t cbid = 0; cbid < driver_.size(); ++cbid) {
      if (driver_[cbid].group != CallGroup::kNone) visit(Domain::kDriver, cbid, driver_[cbid]);
    }
  }

 private:
  static std::vector<Call> BuildDomain(const Api& api, Domain domain, Arena& names);

  std::vector<Call> runtime_;
  std::vector<Call> driver_;
};

}  // namespace ranktap::agent::cupti
