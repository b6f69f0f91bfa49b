#include "tests/fakes/cupti/misbehaviour.h"

#include <string.h>

#include <atomic>

#include "tests/fakes/cupti/cupti_script.h"
#include "tests/fakes/cupti/layout.h"
#include "tests/fakes/cupti/subscription.h"

namespace ranktap::standin {
namespace {

bool Due(uint64_t every, uint64_t serial) { return every != 0 && serial % every == 0; }

// As the vendor's library on an error that it cannot mend: told, then cuptiFinalize.
void EndByItself() {
  CUpti_StateData state{};
  state.notification.result = CUPTI_ERROR_UNKNOWN;
  state.notification.message = "the stand-in was told to break down";
  constexpr uint32_t kCbid = CUPTI_CBID_STATE_FATAL_ERROR;
  if (Wanted(CUPTI_CB_DOMAIN_STATE, kCbid)) Raise(CUPTI_CB_DOMAIN_STATE, kCbid, &state);
  ForgetSession();
}

}  // namespace

Misbehaviour::Misbehaviour(const Record& record) : record_(record) {
  const CuptiScript& script = Script();
  bool any = (script.drop_every | script.lose_every | script.unknown_kind_every |
              script.zero_times_every | script.swap_times_every | script.tick_times_every |
              script.clock_jitter_ns | script.fatal_after) != 0;
  if (!any || record.kind == kUnknownKind) return;
  static std::atomic<uint64_t> counter{0};
  uint64_t serial = counter.fetch_add(1, std::memory_order_relaxed) + 1;
  counts_drop_ = Due(script.drop_every, serial);
  drops_ = counts_drop_ || Due(script.lose_every, serial);
  if (Due(script.unknown_kind_every, serial)) {
    uint32_t strange[16] = {kUnknownKind};
    memset(strange + 1, 0x5a, sizeof strange - sizeof strange[0]);
    WriteRecord({kUnknownKind, strange, sizeof strange});
  }
  if (serial == script.fatal_after) EndByItself();
  if (record.end_offset == 0) return;
  if (script.clock_jitter_ns != 0) {
    // Up to so much earlier or later, the same for both ends: the device's clock is fitted to ours.
    const uint64_t width = 2 * script.clock_jitter_ns + 1;
    const uint64_t by = serial * 0x9e3779b97f4a7c15 % width - script.clock_jitter_ns;
    ChangeTimes(record.start_ns + by, record.end_ns + by);
  }
  if (Due(script.zero_times_every, serial)) ChangeTimes(0, 0);
  if (Due(script.swap_times_every, serial)) ChangeTimes(record.end_ns, record.start_ns);
  if (Due(script.tick_times_every, serial)) {
    const uint64_t ticks = record.start_ns / 1000;
    ChangeTimes(ticks, ticks + 1);
  }
}

void Misbehaviour::ChangeTimes(uint64_t start_ns, uint64_t end_ns) {
  const auto* bytes = static_cast<const uint8_t*>(record_.data);
  copy_.assign(bytes, bytes + record_.data_bytes);
  memcpy(copy_.data() + record_.start_offset, &start_ns, sizeof start_ns);
  memcpy(copy_.data() + record_.end_offset, &end_ns, sizeof end_ns);
  record_.data = copy_.data();
}

void RaiseWithinRequest() {
  if (!Script().reenter_on_request) return;
  constexpr uint32_t kCbid = CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent;
  if (!Wanted(CUPTI_CB_DOMAIN_DRIVER_API, kCbid)) return;
  uint64_t shared = 0xa5a5a5a5a5a5a5a5;
  CUresult result = CUDA_SUCCESS;
  CUpti_CallbackData data{};
  data.functionName = "cuCtxGetCurrent";
  data.functionReturnValue = &result;
  data.correlationData = &shared;
  data.callbackSite = CUPTI_API_ENTER;
  Raise(CUPTI_CB_DOMAIN_DRIVER_API, kCbid, &data);
  data.callbackSite = CUPTI_API_EXIT;
  Raise(CUPTI_CB_DOMAIN_DRIVER_API, kCbid, &data);
}

}  // namespace ranktap::standin
