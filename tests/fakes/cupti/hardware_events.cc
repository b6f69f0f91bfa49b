// The hardware event system, as far as a client sees of it: what it is answered when it asks, and
// what CUPTI tells once there is a device (HARDWARE_EVENTS).
#include <atomic>

#include "tests/fakes/cupti/hook_functions.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/subscription.h"

namespace ranktap::standin {
namespace {

std::atomic<bool> g_is_asked{false};

}  // namespace

void TellOfHardwareEvents() {
  const int error = Script().hardware_events_late;
  if (error == 0 || !g_is_asked.exchange(false)) return;
  CUpti_StateData state{};
  state.notification.result = static_cast<CUptiResult>(error);
  state.notification.message = "the stand-in has no hardware event system";
  constexpr uint32_t kCbid = CUPTI_CBID_STATE_ERROR;
  if (Wanted(CUPTI_CB_DOMAIN_STATE, kCbid)) Raise(CUPTI_CB_DOMAIN_STATE, kCbid, &state);
}

}  // namespace ranktap::standin

using namespace ranktap::standin;

extern "C" CUptiResult cuptiActivityEnableHWTrace(uint8_t enable) {
  RETURN_UNLESS_ADMITTED();
  if (AnyKindEnabled()) {
    Machine()->note_violation("the hardware event system is asked for while a kind is on");
    return LastCuptiError() = CUPTI_ERROR_INVALID_OPERATION;
  }
  if (const int error = Script().hardware_events; error != 0) {
    return LastCuptiError() = static_cast<CUptiResult>(error);
  }
  if (ListenToMachine()) g_is_asked.store(enable != 0);
  return CUPTI_SUCCESS;
}
