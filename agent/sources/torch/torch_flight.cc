// The functions that PyTorch exports for it, and the thread that calls them.
// Runs on: see torch_flight.h.  May not: load a library; free what PyTorch has allocated.
#include "agent/sources/torch/torch_flight.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <string>
#include <string_view>

#include "agent/core/announcements.h"
#include "agent/core/host_clock.h"
#include "agent/core/own_thread.h"

namespace ranktap::agent {
namespace {

constexpr size_t kMostBytes = 16 << 20, kPartBytes = 512 << 10;
constexpr size_t kStackBytes = 1 << 20;

// A std::string of libstdc++ as its callee returns it: in memory that the caller gives. It is
// leaked, since the operator new that it came from may be the program's own: 1.4 MB for 3,000
// calls, at most three times a job.
struct ForeignText {
  const char* data;
  size_t size;
  std::byte rest[16];
};
static_assert(sizeof(ForeignText) == sizeof(std::string));

using Dump = ForeignText(bool with_collectives, bool only_active);
using DumpOf = ForeignText(bool with_collectives, bool only_active, const std::string& backend);

alignas(OwnThread) constinit std::byte g_thread_memory[sizeof(OwnThread)]{};
constinit OwnThread* g_thread = nullptr;  // never destroyed
constinit std::atomic<bool> g_is_busy{false};
constinit uint64_t g_request = 0;

template <typename Function>
Function* Find(const char* library, const char* symbol) {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return handle == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle, symbol));
}

// One that holds no call is not told: a process has a recorder for each backend, used or not.
void Tell(std::string_view backend, const ForeignText& dump) {
  std::string_view text(dump.data, dump.size);
  if (text.find("\"record_id\"") == text.npos) return;
  if (text.size() > kMostBytes) {
    return AnnounceFlight({.number = g_request,
                           .backend = backend,
                           .problem = "its dump has more than 16 MiB: a smaller "
                                      "TORCH_FR_BUFFER_SIZE helps"});
  }
  while (!text.empty()) {
    const std::string_view part = text.substr(0, kPartBytes);
    AnnounceFlight({.number = g_request, .backend = backend, .text = part});
    text.remove_prefix(part.size());
  }
}

bool TellGloo() {
  constexpr const char* kLibrary = "libtorch_cpu.so";
  if (auto* const dump = Find<DumpOf>(kLibrary,
                                      "_ZN4c10d18dump_fr_trace_jsonEbbRKNSt7__cxx1112basic_"
                                      "stringIcSt11char_traitsIcESaIcEEE")) {
    Tell("gloo", dump(true, false, "gloo"));
    return true;
  }
  auto* const dump = Find<Dump>(kLibrary, "_ZN4c10d18dump_fr_trace_jsonB5cxx11Ebb");
  if (dump != nullptr) Tell("gloo", dump(true, false));
  return dump != nullptr;
}

bool TellNccl() {
  auto* const dump = Find<Dump>("libtorch_cuda.so", "_ZN4c10d20dump_nccl_trace_jsonB5cxx11Ebb");
  if (dump != nullptr) Tell("nccl", dump(true, false));
  return dump != nullptr;
}

// What PyTorch throws is no failure of ours.
bool DidTell(bool (*tell)()) {
  try {
    return tell();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    AnnounceFlight({.number = g_request, .problem = "PyTorch could not dump its Flight Recorder"});
    return true;
  }
}

// NCCL's last: it asks CUDA for the state of open calls, and may not come back.
void Run(void*) {
  const bool has_gloo = DidTell(&TellGloo), has_nccl = DidTell(&TellNccl);
  AnnounceFlight({.number = g_request,
                  .problem = has_gloo || has_nccl ? "" : "no PyTorch with a Flight Recorder",
                  .is_last = true});
  g_is_busy.store(false);
}

}  // namespace

void DumpFlightRecorder(uint64_t request) {
  const auto refuse = [request](std::string_view why) {
    AnnounceFlight({.number = request, .problem = why, .is_last = true});
  };
  if (g_is_busy.exchange(true)) return refuse("PyTorch has not answered an earlier request");
  g_request = request;
  if (g_thread == nullptr) g_thread = new (g_thread_memory) OwnThread;
  if (g_thread->Start({.name = "ranktap-flight",
                       .nice = 0,
                       .stack_bytes = kStackBytes,
                       .body = &Run,
                       .owner = nullptr,
                       .may_be_lost = true})) {
    return;
  }
  g_is_busy.store(false);
  refuse("the system gives no thread");
}

void FinishFlight(uint64_t deadline_ns) {
  constexpr uint64_t kPatienceNs = 100'000'000;
  const uint64_t deadline = std::min(deadline_ns, ClockNs(CLOCK_MONOTONIC) + kPatienceNs);
  while (g_is_busy.load() && ClockNs(CLOCK_MONOTONIC) < deadline) {
    constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 1'000'000};
    nanosleep(&kNap, nullptr);
  }
}

}  // namespace ranktap::agent
