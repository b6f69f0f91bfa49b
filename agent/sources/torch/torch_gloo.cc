// Stands between c10d::ProcessGroupGloo and gloo.
// Runs on: gloo's worker threads.  May not: allocate, lock, log, keep gloo's exceptions.
#include "agent/sources/torch/torch_gloo.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <string_view>

#include "agent/core/agent_state.h"
#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/writer.h"
#include "agent/interpose/got_patcher.h"
#include "agent/sources/torch/torch_gloo_groups.h"
#include "proto/operator_payload.h"

namespace ranktap::agent {
namespace {

using proto::ArenaRef;

using Collective = void (*)(void* options);

struct Watched {
  const char* symbol;
  const char* name;
  int elements_at;  // offset in its options, followed by the bytes of one; -1: not known
};
// gloo/allreduce.h and its like: the options begin with shared_ptr<Context>.
constexpr std::array<Watched, 10> kWatched = {{
    {"_ZN4gloo9allreduceERKNS_16AllreduceOptionsE", "gloo:allreduce", 80},
    {"_ZN4gloo9broadcastERNS_16BroadcastOptionsE", "gloo:broadcast", 32},
    {"_ZN4gloo6reduceERNS_13ReduceOptionsE", "gloo:reduce", 32},
    {"_ZN4gloo9allgatherERNS_16AllgatherOptionsE", "gloo:allgather", -1},
    {"_ZN4gloo10allgathervERNS_17AllgathervOptionsE", "gloo:allgather", -1},
    {"_ZN4gloo6gatherERNS_13GatherOptionsE", "gloo:gather", -1},
    {"_ZN4gloo7scatterERNS_14ScatterOptionsE", "gloo:scatter", -1},
    {"_ZN4gloo8alltoallERNS_15AlltoallOptionsE", "gloo:alltoall", -1},
    {"_ZN4gloo9alltoallvERNS_16AlltoallvOptionsE", "gloo:alltoall", -1},
    {"_ZN4gloo7barrierERNS_14BarrierOptionsE", "gloo:barrier", -1},
}};

// Written before the calls are redirected.
std::array<Collective, kWatched.size()> g_originals{};
std::array<std::atomic<ArenaRef>, kWatched.size()> g_names{};
constinit std::atomic<ArenaRef> g_domain{0};

template <typename Value>
Value ReadAt(const void* object, size_t offset) {
  Value value;
  std::memcpy(&value, static_cast<const char*>(object) + offset, sizeof(value));
  return value;
}

// 0: not known. The fields are believed only where they can be what they should be.
uint64_t BytesOf(const void* options, int elements_at) {
  if (elements_at < 0) return 0;
  const auto elements = ReadAt<uint64_t>(options, static_cast<size_t>(elements_at));
  const auto size = ReadAt<uint64_t>(options, static_cast<size_t>(elements_at) + 8);
  const bool plausible =
      elements < (uint64_t{1} << 40) && size >= 1 && size <= 16 && (size & (size - 1)) == 0;
  return plausible ? elements * size : 0;
}

// Ends the range also when gloo throws: a peer is gone, or a timeout.
class Range {
 public:
  Range(size_t which, const void* options) : domain_(g_domain.load(std::memory_order_relaxed)) {
    thread_ = Capturing(kCaptureFramework) ? ThreadState::Current() : nullptr;
    if (thread_ == nullptr) return;
    const auto* const context = ReadAt<const void*>(options, 0);
    thread_->Emit(
        proto::RangePushEvent{.time_ticks = NowTicks(),
                              .nvtx = {.domain = domain_,
                                       .name = g_names[which].load(std::memory_order_relaxed),
                                       .payload = BytesOf(options, kWatched[which].elements_at),
                                       .category = PlaceInGlooContext(context).size,
                                       .color = NumberOfGlooContext(context),
                                       .payload_type = proto::kCollectivePayload}});
  }
  ~Range() {
    if (thread_ == nullptr) return;
    thread_->Emit(proto::RangePopEvent{.time_ticks = NowTicks(), .domain = domain_});
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  ArenaRef domain_;
  ThreadState* thread_ = nullptr;
};

template <size_t Which>
void Hook(void* options) {
  const Range range(Which, options);
  g_originals[Which](options);
}

template <size_t... Which>
std::array<Collective, kWatched.size()> Hooks(std::index_sequence<Which...>) {
  return {&Hook<Which>...};
}

bool Install() {
  void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const auto replacements = Hooks(std::make_index_sequence<kWatched.size()>{});
  std::array<GotHook, kWatched.size()> hooks;
  size_t found = 0;
  for (size_t i = 0; i < kWatched.size(); ++i) {
    g_originals[i] = reinterpret_cast<Collective>(dlsym(library, kWatched[i].symbol));
    if (g_originals[i] == nullptr) continue;
    hooks[found++] = {kWatched[i].symbol, reinterpret_cast<void*>(replacements[i]), true};
  }
  // Private to the library: a program's own gloo is not ours to look into.
  return found > 0 &&
         PatchGlobalOffsetTables(std::span(hooks).first(found), {}, "libtorch_cpu.so").slots > 0;
}

}  // namespace

bool WatchGloo(ArenaRef domain) {
  for (size_t i = 0; i < kWatched.size(); ++i) {
    const std::string_view name = kWatched[i].name;
    g_names[i].store(Names().Intern(proto::EntryKind::kString, std::as_bytes(std::span(name))));
  }
  g_domain.store(domain);
  static const bool installed = Install();
  return installed;
}

}  // namespace ranktap::agent
