// An injected library that does what the agent cannot do without: the same subscription, callbacks
// and activity kinds, with handlers that return at once and buffers that are thrown away. What a
// program costs under it is the floor under the agent's own cost. CUPTI_FLOOR_NODES=1: graphs node
// by node.
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "agent/sources/cupti/cupti_api.h"
#include "agent/sources/cupti/cupti_calls.h"
#include "agent/sources/cupti/cupti_features.h"
#include "agent/sources/cupti/cupti_session.h"

namespace ranktap::gpu {
namespace {

using namespace agent::cupti;  // NOLINT: this file is about CUPTI

// As the agent's pool: buffers of the same size, zeroed beforehand, handed out again.
constexpr size_t kBufferBytes = 256u << 10, kBuffers = 96;
std::atomic<uint64_t> g_free[2];
uint8_t* g_memory = nullptr;
LoadedApi* g_loaded = nullptr;
Subscriber g_subscriber = nullptr;

void OnRequested(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *max_records = 0;
  for (size_t word = 0; word < 2; ++word) {
    uint64_t free = g_free[word].load();
    while (free != 0) {
      const int bit = __builtin_ctzll(free);
      if (g_free[word].compare_exchange_weak(free, free & ~(uint64_t{1} << bit))) {
        *buffer = g_memory + (word * 64 + static_cast<size_t>(bit)) * kBufferBytes;
        *bytes = kBufferBytes;
        return;
      }
    }
  }
  *buffer = static_cast<uint8_t*>(std::calloc(1, kBufferBytes));  // never: then it is no floor
  *bytes = kBufferBytes;
}

void OnCompleted(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  if (buffer < g_memory || buffer >= g_memory + kBuffers * kBufferBytes) return std::free(buffer);
  std::memset(buffer, 0, valid_bytes);
  const auto index = static_cast<size_t>(buffer - g_memory) / kBufferBytes;
  g_free[index / 64].fetch_or(uint64_t{1} << (index % 64));
}

void OnCall(void*, uint32_t, uint32_t, const void*) {}

// What the agent's drain thread asks for.
[[noreturn]] void FlushForever() {
  for (;;) {
    sleep(1);
    (void)g_loaded->api.ActivityFlushAll(0);
  }
}

bool MakeBuffers() {
  g_memory = static_cast<uint8_t*>(aligned_alloc(4096, kBuffers * kBufferBytes));
  if (g_memory == nullptr) return false;
  std::memset(g_memory, 0, kBuffers * kBufferBytes);
  g_free[0].store(~uint64_t{0});
  g_free[1].store((uint64_t{1} << (kBuffers - 64)) - 1);
  return true;
}

void SwitchCallbacks(uint32_t on) {
  const Api& api = g_loaded->api;
  for (const Domain domain : {Domain::kRuntime, Domain::kDriver}) {
    for (uint32_t cbid = 1; cbid < 1024; ++cbid) {
      const char* name = nullptr;
      if (api.GetCallbackName(static_cast<uint32_t>(domain), cbid, &name) == kSuccess &&
          name != nullptr && ClassifyCall(PlainName(name)).group != CallGroup::kNone) {
        api.EnableCallback(on, g_subscriber, static_cast<uint32_t>(domain), cbid);
      }
    }
  }
  for (const ResourceCbid cbid : RecordedResources()) {
    api.EnableCallback(on, g_subscriber, static_cast<uint32_t>(Domain::kResource),
                       static_cast<uint32_t>(cbid));
  }
}

void SwitchKind(bool on, uint32_t kind) {
  const Api& api = g_loaded->api;
  (void)(on ? api.ActivityEnable(kind) : api.ActivityDisable(kind));
}

void SwitchAll(bool on) {
  SwitchCallbacks(on ? 1 : 0);
  for (const Kind kind : RecordedKinds()) SwitchKind(on, static_cast<uint32_t>(kind));
}

bool Start() {
  if (g_loaded != nullptr) return false;
  const char* chosen = std::getenv("RANKTAP_CUPTI");
  g_loaded = new LoadedApi(LoadApi(chosen == nullptr ? "" : chosen));
  if (!g_loaded->ok() || !MakeBuffers()) return false;
  const Api& api = g_loaded->api;
  uint8_t on = 1;
  size_t bytes = sizeof(on);
  if (api.Subscribe(&g_subscriber, &OnCall, nullptr) != kSuccess) return false;
  (void)api.ActivitySetAttribute(kAttributeZeroedOutBuffer, &bytes, &on);
  if (FeaturesOf(g_loaded->version).ask_for_buffers_per_thread) {
    (void)api.ActivitySetAttribute(kAttributePerThreadBuffer, &bytes, &on);
  }
  if (api.ActivityRegisterCallbacks(&OnRequested, &OnCompleted) != kSuccess) return false;
  SwitchAll(true);
  const char* nodes = std::getenv("CUPTI_FLOOR_NODES");
  if (nodes == nullptr || nodes[0] != '1') {
    api.ActivityEnable(static_cast<uint32_t>(Kind::kGraphTrace));
  }
  // For whoever wants to know that this was measured and not a program without it.
  if (const char* sign = std::getenv("CUPTI_FLOOR_SIGN")) {
    if (const int file = creat(sign, 0600); file >= 0) close(file);
  }
  std::thread(&FlushForever).detach();
  return true;
}

}  // namespace
}  // namespace ranktap::gpu

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  return ranktap::gpu::Start() ? 1 : 0;
}

// For a program that measures itself with and without: everything, or one kind of records. Graphs
// keep their mode.
extern "C" __attribute__((visibility("default"))) void CuptiFloorSwitch(int on, uint32_t kind) {
  using namespace ranktap::gpu;  // NOLINT: the function's name is C's
  if (g_loaded == nullptr) return;
  if (kind == 0) return SwitchAll(on != 0);
  SwitchKind(on != 0, kind);
}
