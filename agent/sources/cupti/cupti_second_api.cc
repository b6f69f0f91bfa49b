// The functions of the first API, by the second.
// Runs on: see cupti_second_api.h.  May not: keep a lock.
#include "agent/sources/cupti/cupti_second_api.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstring>

#include "agent/sources/cupti/cupti_callbacks.h"

namespace ranktap::agent::cupti::second_api {
namespace {

// As CUpti_SubscriberParams from 13.2 on.
struct Parameters {
  size_t struct_size = sizeof(Parameters);
  const char* name = nullptr;
  char* old_name = nullptr;
  size_t old_name_bytes = 0;
  uint8_t allow_multiple = 0;
  uint8_t padding[7] = {};
};

constexpr int kAttributeHardwareEvents = 13, kAttributeGraphsWhole = 20,
              kAttributeThreadIdType = 21;

using RequestedV2 = void (*)(uint8_t** buffer, size_t* bytes, size_t* max_records, void* info);
using CompletedV2 = void (*)(uint8_t* buffer, size_t bytes, size_t valid_bytes, void* info);

// What has another form, and what goes by our handle.
struct Functions {
  Result (*Subscribe_v2)(Subscriber*, CallbackFunction, void*, Parameters*);
  Result (*Unsubscribe)(Subscriber);
  Result (*EnableCallback)(uint32_t, Subscriber, uint32_t, uint32_t);
  Result (*ActivityRegisterCallbacks_v2)(Subscriber, RequestedV2, CompletedV2);
  Result (*ActivityEnable_v2)(Subscriber, uint32_t, void* configuration);
  Result (*ActivityEnableAndDump_v2)(Subscriber, uint32_t, void* configuration);
  Result (*ActivityDisable_v2)(Subscriber, uint32_t, void* configuration);
  Result (*ActivityGetNextRecord_v2)(Subscriber, uint8_t*, size_t, Record**);
  Result (*ActivityGetNumDroppedRecords_v2)(Subscriber, void*, uint32_t, size_t*);
  Result (*ActivitySetAttribute_v2)(Subscriber, int, size_t*, void*);
  Result (*ActivityGetAttribute_v2)(Subscriber, int, size_t*, void*);
};
constinit Functions g_second{};
constinit Api g_first{};
constinit bool g_is_there = false;
constinit std::atomic<bool> g_is_on{false};
// Nobody lets go of the handle while a buffer may be read: the drain thread does both.
constinit std::atomic<Subscriber> g_subscriber{nullptr};

bool FindAll(void* library) {
  const auto find = [library](const char* name, auto*& function) {
    return (*reinterpret_cast<void**>(&function) = dlsym(library, name)) != nullptr;
  };
#define RANKTAP_FIND(function) find("cupti" #function, g_second.function)
  return RANKTAP_FIND(Subscribe_v2) && RANKTAP_FIND(Unsubscribe) && RANKTAP_FIND(EnableCallback) &&
         RANKTAP_FIND(ActivityRegisterCallbacks_v2) && RANKTAP_FIND(ActivityEnable_v2) &&
         RANKTAP_FIND(ActivityEnableAndDump_v2) && RANKTAP_FIND(ActivityDisable_v2) &&
         RANKTAP_FIND(ActivityGetNextRecord_v2) && RANKTAP_FIND(ActivityGetNumDroppedRecords_v2) &&
         RANKTAP_FIND(ActivitySetAttribute_v2) && RANKTAP_FIND(ActivityGetAttribute_v2);
#undef RANKTAP_FIND
}

void Requested(uint8_t** buffer, size_t* bytes, size_t* max_records, void* /*info*/) {
  OnBufferRequested(buffer, bytes, max_records);
}

void Completed(uint8_t* buffer, size_t bytes, size_t valid_bytes, void* /*info*/) {
  OnBufferCompleted(nullptr, 0, buffer, bytes, valid_bytes);
}

Result Subscribe(Subscriber* subscriber, CallbackFunction callback, void* user) {
  if (!IsOn()) return g_first.Subscribe(subscriber, callback, user);
  Parameters parameters;
  parameters.name = "ranktap";
  parameters.allow_multiple = 1;
  const Result result = g_second.Subscribe_v2(subscriber, callback, user, &parameters);
  if (result == kSuccess) g_subscriber.store(*subscriber);
  return result;
}

// What the first API had is given back in it before Begin.
Result Unsubscribe(Subscriber subscriber) {
  if (subscriber != g_subscriber.load()) return g_first.Unsubscribe(subscriber);
  g_subscriber.store(nullptr);
  return g_second.Unsubscribe(subscriber);
}

Result EnableCallback(uint32_t enable, Subscriber subscriber, uint32_t domain, uint32_t cbid) {
  return IsOn() ? g_second.EnableCallback(enable, subscriber, domain, cbid)
                : g_first.EnableCallback(enable, subscriber, domain, cbid);
}

Result RegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
  return IsOn() ? g_second.ActivityRegisterCallbacks_v2(g_subscriber.load(), &Requested, &Completed)
                : g_first.ActivityRegisterCallbacks(requested, completed);
}

Result Enable(uint32_t kind) {
  return IsOn() ? g_second.ActivityEnable_v2(g_subscriber.load(), kind, nullptr)
                : g_first.ActivityEnable(kind);
}

Result EnableAndDump(uint32_t kind) {
  return IsOn() ? g_second.ActivityEnableAndDump_v2(g_subscriber.load(), kind, nullptr)
                : g_first.ActivityEnableAndDump(kind);
}

Result Disable(uint32_t kind) {
  return IsOn() ? g_second.ActivityDisable_v2(g_subscriber.load(), kind, nullptr)
                : g_first.ActivityDisable(kind);
}

Result FlushAll(uint32_t flag) {
  return g_first.ActivityFlushAll(IsOn() ? flag & ~kFlushForced : flag);
}

Result GetNextRecord(uint8_t* buffer, size_t valid_bytes, Record** record) {
  return IsOn()
             ? g_second.ActivityGetNextRecord_v2(g_subscriber.load(), buffer, valid_bytes, record)
             : g_first.ActivityGetNextRecord(buffer, valid_bytes, record);
}

Result GetNumDroppedRecords(void* context, uint32_t stream, size_t* dropped) {
  return IsOn() ? g_second.ActivityGetNumDroppedRecords_v2(g_subscriber.load(), context, stream,
                                                           dropped)
                : g_first.ActivityGetNumDroppedRecords(context, stream, dropped);
}

// NVIDIA's guide says that some attributes are the subscriber's and some are of all, and of most it
// does not say which. Nobody could put one of all back: none is set.
Result SetAttribute(int attribute, size_t* bytes, void* value) {
  return IsOn() ? kSuccess : g_first.ActivitySetAttribute(attribute, bytes, value);
}

Result GetAttribute(int attribute, size_t* bytes, void* value) {
  return IsOn() ? kErrorInvalidParameter : g_first.ActivityGetAttribute(attribute, bytes, value);
}

Result SetThreadIdType(uint32_t type) {
  if (!IsOn()) return g_first.SetThreadIdType(type);
  size_t bytes = sizeof type;
  return g_second.ActivitySetAttribute_v2(g_subscriber.load(), kAttributeThreadIdType, &bytes,
                                          &type);
}

// It goes with the subscription: nobody is to put it back.
Result GetThreadIdType(uint32_t* type) {
  return IsOn() ? kErrorInvalidParameter : g_first.GetThreadIdType(type);
}

}  // namespace

