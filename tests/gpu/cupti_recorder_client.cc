// Preloaded, the recorder is found before libcupti: the CUPTI calls of the program's own profiler
// come here. At the first the recorder gives CUPTI up; each is recorded with its result and passed
// on, and the buffers that the client gets are recorded before it sees them.
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
  RecordClientCall(std::string(name) + "(" + shown + ") = " + std::to_string(result));
  return result;
}

void OnClientRequested(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  g_requested(buffer, bytes, max_records);
}

void OnClientCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
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
#define RANKTAP_CLIENT_CALL extern "C" __attribute__((visibility("default"))) int

namespace client = ranktap::gpu;

RANKTAP_CLIENT_CALL cuptiSubscribe(void** subscriber, client::CallbackFunction callback,
                                   void* user) {
  return client::Pass("cuptiSubscribe", "", subscriber, callback, user);
}
RANKTAP_CLIENT_CALL cuptiSubscribe_v2(void** subscriber, client::CallbackFunction callback,
                                      void* user, void* parameters) {
  return client::Pass("cuptiSubscribe_v2", "", subscriber, callback, user, parameters);
}
RANKTAP_CLIENT_CALL cuptiUnsubscribe(void* subscriber) {
  return client::Pass("cuptiUnsubscribe", "", subscriber);
}
RANKTAP_CLIENT_CALL cuptiFinalize() { return client::Pass("cuptiFinalize", ""); }
RANKTAP_CLIENT_CALL cuptiEnableCallback(uint32_t enable, void* subscriber, uint32_t domain,
                                        uint32_t cbid) {
  return client::Pass("cuptiEnableCallback", client::Shown(enable, domain, cbid), enable,
                      subscriber, domain, cbid);
}
RANKTAP_CLIENT_CALL cuptiEnableDomain(uint32_t enable, void* subscriber, uint32_t domain) {
  return client::Pass("cuptiEnableDomain", client::Shown(enable, domain), enable, subscriber,
                      domain);
}
RANKTAP_CLIENT_CALL cuptiActivityRegisterCallbacks(client::BufferRequested requested,
                                                   client::BufferCompleted completed) {
  client::g_requested = requested;
  client::g_completed = completed;
  return client::Pass("cuptiActivityRegisterCallbacks", "", &client::OnClientRequested,
                      &client::OnClientCompleted);
}
RANKTAP_CLIENT_CALL cuptiActivityRegisterTimestampCallback(uint64_t (*timestamp)()) {
  return client::Pass("cuptiActivityRegisterTimestampCallback",
                      timestamp == nullptr ? "none" : std::to_string(timestamp()), timestamp);
}
RANKTAP_CLIENT_CALL cuptiActivityEnable(uint32_t kind) {
  return client::Pass("cuptiActivityEnable", client::Shown(kind), kind);
}
RANKTAP_CLIENT_CALL cuptiActivityDisable(uint32_t kind) {
  return client::Pass("cuptiActivityDisable", client::Shown(kind), kind);
}
RANKTAP_CLIENT_CALL cuptiActivityFlushAll(uint32_t flag) {
  return client::Pass("cuptiActivityFlushAll", client::Shown(flag), flag);
}
RANKTAP_CLIENT_CALL cuptiActivitySetAttribute(int attribute, size_t* bytes, void* value) {
  return client::Pass("cuptiActivitySetAttribute", client::Shown(attribute), attribute, bytes,
                      value);
}
