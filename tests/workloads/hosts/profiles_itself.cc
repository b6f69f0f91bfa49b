// A program with a profiler of its own, which uses CUPTI the way PyTorch's does: callbacks for
// buffers registered once, activity kinds on for a while, a flush, kinds off. Checks that it gets
// every kernel of its own window and no buffer that it did not lend, and prints what settings it
// found. usage: profiles_itself LAUNCHES SESSIONS PAUSE_MS [WAY [@FILE]]
//   each session: LAUNCHES outside, LAUNCHES profiled; a pause after each; LAUNCHES at the end,
//   and with @FILE one after the other until there is such a file
//   WAY: kinds (activity kinds only, as torch.profiler since 2025), subscribe (with a subscription
//   and its callbacks, as before), finalize (cuptiFinalize after each session, TEARDOWN_CUPTI=1),
//   lookup (kinds, by addresses from dlsym, as Triton's Proton), subscribed (one subscription,
//   from before the driver is up to the end of the last session), kineto (as in PyTorch 2.1 to
//   2.12: one subscription, from the first session to the end, for contexts that are made; the
//   processor's ticks as CUPTI's clock, set at each session; kinds off before the flush; buffers
//   per thread off after it), early (a subscription from before the driver is up, for good),
//   threads (kinds, of which another thread enables one at the same time), nvlink (kineto, with a
//   kind of which nobody knows the times in the first session), late (kinds; buffers per thread off
//   after the pause, when another may record), second (kinds, and before the last launches a
//   subscription of CUPTI's second API, taken and given back)
#include <cupti.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "tests/lent_buffers.h"
#include "tests/workloads/hosts/device_work.h"

namespace {

constexpr size_t kBufferBytes = 1 << 20;

std::mutex mutex;
std::set<uint8_t*> lent;
ranktap::LentBuffers with_cupti;
int strangers = 0;
int kernels = 0;
int memsets = 0;
// Of the session that is on, in the clock of its records; and records with a time outside of it.
uint64_t began = 0, ended = 0;
int untimely = 0;
int launches_called_back = 0;
int contexts_called_back = 0;
std::string settings;

// Of the calls that a session of kinds makes.
struct Calls {
  decltype(&cuptiActivityRegisterCallbacks) Register = &cuptiActivityRegisterCallbacks;
  decltype(&cuptiActivityEnable) Enable = &cuptiActivityEnable;
  decltype(&cuptiActivityDisable) Disable = &cuptiActivityDisable;
};
Calls calls;

template <typename Function>
bool LookUp(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

bool LookUpAll() {
  // RTLD_NEXT is relative to who calls: nothing of the program itself is found.
  return LookUp("cuptiActivityRegisterCallbacks", calls.Register) &&
         LookUp("cuptiActivityEnable", calls.Enable) &&
         LookUp("cuptiActivityDisable", calls.Disable) && dlsym(RTLD_NEXT, "main") == nullptr &&
         dlsym(RTLD_NEXT, "cudaFree") != nullptr;
}

uint64_t Ticks() { return __rdtsc(); }

uint64_t Realtime() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void CheckTimes(uint64_t start, uint64_t end) {
  // CUPTI's clocks may disagree by so much.
  constexpr uint64_t kSlack = 100'000;
  if (start + kSlack < began || end > ended + kSlack || start > end) ++untimely;
}

void CUPTIAPI OnRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  with_cupti.Lend();
  const std::lock_guard lock(mutex);
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, kBufferBytes));
  // As memory that has been used: CUPTI clears it, unless somebody has told it not to.
  std::memset(*buffer, 0xa5, kBufferBytes);
  *size = kBufferBytes;
  *max_records = 0;
  lent.insert(*buffer);
}

void CUPTIAPI OnCompleted(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard lock(mutex);
  if (lent.erase(buffer) == 0) {
    ++strangers;
    return;
  }
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      ++kernels;
      CheckTimes(kernel->start, kernel->end);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
      ++memsets;
    } else if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
      const auto* call = reinterpret_cast<const CUpti_ActivityAPI*>(record);
      CheckTimes(call->start, call->end);
    }
  }
  std::free(buffer);
  with_cupti.TakeBack();
}

