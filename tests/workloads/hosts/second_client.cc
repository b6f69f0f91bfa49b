// A program with a profiler that uses CUPTI's second API in the order of calls of PyTorch 2.15's
// second one (torch/profiler/_cuspy/core.py, cupti_python.py): a subscription that lets others in,
// records of chosen fields, a fence of a wait's record at the end. Checks that it gets every kernel
// and every call of its sessions, in its own records, and no buffer that it did not lend.
// usage: second_client LAUNCHES SESSIONS|@FILE [WAY]   @FILE: sessions until there is such a file
//   each session: LAUNCHES outside, LAUNCHES profiled; LAUNCHES at the end
//   WAY: several (of several subscribers), reshaped (and it changes its fields in the middle of
//   each session), alone (it lets nobody else subscribe), events (several, and before its first
//   session it asks for the hardware event system), classic (several, and after each session it
//   tries the first API, which CUPTI must refuse)
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/second_api.h"
#include "tests/workloads/hosts/device_work.h"

namespace {

namespace second = ranktap::second_api;

constexpr size_t kBufferBytes = 1 << 16;
constexpr uint32_t kLaunchCbid = CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000;

// By name, as ctypes finds them.
struct Cupti {
  CUptiResult (*GetVersion)(uint32_t*);
  CUptiResult (*Subscribe_v2)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*,
                              second::SubscriberParams*);
  CUptiResult (*Unsubscribe)(CUpti_SubscriberHandle);
  CUptiResult (*EnableCallback)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, uint32_t);
  CUptiResult (*ActivitySetAttribute_v2)(CUpti_SubscriberHandle, int, size_t*, void*);
  CUptiResult (*ActivityRegisterCallbacks_v2)(CUpti_SubscriberHandle, second::BufferRequested,
                                              second::BufferCompleted);
  CUptiResult (*ActivityEnable_v2)(CUpti_SubscriberHandle, CUpti_ActivityKind,
                                   second::ActivityConfig*);
  CUptiResult (*ActivityDisable_v2)(CUpti_SubscriberHandle, CUpti_ActivityKind,
                                    second::ActivityConfig*);
  CUptiResult (*ActivityEnableRuntimeApi_v2)(CUpti_SubscriberHandle, uint32_t, uint8_t);
  CUptiResult (*ActivityGetNextRecord_v2)(CUpti_SubscriberHandle, uint8_t*, size_t,
                                          CUpti_Activity**);
  CUptiResult (*ActivityGetNumDroppedRecords_v2)(CUpti_SubscriberHandle, CUcontext, uint32_t,
                                                 size_t*);
  CUptiResult (*ActivityFlushAll)(uint32_t);
  CUptiResult (*GetTimestamp_v2)(CUpti_SubscriberHandle, uint64_t*);
  CUptiResult (*ActivityEnableHWTrace)(uint8_t);
  CUptiResult (*ActivityEnable)(CUpti_ActivityKind);
  CUptiResult (*Subscribe)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*);
} cupti;

bool FindAll() {
  void* library = dlopen("libcupti.so.13", RTLD_NOW);
  const auto find = [library](const char* name, auto*& function) {
    return (*reinterpret_cast<void**>(&function) = dlsym(library, name)) != nullptr;
  };
#define FIND(name) find("cupti" #name, cupti.name)
  return library != nullptr && FIND(GetVersion) && FIND(Subscribe_v2) && FIND(Unsubscribe) &&
         FIND(EnableCallback) && FIND(ActivitySetAttribute_v2) &&
         FIND(ActivityRegisterCallbacks_v2) && FIND(ActivityEnable_v2) &&
         FIND(ActivityDisable_v2) && FIND(ActivityEnableRuntimeApi_v2) &&
         FIND(ActivityGetNextRecord_v2) && FIND(ActivityGetNumDroppedRecords_v2) &&
         FIND(ActivityFlushAll) && FIND(GetTimestamp_v2) && FIND(ActivityEnableHWTrace) &&
         FIND(ActivityEnable) && FIND(Subscribe);
#undef FIND
}

