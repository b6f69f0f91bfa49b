// Stands between c10d::ProcessGroupGloo and gloo while a process group is made.
// Runs on: threads that make process groups.  May not: allocate, lock, log, keep gloo's exceptions,
// ask for the interpreter's lock (a peer may wait for this thread with it).
#include "agent/sources/torch/torch_gloo_groups.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>

#include "agent/interpose/got_patcher.h"

namespace ranktap::agent {
namespace {

// Both pass their arguments as pointers: a reference, or a shared_ptr that the caller holds.
using Connect = void (*)(void* context, void* store, void* device);
constexpr std::array<const char*, 2> kConnects = {
    "_ZN4gloo10rendezvous7Context15connectFullMeshESt10shared_ptrINS0_5StoreEERS2_INS_9transport"
    "6DeviceEE",
    "_ZN4gloo10rendezvous7Context15connectFullMeshERNS0_5StoreERSt10shared_ptrINS_9transport"
    "6DeviceEE",  // of older ones
};

// Written before the calls are redirected.
std::array<Connect, kConnects.size()> g_connectors{};

struct Connected {
  uint32_t number = 0;
  GlooPlace place;
  std::atomic<bool> is_there{false};
};
// Megatron-LM makes a few dozen. Groups beyond the room stay without a name.
std::array<Connected, 1024> g_connected;
std::atomic<size_t> g_count{0};

template <size_t Which>
void Hook(void* context, void* store, void* device) {
  g_connectors[Which](context, store, device);  // throws where a peer does not come
  // rendezvous::Context may have a table of virtual functions before the gloo::Context in it.
  GlooPlace place = PlaceInGlooContext(context);
  if (place.size == 0) {
    context = static_cast<char*>(context) + sizeof(void*);
    place = PlaceInGlooContext(context);
  }
  const size_t at = g_count.fetch_add(1, std::memory_order_relaxed);
  if (at >= g_connected.size()) return;
  g_connected[at].number = NumberOfGlooContext(context);
  g_connected[at].place = place;
  g_connected[at].is_there.store(true, std::memory_order_release);
}

bool InstallConnectors() {
  void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  constexpr std::array<Connect, kConnects.size()> kHooks = {&Hook<0>, &Hook<1>};
  std::array<GotHook, kConnects.size()> hooks;
  size_t found = 0;
  for (size_t i = 0; i < kConnects.size(); ++i) {
    g_connectors[i] = reinterpret_cast<Connect>(dlsym(library, kConnects[i]));
    if (g_connectors[i] == nullptr) continue;
    hooks[found++] = {kConnects[i], reinterpret_cast<void*>(kHooks[i]), true};
  }
  return found > 0 &&
         PatchGlobalOffsetTables(std::span(hooks).first(found), {}, "libtorch_cpu.so").slots > 0;
}

}  // namespace

GlooPlace PlaceInGlooContext(const void* context) {
  std::array<int32_t, 3> begin{};
  if (context != nullptr) std::memcpy(begin.data(), context, sizeof(begin));
  const auto [rank, size, base] = begin;
  if (rank < 0 || rank >= size || base != 2) return {};
  return {.rank = static_cast<uint32_t>(rank), .size = static_cast<uint32_t>(size)};
}

bool WatchGlooGroups() {
  static const bool installed = InstallConnectors();
  return installed;
}

std::string TakeGlooContexts() {
  static size_t told = 0;  // behind the interpreter's lock
  std::string lines;
  const size_t count = std::min(g_count.load(std::memory_order_relaxed), g_connected.size());
  for (; told < count && g_connected[told].is_there.load(std::memory_order_acquire); ++told) {
    const Connected& each = g_connected[told];
    lines += std::to_string(each.number) + ' ' + std::to_string(each.place.rank) + ' ' +
             std::to_string(each.place.size) + '\n';
  }
  return lines;
}

}  // namespace ranktap::agent
