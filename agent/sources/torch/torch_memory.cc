// Stands between libc10 and its own c10::ProfiledCPUMemoryReporter.
// Runs on: any thread that allocates a tensor (the three hooks).  May not: allocate, lock, log.
#include "agent/sources/torch/torch_memory.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <span>

#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/writer.h"
#include "agent/interpose/got_patcher.h"
#include "proto/operator_payload.h"

namespace ranktap::agent {
namespace {

using proto::ArenaRef;

// c10/core/CPUAllocator.h, since PyTorch 1.6: New(void*, size_t), Delete(void*),
// OutOfMemory(size_t)
constexpr const char* kNew = "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm";
constexpr const char* kDelete = "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv";
constexpr const char* kOutOfMemory = "_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm";

using NewFunction = void (*)(void* self, void* block, size_t bytes);
using DeleteFunction = void (*)(void* self, void* block);
using OutOfMemoryFunction = void (*)(void* self, size_t bytes);

// Written once, before the hooks are reached.
constinit NewFunction g_new = nullptr;
constinit DeleteFunction g_delete = nullptr;
constinit OutOfMemoryFunction g_out_of_memory = nullptr;

constinit std::atomic<ArenaRef> g_memory_domain{0};  // 0: not watching
constinit std::atomic<ArenaRef> g_out_of_memory_domain{0};
constinit std::atomic<ArenaRef> g_out_of_memory_name{0};

void Record(const std::atomic<ArenaRef>& where, const void* block, uint64_t bytes, ArenaRef name) {
  const ArenaRef domain = where.load(std::memory_order_relaxed);
  if (domain == 0 || !Capturing(kCaptureFramework)) return;
  ThreadState* const thread = ThreadState::Current();
  if (thread == nullptr) return ThreadStates::LoseWithoutWriter();
  const auto address = reinterpret_cast<uintptr_t>(block);
  thread->Emit(proto::MarkEvent{.time_ticks = NowTicks(),
                                .nvtx = {.domain = domain,
                                         .name = name,
                                         .payload = bytes,
                                         .category = static_cast<uint32_t>(address),
                                         .color = static_cast<uint32_t>(address >> 32),
                                         .payload_type = proto::kAllocationPayload}});
}

void OnNew(void* self, void* block, size_t bytes) {
  if (bytes != 0) Record(g_memory_domain, block, bytes, 0);
  g_new(self, block, bytes);
}

// Called before the block is free, so that its next owner's event is later.
void OnDelete(void* self, void* block) {
  Record(g_memory_domain, block, 0, 0);
  g_delete(self, block);
}

void OnOutOfMemory(void* self, size_t bytes) {
  Record(g_out_of_memory_domain, nullptr, bytes,
         g_out_of_memory_name.load(std::memory_order_relaxed));
  g_out_of_memory(self, bytes);
}

template <typename Function>
bool Find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

// A build that calls itself directly has no slots.
bool Redirect(std::span<const GotHook> hooks) {
  const GotPatchResult result = PatchGlobalOffsetTables(hooks, {}, "libc10.so");
  return result.slots >= hooks.size() && result.failures == 0;
}

bool InstallBlockHooks() {
  void* const library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  if (!Find(library, kNew, g_new) || !Find(library, kDelete, g_delete)) return false;
  const std::array hooks = {
      GotHook{kNew, reinterpret_cast<void*>(&OnNew), true},
      GotHook{kDelete, reinterpret_cast<void*>(&OnDelete), true},
  };
  return Redirect(hooks);
}

bool InstallOutOfMemoryHook() {
  void* const library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr || !Find(library, kOutOfMemory, g_out_of_memory)) return false;
  const std::array hooks = {
      GotHook{kOutOfMemory, reinterpret_cast<void*>(&OnOutOfMemory), true},
  };
  return Redirect(hooks);
}

}  // namespace

bool InstallMemoryHooks() {
  static const bool installed = InstallBlockHooks();
  return installed;
}

void WatchMemory(ArenaRef domain) { g_memory_domain.store(domain, std::memory_order_relaxed); }

bool WatchOutOfMemory(ArenaRef domain, ArenaRef name) {
  static const bool installed = InstallOutOfMemoryHook();
  g_out_of_memory_name.store(name, std::memory_order_relaxed);
  g_out_of_memory_domain.store(installed ? domain : 0, std::memory_order_relaxed);
  return installed;
}

}  // namespace ranktap::agent