#define CHECKED(call)                                                 \
  do {                                                                \
    if (const CUptiResult result = (call); result != CUPTI_SUCCESS) { \
      std::printf("%s: error %d\n", #call, static_cast<int>(result)); \
      return false;                                                   \
    }                                                                 \
  } while (false)

CUpti_SubscriberHandle subscriber = nullptr;

std::mutex mutex;
std::set<uint8_t*> lent;
int strangers = 0, misread = 0;
int kernels = 0, calls = 0, callbacks = 0, spoilt_words = 0;
std::atomic<uint64_t> last_wait{0};

template <typename Value>
Value FieldOf(const CUpti_Activity* record, const second::RecordLayout& layout, int field) {
  Value value{};
  for (size_t i = 0; i < layout.count; ++i) {
    if (layout.entries[i].field != field) continue;
    if (layout.entries[i].size != sizeof value) ++misread;
    std::memcpy(&value, reinterpret_cast<const uint8_t*>(record) + layout.entries[i].offset,
                sizeof value);
  }
  return value;
}

void OnRequested(uint8_t** buffer, size_t* size, size_t* most, second::RequestInfo*) {
  const std::lock_guard lock(mutex);
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, kBufferBytes));
  std::memset(*buffer, 0xa5, kBufferBytes);
  *size = kBufferBytes;
  *most = 0;
  lent.insert(*buffer);
}

void Read(const CUpti_Activity* record, const second::RecordLayout& layout) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    ++kernels;
    const auto start = FieldOf<uint64_t>(record, layout, second::kKernelStart);
    const auto end = FieldOf<uint64_t>(record, layout, second::kKernelEnd);
    const auto* name = FieldOf<const char*>(record, layout, second::kKernelName);
    if (start == 0 || end < start || name == nullptr ||
        std::strstr(name, kernel_name()) == nullptr) {
      ++misread;
    }
  } else if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
    if (FieldOf<uint32_t>(record, layout, second::kCallId) == kLaunchCbid) ++calls;
  } else if (record->kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) {
    const auto end = FieldOf<uint64_t>(record, layout, second::kWaitEnd);
    last_wait.store(std::max(last_wait.load(), end));
  }
}

void OnCompleted(uint8_t* buffer, size_t, size_t valid, second::CompleteInfo* info) {
  const std::lock_guard lock(mutex);
  if (lent.erase(buffer) == 0) {
    ++strangers;
    return;
  }
  CUpti_Activity* record = nullptr;
  while (cupti.ActivityGetNextRecord_v2(subscriber, buffer, valid, &record) == CUPTI_SUCCESS) {
    const size_t kind = record->kind;
    if (kind >= info->layout_count || info->layouts[kind] == nullptr) {
      ++misread;
      break;
    }
    Read(record, *info->layouts[kind]);
  }
  std::free(buffer);
}

// The word of a call is the client's.
void CUPTIAPI OnCallback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  constexpr uint64_t kWord = 0x5eed;
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (call->callbackSite == CUPTI_API_ENTER) {
    *call->correlationData = kWord;
  } else {
    ++callbacks;
    if (*call->correlationData != kWord) ++spoilt_words;
  }
}

void Launch(int count) {
  for (int i = 0; i < count; ++i) launch_kernel(nullptr);
}

bool Set(int attribute, uint8_t value) {
  size_t bytes = 1;
  CHECKED(cupti.ActivitySetAttribute_v2(subscriber, attribute, &bytes, &value));
  return true;
}

bool Enable(CUpti_ActivityKind kind, std::vector<int> fields) {
  second::ActivityConfig config;
  config.selection.count = fields.size();
  config.selection.fields = fields.data();
  CHECKED(cupti.ActivityEnable_v2(subscriber, kind, &config));
  return true;
}

const std::vector<int> kKernelFields = {0, second::kKernelStart, second::kKernelEnd,
                                        second::kKernelCorrelation, second::kKernelName};
const std::vector<int> kCallFields = {0, second::kCallId, second::kCallStart, second::kCallEnd,
                                      second::kCallCorrelation};

bool Start(bool alone) {
  second::SubscriberParams parameters;
  parameters.name = "torch-cuspy";
  parameters.allow_multiple = alone ? 0 : 1;
  uint64_t now = 0;
  CHECKED(cupti.Subscribe_v2(&subscriber, &OnCallback, nullptr, &parameters));
  if (!Set(second::kUserDefinedRecords, 1)) return false;
  CHECKED(cupti.ActivityRegisterCallbacks_v2(subscriber, &OnRequested, &OnCompleted));
  CHECKED(cupti.GetTimestamp_v2(subscriber, &now));
  CHECKED(cupti.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, kLaunchCbid));
  if (!Enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kKernelFields)) return false;
  if (!Enable(CUPTI_ACTIVITY_KIND_RUNTIME, kCallFields)) return false;
  CHECKED(cupti.ActivityEnableRuntimeApi_v2(subscriber,
                                            CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 0));
  return true;
}

