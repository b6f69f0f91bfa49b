#include "tests/fakes/cupti/second_subscriber.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "tests/fakes/cupti/client_clock.h"
#include "tests/fakes/cupti/device_buffers.h"
#include "tests/fakes/cupti/hook_functions.h"
#include "tests/fakes/cupti/layout.h"
#include "tests/fakes/cupti/record_shape.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/subscription.h"

namespace ranktap::standin {
namespace {

using second_api::RecordLayout;

using ShapeOfKind = std::array<RecordShape, kMostKinds>;

// Of the buffer that this thread hands over.
thread_local const ShapeOfKind* completing = nullptr;

class SecondSubscriber final : public SecondCallbacks {
 public:
  std::atomic<bool> used{false};
  std::atomic<CUpti_CallbackFunc> callback{nullptr};
  std::atomic<void*> user{nullptr};
  std::atomic<int> callbacks_running{0};
  std::atomic<bool> wanted[CUPTI_CB_DOMAIN_SIZE][kMostCallbackIds];
  std::atomic<bool> kinds[kMostKinds];
  std::atomic<bool> user_defined{false};
  // Calls without an API record though their kind is on.
  std::atomic<bool> calls_off[CUPTI_CB_DOMAIN_SIZE][kMostCallbackIds];
  std::atomic<second_api::BufferRequested> requested{nullptr};
  std::atomic<second_api::BufferCompleted> completed{nullptr};
  BufferSet* buffers = nullptr;

  mutable std::mutex mutex;  // of the shapes
  ShapeOfKind shapes;

  void Request(uint8_t** buffer, size_t* bytes, size_t* most_records) const override {
    second_api::RequestInfo info;
    if (auto* request = requested.load()) request(buffer, bytes, most_records, &info);
  }

  std::shared_ptr<const void> Shapes() const override {
    std::lock_guard lock(mutex);
    return user_defined.load() ? std::make_shared<const ShapeOfKind>(shapes) : nullptr;
  }

  // The layouts are an array by kind (PyTorch's code).
  void Complete(uint8_t* buffer, size_t bytes, size_t valid_bytes,
                const std::shared_ptr<const void>& given) const override {
    second_api::CompleteInfo info;
    std::array<RecordLayout, kMostKinds> layouts{};
    std::array<RecordLayout*, kMostKinds> by_kind{};
    const auto* of_buffer = static_cast<const ShapeOfKind*>(given.get());
    for (size_t kind = 0; of_buffer != nullptr && kind < kMostKinds; ++kind) {
      if (!(*of_buffer)[kind].is_chosen()) continue;
      layouts[kind] = (*of_buffer)[kind].layout();
      by_kind[kind] = &layouts[kind];
    }
    if (of_buffer != nullptr) {
      info.layouts = by_kind.data();
      info.layout_count = by_kind.size();
    }
    completing = of_buffer;
    if (auto* complete = completed.load()) complete(buffer, bytes, valid_bytes, &info);
    completing = nullptr;
  }

  size_t BytesOf(uint32_t kind) const {
    if (completing != nullptr) return kind < kMostKinds ? (*completing)[kind].bytes() : 0;
    if (!user_defined.load()) return RecordSize(kind);
    std::lock_guard lock(mutex);
    return kind < kMostKinds ? shapes[kind].bytes() : 0;
  }