void Launch(int count) {
  for (int i = 0; i < count; ++i) launch_kernel(nullptr);
  cudaDeviceSynchronize();
}

void CUPTIAPI OnCallback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (call->callbackSite == CUPTI_API_ENTER) ++launches_called_back;
}

void CUPTIAPI OnContext(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void*) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
    ++contexts_called_back;
  }
}

bool SubscribeAsKineto() {
  static CUpti_SubscriberHandle subscriber = nullptr;
  if (subscriber != nullptr) return true;
  uint32_t on = 0;
  return cuptiSubscribe(&subscriber, &OnContext, nullptr) == CUPTI_SUCCESS &&
         cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                             CUPTI_CBID_RESOURCE_CONTEXT_CREATED) == CUPTI_SUCCESS &&
         cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                               CUPTI_CBID_RESOURCE_CONTEXT_CREATED) == CUPTI_SUCCESS &&
         on == 1;
}

bool Subscribe(CUpti_SubscriberHandle* subscriber) {
  return cuptiSubscribe(subscriber, &OnCallback, nullptr) == CUPTI_SUCCESS &&
         cuptiEnableCallback(1, *subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                             CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000) == CUPTI_SUCCESS;
}

int Attribute(CUpti_ActivityAttribute attribute) {
  uint8_t value = 0;
  size_t bytes = sizeof(value);
  return cuptiActivityGetAttribute(attribute, &bytes, &value) == CUPTI_SUCCESS ? value : -1;
}

void NoteSettings() {
  CUpti_ActivityThreadIdType thread_ids = CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE;
  cuptiGetThreadIdType(&thread_ids);
  settings += " " + std::to_string(Attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER)) +
              std::to_string(Attribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER)) +
              std::to_string(static_cast<int>(thread_ids));
}

bool EnableKinds() {
  return calls.Enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS &&
         calls.Enable(CUPTI_ACTIVITY_KIND_RUNTIME) == CUPTI_SUCCESS;
}

bool EnableKindsInTwoThreads() {
  bool ok = false;
  std::barrier start(2);
  std::thread other([&] {
    start.arrive_and_wait();
    ok = calls.Enable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS;
  });
  start.arrive_and_wait();
  const bool mine = EnableKinds();
  other.join();
  return ok && mine;
}

void SetMemory(int count) {
  static void* memory = nullptr;
  if (memory == nullptr) cudaMalloc(&memory, 64);
  for (int i = 0; i < count; ++i) cudaMemsetAsync(memory, i, 64, nullptr);
  cudaDeviceSynchronize();
}

bool DisableKinds() {
  return calls.Disable(CUPTI_ACTIVITY_KIND_RUNTIME) == CUPTI_SUCCESS &&
         calls.Disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS;
}

bool UseTicks() {
  uint64_t now = 0;
  const uint64_t before = Ticks();
  return cuptiActivityRegisterTimestampCallback(&Ticks) == CUPTI_SUCCESS &&
         cuptiGetTimestamp(&now) == CUPTI_SUCCESS && before <= now && now <= Ticks();
}

bool SetPerThreadBuffersOff() {
  uint8_t off = 0;
  size_t bytes = sizeof(off);
  return cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &bytes, &off) ==
         CUPTI_SUCCESS;
}

// Alone, as PyTorch 2.15's does with approximate times.
bool UseSecondApi() {
  CUpti_SubscriberHandle subscriber = nullptr;
  CUpti_SubscriberParams parameters{};
  parameters.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  return cuptiSubscribe_v2(&subscriber, &OnContext, nullptr, &parameters) == CUPTI_SUCCESS &&
         cuptiUnsubscribe(subscriber) == CUPTI_SUCCESS;
}

bool IsKineto(const std::string& way) { return way == "kineto" || way == "nvlink"; }

