// Floors for NVTX: an injected library whose handlers do nothing, or with NOOP_NVTX_WRITES set the
// least that anybody must do who records the ranges: it reads the clock, finds the thread's memory,
// writes there what our events have, and lets a reader see it. No test for anything.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <time.h>
#endif

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

int PushA(const char*) { return 0; }
int PushEx(const nvtxEventAttributes_t*) { return 0; }
int Pop() { return 0; }

uint64_t ReadClock() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
#endif
}

// Words in its order: 256 KiB, as a chunk of ours has.
struct Ring {
  std::atomic<uint64_t> committed{0};
  uint64_t words[32768 + 8];
};
constinit thread_local Ring* t_ring = nullptr;

// From registers: an event that is put together elsewhere is waited for.
template <typename... Words>
[[gnu::always_inline]] inline void Write(Words... words) {
  Ring& ring = *t_ring;
  const uint64_t at = ring.committed.load(std::memory_order_relaxed);
  uint64_t* word = &ring.words[at % 32768];
  ((*word++ = words), ...);
  ring.committed.store(at + sizeof...(words), std::memory_order_release);
}

// As large as proto::RangePushEvent and RangePopEvent.
int WritePushA(const char* text) {
  const uint64_t now = ReadClock();
  Write(uint64_t{9}, now, uint64_t{reinterpret_cast<uintptr_t>(text)}, uint64_t{0}, uint64_t{0},
        uint64_t{0});
  return 0;
}
int WritePushEx(const nvtxEventAttributes_t* attributes) {
  const uint64_t now = ReadClock();
  Write(uint64_t{9}, now, uint64_t{reinterpret_cast<uintptr_t>(attributes->message.registered)},
        attributes->payload.ullValue, uint64_t{attributes->color}, uint64_t{attributes->category});
  return 0;
}
int WritePop() {
  const uint64_t now = ReadClock();
  Write(uint64_t{10}, now, uint64_t{0});
  return 0;
}

template <typename Handler>
NvtxFunctionPointer Pointer(bool writes, Handler* noop, Handler* writing) {
  return reinterpret_cast<NvtxFunctionPointer>(writes ? writing : noop);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  const bool writes = std::getenv("NOOP_NVTX_WRITES") != nullptr;
  if (writes) t_ring = new Ring;  // of the one thread that makes ranges
  *table[NVTX_CBID_CORE_RangePushA] = Pointer(writes, &PushA, &WritePushA);
  *table[NVTX_CBID_CORE_RangePushEx] = Pointer(writes, &PushEx, &WritePushEx);
  *table[NVTX_CBID_CORE_RangePop] = Pointer(writes, &Pop, &WritePop);
  return 1;
}