  bool AnyKind() const {
    return std::any_of(std::begin(kinds), std::end(kinds),
                       [](const auto& on) { return on.load(); });
  }
};

struct Everybody {
  std::mutex mutex;  // of who comes and goes
  std::array<SecondSubscriber, 4> subscribers;
  bool allow_multiple = false;  // as the first one said
  int graphs_whole = -1;        // as the first one said; -1: not yet
};

Everybody& TheSecond() {
  static Everybody* everybody = [] {
    auto* made = new Everybody;
    for (SecondSubscriber& subscriber : made->subscribers) subscriber.buffers = &NewBufferSet();
    return made;
  }();
  return *everybody;
}

SecondSubscriber* Find(CUpti_SubscriberHandle handle) {
  for (SecondSubscriber& subscriber : TheSecond().subscribers) {
    const bool is_it = reinterpret_cast<CUpti_SubscriberHandle>(&subscriber) == handle;
    if (is_it && subscriber.used.load()) return &subscriber;
  }
  return nullptr;
}

template <typename Test>
bool AnySubscriber(Test&& test) {
  auto& all = TheSecond().subscribers;
  return std::any_of(all.begin(), all.end(), [&](SecondSubscriber& subscriber) {
    return subscriber.used.load() && test(subscriber);
  });
}

bool AnyKindOfAny() {
  return AnySubscriber([](const SecondSubscriber& subscriber) { return subscriber.AnyKind(); });
}

// The machine looks at one table for all.
void UniteKind(uint32_t kind) {
  const bool on = AnySubscriber(
      [kind](const SecondSubscriber& subscriber) { return subscriber.kinds[kind].load(); });
  const bool was_on = TheSubscription().kind_enabled[kind].exchange(on);
  const bool is_api = kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER;
  if (was_on && !on && is_api) TheSubscription().api_kinds_off.fetch_add(1);
}

void UniteCallback(uint32_t domain, uint32_t cbid) {
  const bool on = AnySubscriber(
      [=](const SecondSubscriber& subscriber) { return subscriber.wanted[domain][cbid].load(); });
  TheSubscription().wanted[domain][cbid].store(on);
}

// Records of what was there before are for the one who asks.
thread_local SecondSubscriber* only_for = nullptr;

bool Wants(SecondSubscriber& subscriber, const Record& record) {
  if (only_for != nullptr && only_for != &subscriber) return false;
  if (!subscriber.used.load() || record.kind >= kMostKinds) return false;
  if (!subscriber.kinds[record.kind].load(std::memory_order_relaxed)) return false;
  const bool is_api =
      record.kind == CUPTI_ACTIVITY_KIND_RUNTIME || record.kind == CUPTI_ACTIVITY_KIND_DRIVER;
  if (!is_api) return true;
  const int domain = record.kind == CUPTI_ACTIVITY_KIND_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API
                                                               : CUPTI_CB_DOMAIN_RUNTIME_API;
  const uint32_t cbid = static_cast<const CUpti_ActivityAPI*>(record.data)->cbid;
  return cbid < kMostCallbackIds && !subscriber.calls_off[domain][cbid].load();
}

void Leave(SecondSubscriber& subscriber) {
  for (uint32_t kind = 0; kind < kMostKinds; ++kind) {
    if (subscriber.kinds[kind].exchange(false)) UniteKind(kind);
  }
  for (uint32_t domain = 0; domain < CUPTI_CB_DOMAIN_SIZE; ++domain) {
    for (uint32_t cbid = 0; cbid < kMostCallbackIds; ++cbid) {
      subscriber.calls_off[domain][cbid].store(false);
      if (subscriber.wanted[domain][cbid].exchange(false)) UniteCallback(domain, cbid);
    }
  }
  subscriber.callback.store(nullptr);
  const int own = Machine()->in_tool_callback() ? 1 : 0;
  while (subscriber.callbacks_running.load() > own) std::this_thread::yield();
  SetBufferCallbacks(*subscriber.buffers, nullptr);
  DiscardBuffers(*subscriber.buffers);
  subscriber.user_defined.store(false);
  subscriber.used.store(false);
}

CUptiResult Fail(CUptiResult result) { return LastCuptiError() = result; }

void Dump(SecondSubscriber& subscriber, CUpti_ActivityKind kind) {
  only_for = &subscriber;
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE) {
    WriteDeviceRecords();
  } else if (kind == CUPTI_ACTIVITY_KIND_CONTEXT) {
    Machine()->for_each_resource([](const Resource& resource) {
      if (resource.change == ResourceChange::kContextCreated) WriteContextRecord(resource);
    });
  } else if (kind == CUPTI_ACTIVITY_KIND_STREAM) {
    Machine()->for_each_resource([](const Resource& resource) {
      if (resource.change == ResourceChange::kStreamCreated) WriteStreamRecord(resource);
    });
  }
  only_for = nullptr;
}

CUptiResult EnableKind(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind,
                       const second_api::ActivityConfig* config, bool dump) {
  SecondSubscriber* subscriber = Find(handle);
  if (subscriber == nullptr) return Fail(CUPTI_ERROR_INVALID_PARAMETER);
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || static_cast<uint32_t>(kind) >= kMostKinds) {
    return Fail(CUPTI_ERROR_INVALID_KIND);
  }
  if (RecordSize(kind) == 0) {
    RefuseCupti("cuptiActivityEnable_v2 of a kind that is not modelled");
    return Fail(CUPTI_ERROR_NOT_COMPATIBLE);
  }
  if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) {
    if (TheSecond().allow_multiple && TheSecond().graphs_whole != 1) {
      return Fail(CUPTI_ERROR_NOT_COMPATIBLE);
    }
    TheSubscription().graphs_whole.store(true);
  }
  if (subscriber->user_defined.load()) {
    if (config == nullptr) return Fail(CUPTI_ERROR_INVALID_PARAMETER);
    std::lock_guard lock(subscriber->mutex);
    if (!subscriber->shapes[kind].Choose(kind, config->selection)) {
      RefuseCupti("a field of a user-defined record that is not modelled");
      return Fail(CUPTI_ERROR_NOT_COMPATIBLE);
    }
  }
  ListenToMachine();
  NoteActivity();
  const bool was_on = subscriber->kinds[kind].exchange(true);
  UniteKind(kind);
  const bool is_device = kind == CUPTI_ACTIVITY_KIND_DEVICE;
  if (Machine()->initialized() && (dump || (is_device && !was_on))) Dump(*subscriber, kind);
  return CUPTI_SUCCESS;
}

