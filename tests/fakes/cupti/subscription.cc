#include "tests/fakes/cupti/subscription.h"

#include <pthread.h>
#include <string.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "tests/fakes/cupti/activity_buffers.h"
#include "tests/fakes/cupti/callback_names.h"
#include "tests/fakes/cupti/hooks.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/second_subscriber.h"
#include "tests/second_api.h"

namespace ranktap::standin {

Subscription& TheSubscription() {
  static Subscription* subscription = new Subscription{};
  return *subscription;
}

bool KindEnabled(CUpti_ActivityKind kind) {
  return static_cast<uint32_t>(kind) < kMostKinds &&
         TheSubscription().kind_enabled[kind].load(std::memory_order_relaxed);
}

bool AnyKindEnabled() {
  for (auto& enabled : TheSubscription().kind_enabled) {
    if (enabled.load()) return true;
  }
  return false;
}

constexpr uint32_t kUnseen = UINT32_MAX;  // made without us, or so

uint32_t MarkNewGraph() {
  const bool has_api =
      KindEnabled(CUPTI_ACTIVITY_KIND_RUNTIME) || KindEnabled(CUPTI_ACTIVITY_KIND_DRIVER);
  if (has_api) return TheSubscription().api_kinds_off.load() + 1;
  return KindEnabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ? 0 : kUnseen;
}

bool TellsOfNodes(uint32_t mark) {
  if (mark == kUnseen) return !Script().old_graphs_silent;
  return mark == 0 || mark == TheSubscription().api_kinds_off.load() + 1;
}

bool ApiRecordWanted(ApiDomain domain, uint32_t cbid) {
  uint8_t own = cbid < kMostCallbackIds
                    ? TheSubscription().api_record[static_cast<int>(domain)][cbid].load(
                          std::memory_order_relaxed)
                    : 0;
  if (own != 0) return own == 1;
  return KindEnabled(domain == ApiDomain::kDriver ? CUPTI_ACTIVITY_KIND_DRIVER
                                                  : CUPTI_ACTIVITY_KIND_RUNTIME);
}

uint32_t VisibleCorrelation(uint32_t correlation, ApiDomain domain, uint32_t cbid) {
  if (!Script().correlation_by_api_kinds) return correlation;
  return ApiRecordWanted(domain, CallbackIdOf(domain, cbid)) ? correlation : 0;
}

uint32_t RecordThreadId() {
  if (TheSubscription().thread_id_type.load(std::memory_order_relaxed) ==
      CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) {
    return static_cast<uint32_t>(Machine()->thread_id());
  }
  return static_cast<uint32_t>(pthread_self());
}

uint32_t CallbackIdOf(ApiDomain domain, uint32_t cbid) {
  constexpr uint32_t kByHandle = CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000;
  constexpr uint32_t kByHandlePerThread = CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000;
  if (domain != ApiDomain::kRuntime || kByHandle < kRuntimeNamesCount) return cbid;
  if (cbid == kByHandle) return CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  if (cbid == kByHandlePerThread) return CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000;
  return cbid;
}

void ForgetSession() {
  Subscription& subscription = TheSubscription();
  subscription.callback.store(nullptr);
  for (auto& enabled : subscription.kind_enabled) enabled.store(false);
  for (auto& domain : subscription.api_record) {
    for (auto& own : domain) own.store(0);
  }
}

bool ListenToMachine() {
  if (Machine() == nullptr) return false;
  Machine()->set_hooks(MachineHooks());
  return true;
}

bool Wanted(CUpti_CallbackDomain domain, uint32_t cbid) {
  return cbid < kMostCallbackIds &&
         TheSubscription().wanted[domain][cbid].load(std::memory_order_relaxed) != 0;
}

void Raise(CUpti_CallbackDomain domain, uint32_t cbid, const void* data) {
  Subscription& subscription = TheSubscription();
  // Announced before the callback is read: whoever unsubscribes sees one or the other.
  struct Running {
    Subscription& subscription;
    explicit Running(Subscription& s) : subscription(s) {
      subscription.callbacks_running.fetch_add(1);
      Machine()->enter_tool_callback(1);
    }
    ~Running() {
      Machine()->enter_tool_callback(-1);
      subscription.callbacks_running.fetch_sub(1);
    }
  } running(subscription);
  CUpti_CallbackFunc callback = subscription.callback.load();
  if (callback != nullptr) callback(subscription.userdata.load(), domain, cbid, data);
  if (subscription.second_api.load(std::memory_order_relaxed))
    RaiseForSecondApi(domain, cbid, data);
}

}  // namespace ranktap::standin

using namespace ranktap::standin;

namespace {

std::mutex& SubscriberLock() {
  static std::mutex* mutex = new std::mutex;
  return *mutex;
}

char g_subscriber_name[64] = "";

CUpti_SubscriberHandle TheHandle() {
  return reinterpret_cast<CUpti_SubscriberHandle>(&TheSubscription());
}

bool Owned() { return Script().subscribe_owned || TheSubscription().callback.load() != nullptr; }

uint32_t CallbackIds(CUpti_CallbackDomain domain) {
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
      return kDriverNamesCount;
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      return kRuntimeNamesCount;
    case CUPTI_CB_DOMAIN_RESOURCE:
      return CUPTI_CBID_RESOURCE_SIZE;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE:
      return CUPTI_CBID_SYNCHRONIZE_SIZE;
    case CUPTI_CB_DOMAIN_STATE:
      return CUPTI_CBID_STATE_SIZE;
    case CUPTI_CB_DOMAIN_NVTX:
      return 128;
    default:
      return 0;
  }
}