void TakePlace(Api& api, void* library) {
  if (!FindAll(library)) return;
  g_is_there = true;
  g_first = api;
  api.Subscribe = &Subscribe;
  api.Unsubscribe = &Unsubscribe;
  api.EnableCallback = &EnableCallback;
  api.ActivityRegisterCallbacks = &RegisterCallbacks;
  api.ActivityEnable = &Enable;
  if (api.ActivityEnableAndDump != nullptr) api.ActivityEnableAndDump = &EnableAndDump;
  api.ActivityDisable = &Disable;
  api.ActivityFlushAll = &FlushAll;
  api.ActivityGetNextRecord = &GetNextRecord;
  api.ActivityGetNumDroppedRecords = &GetNumDroppedRecords;
  api.ActivitySetAttribute = &SetAttribute;
  api.ActivityGetAttribute = &GetAttribute;
  if (api.SetThreadIdType != nullptr) api.SetThreadIdType = &SetThreadIdType;
  if (api.GetThreadIdType != nullptr) api.GetThreadIdType = &GetThreadIdType;
}

bool IsThere() { return g_is_there; }
void Begin() { g_is_on.store(true); }
bool IsOn() { return g_is_on.load(std::memory_order_relaxed); }

bool AllowsOthers(const void* parameters) {
  constexpr size_t kAt = offsetof(Parameters, allow_multiple);
  size_t size = 0;
  if (parameters == nullptr) return false;
  std::memcpy(&size, parameters, sizeof size);
  return size > kAt && static_cast<const uint8_t*>(parameters)[kAt] == 1;
}

bool IsOfAll(int attribute) {
  return attribute == kAttributeHardwareEvents || attribute == kAttributeGraphsWhole;
}

bool GraphsAreWhole() {
  uint8_t whole = 0;
  size_t bytes = sizeof whole;
  return g_second.ActivityGetAttribute_v2(g_subscriber.load(), kAttributeGraphsWhole, &bytes,
                                          &whole) == kSuccess &&
         whole == 1;
}

}  // namespace ranktap::agent::cupti::second_api
