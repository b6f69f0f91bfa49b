// Traced calls: the subscriber's callbacks, and the API records.
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakes/cupti/activity_buffers.h"
#include "tests/fakes/cupti/external_correlation.h"
#include "tests/fakes/cupti/hook_functions.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/subscription.h"

namespace ranktap::standin {
namespace {

CUpti_CallbackDomain DomainOf(const ApiCall& call) {
  return static_cast<CUpti_CallbackDomain>(call.domain);
}

// Nothing is promised of a call's correlation data before the client has set it, nor of the symbol
// outside of launches: the one is what was there before, the other is no address.
uint64_t Leftover() {
  static thread_local uint64_t state = 0x9e3779b97f4a7c15 ^ static_cast<uint64_t>(pthread_self());
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

const char* SymbolOf(const ApiCall& call) {
  if (call.symbol != nullptr) return call.symbol;
  return reinterpret_cast<const char*>(0x5a5a'0000'0000'0000 | Leftover() >> 16);
}

void RaiseApi(ApiCall& call, CUpti_ApiCallbackSite site) {
  const uint32_t cbid = CallbackIdOf(call.domain, call.cbid);
  if (!Wanted(DomainOf(call), cbid)) return;
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionName = call.name;
  data.functionParams = call.params;
  data.functionReturnValue = const_cast<void*>(call.result);
  data.symbolName = SymbolOf(call);
  data.context = call.context;
  data.contextUid = call.context_id;
  data.correlationData = &call.correlation_data;
  data.correlationId = VisibleCorrelation(call.correlation, call.domain, call.cbid);
  Raise(DomainOf(call), cbid, &data);
}

}  // namespace

void OnEnter(ApiCall& call) {
  call.correlation_data = Leftover();
  RaiseApi(call, CUPTI_API_ENTER);
}

void OnExit(ApiCall& call) {
  // We were not there when it began.
  if (call.enter_device_ns == 0) call.correlation_data = Leftover();
  if (call.enter_device_ns != 0 && HaveBufferCallbacks() &&
      ApiRecordWanted(call.domain, CallbackIdOf(call.domain, call.cbid))) {
    WriteExternalCorrelations(call.correlation);
    CUpti_ActivityAPI record{};
    record.kind = call.domain == ApiDomain::kDriver ? CUPTI_ACTIVITY_KIND_DRIVER
                                                    : CUPTI_ACTIVITY_KIND_RUNTIME;
    record.cbid = CallbackIdOf(call.domain, call.cbid);
    record.start = call.enter_device_ns;
    record.end = Machine()->device_clock_ns();
    record.processId = static_cast<uint32_t>(getpid());
    record.threadId = RecordThreadId();
    record.correlationId = call.correlation;
    record.returnValue = call.result == nullptr ? 0 : *static_cast<const uint32_t*>(call.result);
    WriteRecord({static_cast<uint32_t>(record.kind), &record, sizeof record});
  }
  RaiseApi(call, CUPTI_API_EXIT);
}

}  // namespace ranktap::standin