CUptiResult EnableCall(CUpti_SubscriberHandle handle, int domain, CUpti_CallbackId cbid,
                       uint8_t enable) {
  SecondSubscriber* subscriber = Find(handle);
  if (subscriber == nullptr || cbid == 0 || cbid >= kMostCallbackIds) {
    return Fail(CUPTI_ERROR_INVALID_PARAMETER);
  }
  subscriber->calls_off[domain][cbid].store(enable == 0);
  return CUPTI_SUCCESS;
}

CUptiResult SetGraphsWhole(int value) {
  int& chosen = TheSecond().graphs_whole;
  if (AnyKindOfAny() || (chosen >= 0 && chosen != value)) {
    return Fail(CUPTI_ERROR_INVALID_OPERATION);
  }
  chosen = value;
  if (value == 1) TheSubscription().graphs_whole.store(true);
  return CUPTI_SUCCESS;
}

CUptiResult SetByte(SecondSubscriber& subscriber, int attribute, uint8_t value) {
  const bool kernels_on = subscriber.kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL].load();
  switch (attribute) {
    case second_api::kUserDefinedRecords:
      if (subscriber.AnyKind()) return Fail(CUPTI_ERROR_INVALID_OPERATION);
      subscriber.user_defined.store(value != 0);
      return CUPTI_SUCCESS;
    case CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER:
      SetBuffersZeroed(*subscriber.buffers, value != 0);
      return CUPTI_SUCCESS;
    case CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER:
      if (kernels_on) {
        Machine()->note_violation("PER_THREAD_ACTIVITY_BUFFER set in the middle of a session");
        return Fail(CUPTI_ERROR_INVALID_OPERATION);
      }
      SetPerThreadBuffers(*subscriber.buffers, value != 0);
      return CUPTI_SUCCESS;
    case second_api::kGraphsWhole:
      return SetGraphsWhole(value);
    default:  // what changes nothing in these records
      return CUPTI_SUCCESS;
  }
}

// 0: there is no such attribute, or nobody may set it.
size_t BytesOfAttribute(int attribute) {
  if (attribute == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT) return sizeof(size_t);
  if (attribute == second_api::kThreadIdType) return sizeof(CUpti_ActivityThreadIdType);
  if (attribute == second_api::kTimestampCallback) return sizeof(void*);
  const bool is_byte =
      attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER ||
      attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER ||
      (attribute >= second_api::kUserDefinedRecords && attribute < 24 && attribute != 12);
  return is_byte ? 1 : 0;
}

}  // namespace

int SecondSubscribers() {
  auto& all = TheSecond().subscribers;
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [](const auto& one) { return one.used.load(); }));
}

void WriteForSecondApi(const Record& record, const Misbehaviour& twist) {
  static thread_local std::vector<uint8_t> bytes;
  for (SecondSubscriber& subscriber : TheSecond().subscribers) {
    if (!Wants(subscriber, record)) continue;
    if (twist.drops()) {
      if (twist.counts_drop()) CountDropped(*subscriber.buffers);
      continue;
    }
    if (!subscriber.user_defined.load()) {
      WriteInto(*subscriber.buffers, record, RecordSize(record.kind));
      continue;
    }
    RecordShape shape;
    {
      std::lock_guard lock(subscriber.mutex);
      shape = subscriber.shapes[record.kind];
    }
    const Record shaped = shape.Shape(record, bytes);
    WriteInto(*subscriber.buffers, shaped, shaped.data_bytes);
  }
}

void RaiseForSecondApi(CUpti_CallbackDomain domain, uint32_t cbid, const void* data) {
  for (SecondSubscriber& subscriber : TheSecond().subscribers) {
    if (!subscriber.wanted[domain][cbid].load(std::memory_order_relaxed)) continue;
    subscriber.callbacks_running.fetch_add(1);
    if (CUpti_CallbackFunc callback = subscriber.callback.load()) {
      callback(subscriber.user.load(), domain, cbid, data);
    }
    subscriber.callbacks_running.fetch_sub(1);
  }
}

