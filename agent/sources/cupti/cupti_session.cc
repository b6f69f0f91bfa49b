// Arming and disarming.
// Runs on: see cupti_session.h.  May not: call cuptiFinalize, ever.
#include "agent/sources/cupti/cupti_session.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_second_api.h"

namespace ranktap::agent::cupti {
namespace {

constexpr std::array<Kind, 12> kRecordedKinds = {
    Kind::kConcurrentKernel, Kind::kMemcpy,     Kind::kMemset,  Kind::kSynchronization,
    Kind::kOverhead,         Kind::kDevice,     Kind::kContext, Kind::kStream,
    Kind::kMemory2,          Kind::kMemoryPool, Kind::kMemcpy2, Kind::kJit,
};

constexpr std::array<ResourceCbid, 14> kResources = {
    ResourceCbid::kContextCreated,   ResourceCbid::kContextDestroyStarting,
    ResourceCbid::kStreamCreated,    ResourceCbid::kStreamDestroyStarting,
    ResourceCbid::kModuleLoaded,     ResourceCbid::kModuleUnloadStarting,
    ResourceCbid::kGraphCreated,     ResourceCbid::kGraphDestroyStarting,
    ResourceCbid::kGraphCloned,      ResourceCbid::kGraphNodeCreated,
    ResourceCbid::kGraphNodeCloned,  ResourceCbid::kGraphNodeDestroyStarting,
    ResourceCbid::kGraphExecCreated, ResourceCbid::kGraphExecDestroyStarting,
};

std::string WhyNotSubscribed(Result result) {
  switch (result) {
    case kErrorMultipleSubscribers:
    case kErrorMaxLimitReached:
      return "CUPTI is in use by another tool in this process";
    case kErrorNotInitialized:
      return "CUPTI does not start (is it newer than the driver?)";
    default:
      return "cuptiSubscribe failed with error " + std::to_string(result);
  }
}

bool StaysOn(Kind kind) { return kind == Kind::kConcurrentKernel || kind == Kind::kGraphTrace; }

}  // namespace

std::span<const Kind> RecordedKinds() { return kRecordedKinds; }
std::span<const ResourceCbid> RecordedResources() { return kResources; }

bool Session::Try(Result result) {
  if (result == kSuccess) return true;
  ++errors_;
  return false;
}

void Session::SetThreadIds() {
  if (parked_) return;
  if (loaded_.api.SetThreadIdType == nullptr) return;
  if (thread_ids_set_ && features_.thread_id_type_once) return;
  if (uint32_t found = 0; !features_.thread_id_type_once &&
                          loaded_.api.GetThreadIdType != nullptr &&
                          loaded_.api.GetThreadIdType(&found) == kSuccess) {
    found_thread_ids_ = found;
  }
  // Before any kind is on: records carry the ids of the time they were made.
  thread_ids_set_ = Try(loaded_.api.SetThreadIdType(kThreadIdSystem));
}

// Little endian: a value of one byte is the first of eight.
void Session::SetAttribute(int attribute, uint64_t wanted) {
  uint64_t found = 0;
  size_t bytes = AttributeBytes(attribute);
  if (loaded_.api.ActivityGetAttribute(attribute, &bytes, &found) == kSuccess && found != wanted) {
    found_.push_back({attribute, found});
  }
  bytes = AttributeBytes(attribute);
  (void)Try(loaded_.api.ActivitySetAttribute(attribute, &bytes, &wanted));
}

// CUPTI's own limit is 250 buffers of 3.2 MB of the program's device memory. It was seen to take
// them all for the nodes of graphs (parcagpu#23, 13.0).
void Session::SetPoolLimit() {
  uint64_t found = 0;
  size_t bytes = sizeof(size_t);
  const bool is_known =
      loaded_.api.ActivityGetAttribute(kAttributeDeviceBufferPoolLimit, &bytes, &found) == kSuccess;
  if (is_known && found > most_device_buffers_) {
    SetAttribute(kAttributeDeviceBufferPoolLimit, most_device_buffers_);
  }
}

// A client that lends CUPTI buffers that are not zero would read their old bytes as records:
// PyTorch's are used memory from its second session on.
void Session::PutBackSettings() {
  for (Setting& setting : found_) {
    size_t bytes = AttributeBytes(setting.attribute);
    (void)Try(loaded_.api.ActivitySetAttribute(setting.attribute, &bytes, &setting.value));
  }
  found_.clear();
  if (found_thread_ids_) (void)Try(loaded_.api.SetThreadIdType(*found_thread_ids_));
  found_thread_ids_.reset();
}

bool Session::RegisterBuffers() {
  if (callbacks_registered_) return true;
  // Attributes first: they must not change while there are buffers.
  SetAttribute(kAttributeZeroedOutBuffer, 1);
  if (features_.ask_for_buffers_per_thread) SetAttribute(kAttributePerThreadBuffer, 1);
  SetPoolLimit();
  callbacks_registered_ =
      Try(loaded_.api.ActivityRegisterCallbacks(&OnBufferRequested, &OnBufferCompleted));
  return callbacks_registered_;
}

bool Session::Enable(Kind kind, bool late) {
  if (std::ranges::find(enabled_, kind) != enabled_.end()) return false;
  const bool has_past = kind == Kind::kDevice || kind == Kind::kContext || kind == Kind::kStream;
  if (late && has_past && loaded_.api.ActivityEnableAndDump != nullptr &&
      Try(loaded_.api.ActivityEnableAndDump(static_cast<uint32_t>(kind)))) {
    return true;
  }
  return Try(loaded_.api.ActivityEnable(static_cast<uint32_t>(kind)));
}

void Session::TakeGraphsWhole() {
  graph_nodes_ = false;
  graphs_chosen_ = true;
}

// The driver's call inside the runtime's stands for both.
bool Session::IsCalledBack(Domain domain, const Call& call) const {
  const bool is_launch = call.group == CallGroup::kLaunch || call.group == CallGroup::kGraphLaunch;
  return !(features_.launches_by_driver_alone && is_launch && domain == Domain::kRuntime);
}

void Session::EnableCalls(bool on) {
  calls_.ForEach([&](Domain domain, uint32_t cbid, const Call& call) {
    if (!IsCalledBack(domain, call)) return;
    (void)Try(
        loaded_.api.EnableCallback(on ? 1 : 0, subscriber_, static_cast<uint32_t>(domain), cbid));
  });
}

void Session::EnableCallbacks() {
  const Api& api = loaded_.api;
  EnableCalls(true);
  for (const ResourceCbid cbid : kResources) {
    (void)Try(api.EnableCallback(1, subscriber_, static_cast<uint32_t>(Domain::kResource),
                                 static_cast<uint32_t>(cbid)));
  }
  if (features_.tells_its_end) {
    (void)Try(api.EnableCallback(1, subscriber_, static_cast<uint32_t>(Domain::kState),
                                 kStateFatalError));
  }
  if (features_.may_use_hardware_events) {
    (void)Try(
        api.EnableCallback(1, subscriber_, static_cast<uint32_t>(Domain::kState), kStateError));
  }
}

void Session::EnableKinds(bool late) {
  for (const Kind kind : kRecordedKinds) {
    if (Enable(kind, late)) enabled_.push_back(kind);
  }
  graphs_chosen_ = true;
  if (second_api::IsOn()) graph_nodes_ = !second_api::GraphsAreWhole();
  if (!graph_nodes_ && Enable(Kind::kGraphTrace, late)) enabled_.push_back(Kind::kGraphTrace);
}

std::string Session::Arm(bool late) {
  const Result subscribed = loaded_.api.Subscribe(&subscriber_, &OnCallback, nullptr);
  owned_by_other_ = subscribed == kErrorMultipleSubscribers || subscribed == kErrorMaxLimitReached;
  if (subscribed != kSuccess) {
    ++errors_;
    subscriber_ = nullptr;
    // The other client is to find nothing of ours.
    if (parked_) Disarm();
    return WhyNotSubscribed(subscribed);
  }
  return ArmWithoutCallbacks(late);
}

std::string Session::ArmWithoutCallbacks(bool late) {
  SetThreadIds();
  if (!RegisterBuffers()) {
    Disarm();
    return "CUPTI takes no activity buffers";
  }
  armed_ = true;
  if (subscriber_ != nullptr) EnableCallbacks();
  EnableKinds(late);
  return {};
}

void Session::StopCallbacks() {
  if (subscriber_ == nullptr) return;
  EnableCalls(false);
  for (const ResourceCbid cbid : kResources) {
    (void)Try(loaded_.api.EnableCallback(0, subscriber_, static_cast<uint32_t>(Domain::kResource),
                                         static_cast<uint32_t>(cbid)));
  }
}

void Session::DisableKinds() {
  for (const Kind kind : enabled_) {
    (void)Try(loaded_.api.ActivityDisable(static_cast<uint32_t>(kind)));
  }
  enabled_.clear();
  // The program's client would get records of these calls, asked or not.
  if (api_records_ && ChoosesApiRecords()) ChooseApiRecords(false);
  api_records_ = false;
}

void Session::Disarm() {
  DisableKinds();
  PutBackSettings();
  callbacks_registered_ = parked_ = false;
  if (subscriber_ != nullptr) (void)Try(loaded_.api.Unsubscribe(subscriber_));
  subscriber_ = nullptr;
  armed_ = false;
}

void Session::Park() {
  const auto rest = std::ranges::partition(enabled_, StaysOn);
  std::vector<Kind> kept(enabled_.begin(), rest.begin());
  enabled_.erase(enabled_.begin(), rest.begin());
  std::vector<Setting> found = std::exchange(found_, {});
  const std::optional<uint32_t> found_thread_ids = std::exchange(found_thread_ids_, {});
  Disarm();
  enabled_ = std::move(kept);
  found_ = std::move(found);
  found_thread_ids_ = found_thread_ids;
  callbacks_registered_ = parked_ = true;
}

void Session::Forget() {
  found_.clear();
  found_thread_ids_.reset();
  enabled_.clear();
  api_records_ = callbacks_registered_ = armed_ = parked_ = false;
  subscriber_ = nullptr;
}

bool Session::ChoosesApiRecords() const {
  return features_.api_records_by_call && !second_api::IsOn() &&
         loaded_.api.ActivityEnableRuntimeApi != nullptr &&
         loaded_.api.ActivityEnableDriverApi != nullptr;
}

void Session::ChooseApiRecords(bool on) {
  calls_.ForEach([&](Domain domain, uint32_t cbid, const Call& call) {
    if (call.group != CallGroup::kLaunch && call.group != CallGroup::kGraphLaunch &&
        call.group != CallGroup::kCopy) {
      return;
    }
    (void)Try(domain == Domain::kRuntime ? loaded_.api.ActivityEnableRuntimeApi(cbid, on ? 1 : 0)
                                         : loaded_.api.ActivityEnableDriverApi(cbid, on ? 1 : 0));
  });
}

void Session::EnableApiRecords() {
  api_records_ = true;
  if (ChoosesApiRecords()) return ChooseApiRecords(true);
  for (const Kind kind : {Kind::kRuntime, Kind::kDriver}) {
    if (Try(loaded_.api.ActivityEnable(static_cast<uint32_t>(kind)))) enabled_.push_back(kind);
  }
}

}  // namespace ranktap::agent::cupti
