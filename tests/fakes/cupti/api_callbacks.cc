// Traced calls: the subscriber's callbacks, and the API records.
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

void RaiseApi(ApiCall& call, CUpti_ApiCallbackSite site) {
  const uint32_t cbid = CallbackIdOf(call.domain, call.cbid);
  if (!Wanted(DomainOf(call), cbid)) return;
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionName = call.name;
  data.functionParams = call.params;
  data.functionReturnValue = const_cast<void*>(call.result);
  data.symbolName = call.symbol;
  data.context = call.context;
  data.contextUid = call.context_id;
  data.correlationData = &call.correlation_data;
  data.correlationId = VisibleCorrelation(call.correlation, call.domain, call.cbid);
  Raise(DomainOf(call), cbid, &data);
}

}  // namespace

void OnEnter(ApiCall& call) { RaiseApi(call, CUPTI_API_ENTER); }

void OnExit(ApiCall& call) {
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