bool Profile(int count, const std::string& way) {
  const bool as_kineto = IsKineto(way), in_two_threads = way == "threads";
  nvtxRangePushA("session");
  began = as_kineto ? Ticks() : Realtime();
  bool ok = !as_kineto || UseTicks();
  ok = ok && calls.Register(&OnRequested, &OnCompleted) == CUPTI_SUCCESS &&
       (in_two_threads ? EnableKindsInTwoThreads() : EnableKinds());
  static bool is_first = true;
  const bool has_strange_kind = way == "nvlink" && std::exchange(is_first, false);
  if (has_strange_kind) ok = calls.Enable(CUPTI_ACTIVITY_KIND_NVLINK) == CUPTI_SUCCESS && ok;
  NoteSettings();
  Launch(count);
  if (in_two_threads) SetMemory(count);
  ended = as_kineto ? Ticks() : Realtime();
  if (as_kineto) ok = DisableKinds() && ok;
  ok = cuptiActivityFlushAll(1) == CUPTI_SUCCESS && ok;
  with_cupti.AwaitAll();
  ok = (as_kineto ? SetPerThreadBuffersOff() : DisableKinds()) && ok;
  if (has_strange_kind) ok = calls.Disable(CUPTI_ACTIVITY_KIND_NVLINK) == CUPTI_SUCCESS && ok;
  if (in_two_threads) ok = calls.Disable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS && ok;
  nvtxRangePop();
  return ok;
}

bool Session(const std::string& way, int count) {
  CUpti_SubscriberHandle subscriber = nullptr;
  bool ok = way != "subscribe" || Subscribe(&subscriber);
  if (IsKineto(way)) ok = SubscribeAsKineto();
  if (way == "lookup") ok = LookUpAll() && ok;
  ok = Profile(count, way) && ok;
  if (way == "subscribe") ok = cuptiUnsubscribe(subscriber) == CUPTI_SUCCESS && ok;
  if (way == "finalize") ok = cuptiFinalize() == CUPTI_SUCCESS && ok;
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argc > 6) {
    std::fprintf(stderr, "usage: profiles_itself LAUNCHES SESSIONS PAUSE_MS [WAY [@FILE]]\n");
    return 2;
  }
  const int launches = std::atoi(argv[1]);
  const int sessions = std::atoi(argv[2]);
  const std::string way = argc > 4 ? argv[4] : "kinds";
  CUpti_SubscriberHandle subscriber = nullptr;
  bool ok = way != "subscribed" || Subscribe(&subscriber);
  if (way == "early") ok = SubscribeAsKineto();
  start_device(0);
  for (int i = 0; i < sessions; ++i) {
    Launch(launches);
    ok = Session(way, launches) && ok;
    if (way == "subscribed" && i + 1 == sessions) {
      ok = cuptiUnsubscribe(subscriber) == CUPTI_SUCCESS && ok;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argv[3])));
    if (way == "late") ok = SetPerThreadBuffersOff() && ok;
  }
  if (way == "second") ok = UseSecondApi() && ok;
  Launch(launches);
  while (argc == 6 && access(argv[5] + 1, F_OK) != 0) {
    Launch(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  // A context of its own, to be called back for.
  const bool has_contexts = IsKineto(way) || way == "early";
  if (has_contexts) start_device(1);
  const std::lock_guard lock(mutex);
  const int expected_callbacks = way == "subscribe"    ? launches * sessions
                                 : way == "subscribed" ? 2 * launches * sessions
                                                       : 0;
  ok = ok && launches_called_back == expected_callbacks;
  ok = ok && memsets == (way == "threads" ? launches * sessions : 0);
  ok = ok && contexts_called_back == (way == "early" ? 2 : has_contexts ? 1 : 0);
  std::printf(
      "counts own_kernels=%d memsets=%d callbacks=%d contexts=%d strangers=%d untimely=%d ok=%d "
      "settings%s\n",
      kernels, memsets, launches_called_back, contexts_called_back, strangers, untimely, ok ? 1 : 0,
      settings.c_str());
  return ok && strangers == 0 && kernels == launches * sessions ? 0 : 1;
}