bool UnsubscribeSecond(CUpti_SubscriberHandle handle) {
  SecondSubscriber* subscriber = Find(handle);
  if (subscriber == nullptr) return false;
  std::lock_guard lock(TheSecond().mutex);
  Leave(*subscriber);
  Machine()->note_subscription(false);
  return true;
}

bool EnableCallbacksOfSecond(CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                             uint32_t first, uint32_t last, bool enable) {
  SecondSubscriber* subscriber = Find(handle);
  if (subscriber == nullptr) return false;
  for (uint32_t cbid = first; cbid < last; ++cbid) {
    subscriber->wanted[domain][cbid].store(enable);
    UniteCallback(domain, cbid);
  }
  return true;
}

CUptiResult SubscribeSecond(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                            void* user, bool allow_multiple) {
  Everybody& everybody = TheSecond();
  std::lock_guard lock(everybody.mutex);
  const bool is_first = SecondSubscribers() == 0;
  const bool fits =
      is_first || (Script().several_subscribers && allow_multiple && everybody.allow_multiple);
  auto free = std::find_if(everybody.subscribers.begin(), everybody.subscribers.end(),
                           [](const auto& one) { return !one.used.load(); });
  if (!fits || free == everybody.subscribers.end()) {
    return Fail(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  }
  if (is_first) everybody.allow_multiple = allow_multiple;
  free->user.store(user);
  free->callback.store(callback);
  free->used.store(true);
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&*free);
  if (ListenToMachine()) Machine()->note_subscription(true);
  return CUPTI_SUCCESS;
}

bool ForgetSecondSubscribers() {
  if (SecondSubscribers() > 1) return false;
  for (SecondSubscriber& subscriber : TheSecond().subscribers) {
    if (subscriber.used.load()) Leave(subscriber);
  }
  return true;
}

}  // namespace ranktap::standin

using namespace ranktap::standin;
namespace second_api = ranktap::second_api;

// The vendor's header that the tree is built with has none of them.
extern "C" {

#pragma GCC visibility push(default)
CUptiResult cuptiActivityEnable_v2(CUpti_SubscriberHandle, CUpti_ActivityKind,
                                   second_api::ActivityConfig*);
CUptiResult cuptiActivityEnableAndDump_v2(CUpti_SubscriberHandle, CUpti_ActivityKind,
                                          second_api::ActivityConfig*);
CUptiResult cuptiActivityDisable_v2(CUpti_SubscriberHandle, CUpti_ActivityKind,
                                    second_api::ActivityConfig*);
CUptiResult cuptiActivityRegisterCallbacks_v2(CUpti_SubscriberHandle, second_api::BufferRequested,
                                              second_api::BufferCompleted);
CUptiResult cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle, int, size_t*, void*);
CUptiResult cuptiActivityGetAttribute_v2(CUpti_SubscriberHandle, int, size_t*, void*);
CUptiResult cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle, uint8_t*, size_t,
                                          CUpti_Activity**);
CUptiResult cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle, CUcontext, uint32_t,
                                                 size_t*);
CUptiResult cuptiActivityEnableRuntimeApi_v2(CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t);
CUptiResult cuptiActivityEnableDriverApi_v2(CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t);
CUptiResult cuptiGetTimestamp_v2(CUpti_SubscriberHandle, uint64_t*);
#pragma GCC visibility pop

CUptiResult cuptiActivityEnable_v2(CUpti_SubscriberHandle subscriber, CUpti_ActivityKind kind,
                                   second_api::ActivityConfig* config) {
  RETURN_UNLESS_ADMITTED();
  return EnableKind(subscriber, kind, config, false);
}

CUptiResult cuptiActivityEnableAndDump_v2(CUpti_SubscriberHandle subscriber,
                                          CUpti_ActivityKind kind,
                                          second_api::ActivityConfig* config) {
  RETURN_UNLESS_ADMITTED();
  return EnableKind(subscriber, kind, config, true);
}

