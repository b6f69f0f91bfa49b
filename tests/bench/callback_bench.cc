// What a launch costs the program in our callbacks: ENTER and EXIT of one runtime call with the
// driver's call nested in it, on a live ring whose events are thrown away as they come. The floor
// is a callback that reads the clock at the first and the last, and does nothing else.
#include "agent/core/agent_state.h"
#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/segment.h"
#include "agent/core/writer.h"
#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/transport/ring_reader.h"
#include "tests/bench/figure.h"

namespace ranktap::bench {
namespace {

using agent::Arena;
using agent::kCaptureCuda;
using agent::RingReader;
using agent::Segment;
using agent::cupti::Api;
using agent::cupti::ApiCallbackData;
using agent::cupti::CallbackFunction;
using agent::cupti::CallTable;
using agent::cupti::Domain;
using agent::cupti::kSuccess;
using agent::cupti::Result;
using agent::cupti::Site;

constexpr uint32_t kLaunchCbid = 211;

// A table with one entry: a library whose only name is cudaLaunchKernel's.
Result OnlyLaunch(uint32_t domain, uint32_t cbid, const char** name) {
  if (cbid != (domain == static_cast<uint32_t>(Domain::kRuntime) ? kLaunchCbid : 307u)) {
    *name = "cudaGetDevice";
    return cbid < 400 ? kSuccess : 1;
  }
  *name = domain == static_cast<uint32_t>(Domain::kRuntime) ? "cudaLaunchKernel_v7000"
                                                            : "cuLaunchKernel";
  return kSuccess;
}

// The least that times a call: the clock at its first callback and at its last.
void Empty(void*, uint32_t domain, uint32_t, const void* data) {
  if (domain == static_cast<uint32_t>(Domain::kRuntime)) Keep(agent::NowTicks());
  Keep(data);
}

// The least that records one: it finds the thread's memory at either end, keeps the call's begin
// where others can see it, and writes an event of our size into as much memory as a chunk of ours
// has. It tests for nothing, and knows the driver's callback without a look.
struct LeastRing {
  std::atomic<uint64_t> open_since{0}, open_call{0}, committed{0};
  uint64_t words[32768 + 8];
};
constinit thread_local LeastRing* t_least = nullptr;

void Least(void*, uint32_t domain, uint32_t cbid, const void* data) {
  if (domain != static_cast<uint32_t>(Domain::kRuntime)) return Keep(data);
  const auto& call = *static_cast<const ApiCallbackData*>(data);
  LeastRing& ring = *t_least;
  const uint64_t now = agent::NowTicks();
  if (call.site == Site::kEnter) {
    ring.open_since.store(now, std::memory_order_relaxed);
    ring.open_call.store(uint64_t{cbid} << 32 | call.correlation_id, std::memory_order_release);
    return;
  }
  const uint64_t at = ring.committed.load(std::memory_order_relaxed);
  uint64_t* const event = &ring.words[at % 32768];
  event[0] = cbid;
  event[1] = ring.open_since.load(std::memory_order_relaxed);
  event[2] = now;
  event[3] = call.correlation_id;
  event[4] = static_cast<uint64_t>(*call.return_value);
  ring.open_call.store(0, std::memory_order_relaxed);
  ring.committed.store(at + 5, std::memory_order_release);
}

// One launch, as CUPTI reports it.
void Launch(CallbackFunction callback, uint32_t correlation) {
  int result = 0;
  uint64_t runtime_data = 0;
  uint64_t driver_data = 0;
  ApiCallbackData runtime{.site = Site::kEnter,
                          .return_value = &result,
                          .correlation_data = &runtime_data,
                          .correlation_id = correlation};
  ApiCallbackData driver = runtime;
  driver.correlation_data = &driver_data;
  const auto runtime_domain = static_cast<uint32_t>(Domain::kRuntime);
  const auto driver_domain = static_cast<uint32_t>(Domain::kDriver);
  callback(nullptr, runtime_domain, kLaunchCbid, &runtime);
  callback(nullptr, driver_domain, 307, &driver);
  driver.site = Site::kExit;
  callback(nullptr, driver_domain, 307, &driver);
  runtime.site = Site::kExit;
  callback(nullptr, runtime_domain, kLaunchCbid, &runtime);
}

void DropEverything(RingReader& reader) {
  proto::EventEncoder encoder;
  reader.Discover();
  while (const auto batch = reader.TakeBatch(1, encoder)) {
    reader.Acknowledge(batch->slot, batch->first_event + batch->events);
    encoder = {};
  }
}

int Main() {
  static Segment segment;
  static Arena arena;
  static CallTable calls;
  const uint8_t session[16] = {};
  if (!segment.Create(32 << 20, session) || !agent::ThreadStates::Create(segment) ||
      !agent::MapCapturePage()) {
    return 1;
  }
  agent::ChooseHostClock();
  arena.Attach(segment, new std::atomic<uint64_t>[Arena::kTableSlots]());
  Api api{};
  api.GetCallbackName = &OnlyLaunch;
  calls.Build(api, arena);
  agent::cupti::g_callbacks.calls = &calls;
  agent::SetCapture(kCaptureCuda);

  constexpr int kBatch = 1'000;  // a tenth of a millisecond: most see nobody else run
  RingReader reader(segment);
  t_least = new LeastRing;
  // Interleaved, so that all see the same machine.
  std::vector<double> ours, floor, least;
  for (int round = 0; round < 1'000; ++round) {
    const auto one = [&](CallbackFunction callback) {
      const double start = NowNs();
      for (uint32_t i = 0; i < kBatch; ++i) Launch(callback, i);
      return (NowNs() - start) / kBatch;
    };
    floor.push_back(one(&Empty));
    least.push_back(one(&Least));
    ours.push_back(one(&agent::cupti::OnCallback));
    DropEverything(reader);
  }
  for (std::vector<double>* const times : {&ours, &floor, &least}) std::ranges::sort(*times);
  char note[80];
  std::snprintf(note, sizeof(note), "the least that records it %.1f ns", least[least.size() / 2]);
  Print({.name = "launch callbacks, ENTER and EXIT with the nested driver call",
         .value = ours[ours.size() / 2],
         .unit = "ns",
         .floor_name = "empty callback and two clock readings",
         .floor = floor[floor.size() / 2],
         .target = 100,
         .note = note});
  return 0;
}

}  // namespace
}  // namespace ranktap::bench

int main() { return ranktap::bench::Main(); }
