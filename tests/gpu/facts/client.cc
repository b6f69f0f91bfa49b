#include "tests/gpu/facts/client.h"

#include <dlfcn.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tests/gpu/facts/answer.h"
#include "tests/lent_buffers.h"
#include "tests/workloads/hosts/device_work.h"

namespace ranktap::gpu {
namespace {

using namespace agent::cupti;  // NOLINT: this file is about CUPTI

constexpr size_t kBufferBytes = 1 << 20;
constexpr uint64_t kMark = 0x72616e6b74617021;

std::mutex g_mutex;
std::vector<std::vector<uint8_t>> g_completed;
std::atomic<uint64_t> g_asked{0};
std::atomic<uint64_t> g_last_completed_ns{0};
std::atomic<pid_t> g_completing_thread{0};
LentBuffers g_lent;
uint8_t g_fill = 0;
Subscriber g_subscriber = nullptr;
Seen* g_seen = nullptr;
thread_local int t_depth = 0;

uint64_t ClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void OnRequested(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  ++g_asked;
  g_lent.Lend();
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, kBufferBytes));
  std::memset(*buffer, g_fill, kBufferBytes);
  *bytes = kBufferBytes;
  *max_records = 0;
}

void OnCompleted(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  g_last_completed_ns = MonotonicNs();
  g_completing_thread = gettid();
  {
    const std::lock_guard lock(g_mutex);
    g_completed.emplace_back(buffer, buffer + valid_bytes);
  }
  std::free(buffer);
  g_lent.TakeBack();
}

void OnEnter(bool driver, const ApiCallbackData& call) {
  Seen& seen = *g_seen;
  if (call.correlation_data != nullptr) {
    if (*call.correlation_data != 0) ++(driver ? seen.dirty_driver : seen.dirty_runtime);
    *call.correlation_data = kMark;
  }
  if (call.correlation_id == 0) ++seen.without_id;
  if (call.symbol_name == nullptr) ++seen.without_symbol;
  if (driver && t_depth > 0) ++seen.nested_driver;
  if (t_depth++ != 0) return;
  seen.outermost[call.correlation_id] = {RealtimeNs(), driver};
  seen.name = call.function_name;
}

void OnCall(void*, uint32_t domain, uint32_t, const void* raw) {
  if (g_seen == nullptr) return;
  const auto& call = *static_cast<const ApiCallbackData*>(raw);
  ++g_seen->calls;
  if (call.site == Site::kEnter) {
    OnEnter(domain == static_cast<uint32_t>(Domain::kDriver), call);
  } else {
    --t_depth;
    if (call.correlation_data != nullptr && *call.correlation_data != kMark) ++g_seen->changed;
  }
}

void EnableLaunches(Domain domain) {
  for (uint32_t cbid = 1; cbid < 1200; ++cbid) {
    const char* name = nullptr;
    if (Cupti().api.GetCallbackName(static_cast<uint32_t>(domain), cbid, &name) == kSuccess &&
        name != nullptr && std::strstr(name, "Launch") != nullptr) {
      Cupti().api.EnableCallback(1, g_subscriber, static_cast<uint32_t>(domain), cbid);
    }
  }
}

void SayFailure(const char* what, Result result) {
  if (result != kSuccess) Say(std::string(what) + "_failed", result);
}

void Flush(bool forced) {
  SayFailure("flush", Cupti().api.ActivityFlushAll(forced ? kFlushForced : 0));
}

}  // namespace

uint64_t RealtimeNs() { return ClockNs(CLOCK_REALTIME); }
uint64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }
uint64_t Tsc() { return __rdtsc(); }

const LoadedApi& Cupti() {
  static const LoadedApi* const loaded = [] {
    const char* chosen = std::getenv("RANKTAP_CUPTI");
    auto* opened = new LoadedApi(LoadApi(chosen == nullptr ? "" : chosen));
    if (!opened->ok()) {
      Say("no_cupti", opened->failure);
      _exit(3);
    }
    return opened;
  }();
  return *loaded;
}

int RegisterTimestamp(Timestamp timestamp) {
  void* library = dlopen(Cupti().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  auto* function = library == nullptr ? nullptr
                                      : reinterpret_cast<int (*)(Timestamp)>(dlsym(
                                            library, "cuptiActivityRegisterTimestampCallback"));
  return function == nullptr ? -1 : function(timestamp);
}

bool Subscribe(Calls calls) {
  const Result result = Cupti().api.Subscribe(&g_subscriber, &OnCall, nullptr);
  SayFailure("subscribe", result);
  if (result != kSuccess) return false;
  if (calls == Calls::kRuntime || calls == Calls::kBoth) EnableLaunches(Domain::kRuntime);
  if (calls == Calls::kDriver || calls == Calls::kBoth) EnableLaunches(Domain::kDriver);
  const Result registered = Cupti().api.ActivityRegisterCallbacks(&OnRequested, &OnCompleted);
  SayFailure("register", registered);
  return registered == kSuccess;
}

void Unsubscribe() { SayFailure("unsubscribe", Cupti().api.Unsubscribe(g_subscriber)); }

void FillBuffersWith(uint8_t byte) { g_fill = byte; }

void Enable(Kind kind) {
  SayFailure("enable", Cupti().api.ActivityEnable(static_cast<uint32_t>(kind)));
}

void Disable(Kind kind) {
  SayFailure("disable", Cupti().api.ActivityDisable(static_cast<uint32_t>(kind)));
}

void Watch(Seen* seen) { g_seen = seen; }

Returned FlushAndWatch(bool forced) {
  cudaDeviceSynchronize();
  g_last_completed_ns = 0;
  g_completing_thread = 0;
  Flush(forced);
  const uint64_t returned_ns = MonotonicNs();
  g_lent.AwaitAll();
  const std::lock_guard lock(g_mutex);
  g_completed.clear();
  return {.late_ns = g_last_completed_ns > returned_ns ? g_last_completed_ns - returned_ns : 0,
          .on_other_thread = g_completing_thread != 0 && g_completing_thread != gettid()};
}

std::vector<Copy> TakeRecords(bool forced) {
  cudaDeviceSynchronize();
  Flush(forced);
  g_lent.AwaitAll();
  std::vector<std::vector<uint8_t>> buffers;
  {
    const std::lock_guard lock(g_mutex);
    buffers.swap(g_completed);
  }
  std::vector<Copy> copies;
  for (std::vector<uint8_t>& buffer : buffers) {
    std::vector<const uint8_t*> starts;
    Record* record = nullptr;
    while (Cupti().api.ActivityGetNextRecord(buffer.data(), buffer.size(), &record) == kSuccess) {
      starts.push_back(reinterpret_cast<const uint8_t*>(record));
    }
    starts.push_back(buffer.data() + buffer.size());
    for (size_t i = 0; i + 1 < starts.size(); ++i) {
      copies.push_back({std::vector<uint8_t>(starts[i], starts[i + 1])});
    }
  }
  return copies;
}

std::vector<KernelRecord> Kernels(const std::vector<Copy>& records) {
  std::vector<KernelRecord> kernels;
  for (const Copy& copy : records) {
    if (copy.record().kind != Kind::kConcurrentKernel) continue;
    KernelRecord kernel{};
    std::memcpy(&kernel, copy.bytes.data(), std::min(sizeof(kernel), copy.bytes.size()));
    kernels.push_back(kernel);
  }
  return kernels;
}

uint64_t BuffersAskedFor() { return g_asked; }

void Launch(int count) {
  for (int i = 0; i < count; ++i) launch_kernel(nullptr);
}

}  // namespace ranktap::gpu