// As _reconfigure does it: off, the device done, a forced flush, on.
bool Reshape() {
  CHECKED(cupti.ActivityDisable_v2(subscriber, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, nullptr));
  cudaDeviceSynchronize();
  CHECKED(cupti.ActivityFlushAll(1));
  std::vector<int> fields = kKernelFields;
  fields.insert(fields.begin() + 1, second::kKernelGraphNode);
  return Enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, fields);
}

bool Stop() {
  constexpr int kTries = 2000;
  uint64_t target = 0;
  size_t dropped = 0;
  CHECKED(cupti.ActivityFlushAll(0));
  if (!Enable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, {0, second::kWaitEnd})) return false;
  CHECKED(cupti.GetTimestamp_v2(subscriber, &target));
  cudaDeviceSynchronize();
  for (int i = 0; i < kTries && last_wait.load() < target; ++i) {
    CHECKED(cupti.ActivityFlushAll(0));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (last_wait.load() < target) std::printf("the fence did not come\n");
  CHECKED(cupti.ActivityFlushAll(0));
  CHECKED(cupti.ActivityDisable_v2(subscriber, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, nullptr));
  CHECKED(cupti.ActivityGetNumDroppedRecords_v2(subscriber, nullptr, 0, &dropped));
  CHECKED(cupti.ActivityDisable_v2(subscriber, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, nullptr));
  CHECKED(cupti.ActivityDisable_v2(subscriber, CUPTI_ACTIVITY_KIND_RUNTIME, nullptr));
  if (!Set(second::kUserDefinedRecords, 0)) return false;
  CHECKED(cupti.EnableCallback(0, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, kLaunchCbid));
  CHECKED(cupti.Unsubscribe(subscriber));
  subscriber = nullptr;
  return dropped == 0;
}

bool FirstApiIsRefused() {
  CUpti_SubscriberHandle other = nullptr;
  return cupti.Subscribe(&other, &OnCallback, nullptr) == CUPTI_ERROR_NOT_COMPATIBLE &&
         cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_ERROR_NOT_COMPATIBLE;
}

bool Session(int count, const std::string& way) {
  if (!Start(way == "alone")) return false;
  if (way == "reshaped") {
    Launch(count / 2);
    if (!Reshape()) return false;
    Launch(count - count / 2);
  } else {
    Launch(count);
  }
  if (!Stop()) return false;
  return way != "classic" || FirstApiIsRefused();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: second_client LAUNCHES SESSIONS|@FILE [WAY]\n");
    return 2;
  }
  const int launches = std::atoi(argv[1]);
  const char* const stop = argv[2][0] == '@' ? argv[2] + 1 : nullptr;
  int sessions = stop == nullptr ? std::atoi(argv[2]) : 0;
  const std::string way = argc > 3 ? argv[3] : "several";
  start_device(0);
  if (!FindAll()) {
    std::printf("this CUPTI has no second API\n");
    return 1;
  }
  int good = 0;
  bool events = way != "events" || cupti.ActivityEnableHWTrace(1) == CUPTI_SUCCESS;
  for (int i = 0; stop == nullptr ? i < sessions : access(stop, F_OK) != 0; ++i) {
    if (stop != nullptr) sessions = i + 1;
    Launch(launches);
    good += Session(launches, way) ? 1 : 0;
  }
  Launch(launches);
  cudaDeviceSynchronize();
  const std::lock_guard lock(mutex);
  std::printf(
      "counts good=%d kernels=%d calls=%d callbacks=%d spoilt=%d strangers=%d misread=%d "
      "events=%d\n",
      good, kernels, calls, callbacks, spoilt_words, strangers, misread, events ? 1 : 0);
  const int expected = launches * sessions;
  const bool ok = good == sessions && kernels == expected && calls == expected &&
                  callbacks == expected && spoilt_words + strangers + misread == 0 && events;
  return ok ? 0 : 1;
}
