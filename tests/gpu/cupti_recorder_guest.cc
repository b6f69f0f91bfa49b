// Preloaded, the recorder is found before libcupti: the CUPTI calls of the program's own profiler
// come here. At the first the recorder gives CUPTI up; each is recorded with its result and passed
// on, and the buffers that the guest gets are recorded before it sees them.
#include <dlfcn.h>

#include <string>

#include "tests/gpu/cupti_recorder.h"

namespace ranktap::gpu {
namespace {

using namespace agent::cupti;  // NOLINT: this file is about CUPTI

BufferRequested g_requested = nullptr;
BufferCompleted g_completed = nullptr;

template <typename Function>
Function Real(const char* name) {
  static void* const library = dlopen(RecordedCupti().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

// Error 999 (CUPTI_ERROR_UNKNOWN) where the library has no such function.
template <typename... Arguments>
Result Pass(const char* name, const std::string& shown, Arguments... arguments) {
  YieldRecorder();
  auto* const function = Real<Result (*)(Arguments...)>(name);
  const Result result = function == nullptr ? 999 : function(arguments...);
  RecordGuestCall(std::string(name) + "(" + shown + ") = " + std::to_string(result));
  return result;
}

void OnGuestRequested(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  g_requested(buffer, bytes, max_records);
}

void OnGuestCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                      size_t valid_bytes) {
  RecordBuffer(context, stream, buffer, valid_bytes);
  g_completed(context, stream, buffer, bytes, valid_bytes);
}

std::string Shown(uint64_t first) { return std::to_string(first); }
template <typename... Rest>
std::string Shown(uint64_t first, Rest... rest) {
  return std::to_string(first) + ", " + Shown(rest...);
}

}  // namespace
}  // namespace ranktap::gpu

// The vendor's names, with our types of the same size.
#define RANKTAP_GUEST_CALL extern "C" __attribute__((visibility("default"))) int

namespace guest = ranktap::gpu;

RANKTAP_GUEST_CALL cuptiSubscribe(void** subscriber, guest::CallbackFunction callback, void* user) {
  return guest::Pass("cuptiSubscribe", "", subscriber, callback, user);
}
RANKTAP_GUEST_CALL cuptiSubscribe_v2(void** subscriber, guest::CallbackFunction callback,
                                     void* user, void* parameters) {
  return guest::Pass("cuptiSubscribe_v2", "", subscriber, callback, user, parameters);
}
RANKTAP_GUEST_CALL cuptiUnsubscribe(void* subscriber) {
  return guest::Pass("cuptiUnsubscribe", "", subscriber);
}
RANKTAP_GUEST_CALL cuptiFinalize() { return guest::Pass("cuptiFinalize", ""); }
RANKTAP_GUEST_CALL cuptiEnableCallback(uint32_t enable, void* subscriber, uint32_t domain,
                                       uint32_t cbid) {
  return guest::Pass("cuptiEnableCallback", guest::Shown(enable, domain, cbid), enable, subscriber,
                     domain, cbid);
}
RANKTAP_GUEST_CALL cuptiEnableDomain(uint32_t enable, void* subscriber, uint32_t domain) {
  return guest::Pass("cuptiEnableDomain", guest::Shown(enable, domain), enable, subscriber, domain);
}
RANKTAP_GUEST_CALL cuptiActivityRegisterCallbacks(guest::BufferRequested requested,
                                                  guest::BufferCompleted completed) {
  guest::g_requested = requested;
  guest::g_completed = completed;
  return guest::Pass("cuptiActivityRegisterCallbacks", "", &guest::OnGuestRequested,
                     &guest::OnGuestCompleted);
}
RANKTAP_GUEST_CALL cuptiActivityRegisterTimestampCallback(uint64_t (*timestamp)()) {
  return guest::Pass("cuptiActivityRegisterTimestampCallback",
                     timestamp == nullptr ? "none" : std::to_string(timestamp()), timestamp);
}
RANKTAP_GUEST_CALL cuptiActivityEnable(uint32_t kind) {
  return guest::Pass("cuptiActivityEnable", guest::Shown(kind), kind);
}
RANKTAP_GUEST_CALL cuptiActivityDisable(uint32_t kind) {
  return guest::Pass("cuptiActivityDisable", guest::Shown(kind), kind);
}
RANKTAP_GUEST_CALL cuptiActivityFlushAll(uint32_t flag) {
  return guest::Pass("cuptiActivityFlushAll", guest::Shown(flag), flag);
}
RANKTAP_GUEST_CALL cuptiActivitySetAttribute(int attribute, size_t* bytes, void* value) {
  return guest::Pass("cuptiActivitySetAttribute", guest::Shown(attribute), attribute, bytes, value);
}