CUptiResult Change(CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain, uint32_t first,
                   uint32_t last, uint32_t enable) {
  if (EnableCallbacksOfSecond(handle, domain, first, last, enable != 0)) return CUPTI_SUCCESS;
  if (handle != TheHandle() || TheSubscription().callback.load() == nullptr) {
    return LastCuptiError() = CUPTI_ERROR_INVALID_PARAMETER;
  }
  static std::atomic<int> changing{0};
  if (changing.fetch_add(1) != 0) {
    Machine()->note_violation("callbacks enabled by two threads at once");
  }
  for (uint32_t cbid = first; cbid < last; ++cbid) {
    TheSubscription().wanted[domain][cbid].store(enable != 0);
  }
  changing.fetch_sub(1);
  return CUPTI_SUCCESS;
}

CUptiResult Subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                      void* userdata, CUpti_SubscriberParams* params) {
  if (subscriber == nullptr || callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard lock(SubscriberLock());
  if (Owned()) {
    if (params != nullptr && params->oldSubscriberName != nullptr) {
      strncpy(params->oldSubscriberName, g_subscriber_name, params->oldSubscriberSize);
    }
    return LastCuptiError() = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  const char* name = params == nullptr ? nullptr : params->subscriberName;
  strncpy(g_subscriber_name, name == nullptr ? "unnamed" : name, sizeof g_subscriber_name - 1);
  TheSubscription().count.fetch_add(1);
  TheSubscription().userdata.store(userdata);
  TheSubscription().callback.store(callback);
  *subscriber = TheHandle();
  if (ListenToMachine()) Machine()->note_subscription(true);
  return CUPTI_SUCCESS;
}

}  // namespace

extern "C" {

// 13.0 has no second API, and this one for its names alone.
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                              void* userdata, CUpti_SubscriberParams* params) {
  RETURN_UNLESS_ADMITTED();
  if (!Script().one_api) return Subscribe(subscriber, callback, userdata, params);
  if (subscriber == nullptr || callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const bool first_is_on = !TheSubscription().second_api.load() && (Owned() || AnyKindEnabled());
  if (Script().subscribe_owned || first_is_on) {
    return LastCuptiError() = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  ranktap::second_api::SubscriberParams given;
  if (params != nullptr) {
    memcpy(static_cast<void*>(&given), params, std::min(params->structSize, sizeof given));
  }
  const CUptiResult result =
      SubscribeSecond(subscriber, callback, userdata, given.allow_multiple == 1);
  if (result == CUPTI_SUCCESS) TheSubscription().second_api.store(true);
  return result;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                           void* userdata) {
  RETURN_UNLESS(AdmitFirstApi);
  return Subscribe(subscriber, callback, userdata, nullptr);
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  if (subscriber == nullptr) return LastCuptiError() = CUPTI_ERROR_INVALID_PARAMETER;
  RETURN_UNLESS_ADMITTED();
  if (UnsubscribeSecond(subscriber)) return CUPTI_SUCCESS;
  Subscription& subscription = TheSubscription();
  if (subscriber != TheHandle() || subscription.callback.load() == nullptr) {
    return LastCuptiError() = CUPTI_ERROR_INVALID_PARAMETER;
  }
  for (auto& domain : subscription.wanted) {
    for (auto& wanted : domain) wanted.store(0);
  }
  subscription.callback.store(nullptr);
  // No callback may be running when this returns, but for the one it is called from.
  int own = Machine()->in_tool_callback() ? 1 : 0;
  while (subscription.callbacks_running.load() > own) std::this_thread::yield();
  Machine()->note_subscription(false);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  RETURN_UNLESS_ADMITTED();
  if (cbid == 0 || cbid >= CallbackIds(domain)) {
    return LastCuptiError() = CUPTI_ERROR_INVALID_PARAMETER;
  }
  return Change(subscriber, domain, cbid, cbid + 1, enable);
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain) {
  RETURN_UNLESS_ADMITTED();
  if (CallbackIds(domain) == 0) return LastCuptiError() = CUPTI_ERROR_INVALID_PARAMETER;
  return Change(subscriber, domain, 1, CallbackIds(domain), enable);
}

CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber) {
  RETURN_UNLESS_ADMITTED();
  for (int domain = 1; domain < CUPTI_CB_DOMAIN_SIZE; ++domain) {
    auto id = static_cast<CUpti_CallbackDomain>(domain);
    CUptiResult result = Change(subscriber, id, 1, CallbackIds(id), enable);
    if (result != CUPTI_SUCCESS) return result;
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackState(uint32_t* enable, CUpti_SubscriberHandle,
                                  CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  RETURN_UNLESS_ADMITTED();
  if (enable == nullptr || cbid >= CallbackIds(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
  *enable = Wanted(domain, cbid);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSupportedDomains(size_t* count, CUpti_DomainTable* table) {
  static CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                           CUPTI_CB_DOMAIN_RESOURCE,   CUPTI_CB_DOMAIN_SYNCHRONIZE,
                                           CUPTI_CB_DOMAIN_NVTX,       CUPTI_CB_DOMAIN_STATE};
  *count = sizeof domains / sizeof domains[0];
  *table = domains;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  if (name == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const char* const* names = domain == CUPTI_CB_DOMAIN_DRIVER_API    ? kDriverNames
                             : domain == CUPTI_CB_DOMAIN_RUNTIME_API ? kRuntimeNames
                                                                     : nullptr;
  if (names == nullptr || cbid >= CallbackIds(domain) || names[cbid] == nullptr) {
    return LastCuptiError() = CUPTI_ERROR_INVALID_PARAMETER;
  }
  *name = names[cbid];
  return CUPTI_SUCCESS;
}

}  // extern "C"