CUptiResult cuptiActivityDisable_v2(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind,
                                    second_api::ActivityConfig*) {
  RETURN_UNLESS_ADMITTED();
  SecondSubscriber* subscriber = Find(handle);
  if (subscriber == nullptr) return Fail(CUPTI_ERROR_INVALID_PARAMETER);
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || static_cast<uint32_t>(kind) >= kMostKinds) {
    return Fail(CUPTI_ERROR_INVALID_KIND);
  }
  subscriber->kinds[kind].store(false);
  UniteKind(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks_v2(CUpti_SubscriberHandle handle,
                                              second_api::BufferRequested requested,
                                              second_api::BufferCompleted completed) {
  RETURN_UNLESS_ADMITTED();
  SecondSubscriber* subscriber = Find(handle);
  if (subscriber == nullptr || requested == nullptr || completed == nullptr) {
    return Fail(CUPTI_ERROR_INVALID_PARAMETER);
  }
  subscriber->requested.store(requested);
  subscriber->completed.store(completed);
  SetBufferCallbacks(*subscriber->buffers, subscriber);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle handle, int attribute,
                                         size_t* bytes, void* value) {
  RETURN_UNLESS_ADMITTED();
  const size_t size = BytesOfAttribute(attribute);
  if (size == 0 || bytes == nullptr || value == nullptr) return Fail(CUPTI_ERROR_INVALID_PARAMETER);
  if (*bytes < size) return Fail(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  // Of all: before any subscriber, who is not looked at.
  if (attribute == second_api::kHardwareEvents) {
    return cuptiActivityEnableHWTrace(*static_cast<uint8_t*>(value));
  }
  SecondSubscriber* subscriber = Find(handle);
  if (subscriber == nullptr) return Fail(CUPTI_ERROR_INVALID_PARAMETER);
  if (attribute == CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT) {
    SetDeviceBufferLimit(*static_cast<size_t*>(value));
    return CUPTI_SUCCESS;
  }
  if (attribute == second_api::kThreadIdType) {
    TheSubscription().thread_id_type.store(*static_cast<CUpti_ActivityThreadIdType*>(value));
    return CUPTI_SUCCESS;
  }
  if (attribute == second_api::kTimestampCallback) {
    RefuseCupti("TIMESTAMP_CALLBACK");
    return Fail(CUPTI_ERROR_NOT_SUPPORTED);
  }
  return SetByte(*subscriber, attribute, *static_cast<uint8_t*>(value));
}

CUptiResult cuptiActivityGetAttribute_v2(CUpti_SubscriberHandle, int attribute, size_t* bytes,
                                         void* value) {
  RETURN_UNLESS_ADMITTED();
  if (bytes == nullptr || value == nullptr || *bytes == 0) {
    return Fail(CUPTI_ERROR_INVALID_PARAMETER);
  }
  if (attribute != second_api::kGraphsWhole) return Fail(CUPTI_ERROR_INVALID_PARAMETER);
  *static_cast<uint8_t*>(value) = TheSecond().graphs_whole == 1 ? 1 : 0;
  *bytes = 1;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle handle, uint8_t* buffer,
                                          size_t valid, CUpti_Activity** record) {
  SecondSubscriber* subscriber = Find(handle);
  if (subscriber == nullptr || buffer == nullptr || record == nullptr) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  uint8_t* at = buffer;
  if (*record != nullptr) {
    at = reinterpret_cast<uint8_t*>(*record);
    at += subscriber->BytesOf((*record)->kind);
  }
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* next = reinterpret_cast<CUpti_Activity*>(at);
  if (subscriber->BytesOf(next->kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  *record = next;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle handle, CUcontext, uint32_t,
                                                 size_t* dropped) {
  RETURN_UNLESS_ADMITTED();
  SecondSubscriber* subscriber = Find(handle);
  if (subscriber == nullptr || dropped == nullptr) return Fail(CUPTI_ERROR_INVALID_PARAMETER);
  *dropped = TakeDroppedRecords(*subscriber->buffers);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableRuntimeApi_v2(CUpti_SubscriberHandle subscriber,
                                             CUpti_CallbackId cbid, uint8_t enable) {
  RETURN_UNLESS_ADMITTED();
  return EnableCall(subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, cbid, enable);
}

CUptiResult cuptiActivityEnableDriverApi_v2(CUpti_SubscriberHandle subscriber,
                                            CUpti_CallbackId cbid, uint8_t enable) {
  RETURN_UNLESS_ADMITTED();
  return EnableCall(subscriber, CUPTI_CB_DOMAIN_DRIVER_API, cbid, enable);
}

CUptiResult cuptiGetTimestamp_v2(CUpti_SubscriberHandle handle, uint64_t* timestamp) {
  RETURN_UNLESS_ADMITTED();
  if (Find(handle) == nullptr || timestamp == nullptr) return Fail(CUPTI_ERROR_INVALID_PARAMETER);
  *timestamp = Machine()->device_clock_ns();
  return CUPTI_SUCCESS;
}

}  // extern "C"
