// What every CUPTI entry does first: refuse what is not modelled, fail where the script says so,
// and stay away in a fork child.
#pragma once

#include <cupti.h>

#include "tests/fakes/cupti/cupti_script.h"
#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

// The machine in libcuda.so.1; null when there is no driver, or not the stand-in's.
const MachineLink* Machine();

// Counts it. CUPTI_ERROR_NOT_SUPPORTED.
int RefuseCupti(const char* function);

// CUPTI_SUCCESS, or what `function` must return at once. Without a driver that is
// CUPTI_ERROR_UNKNOWN, as the real library does.
CUptiResult Admit(const char* function);
// The same for a function of the first API, which a process cannot use after the second (PyTorch's
// _cuspy/core.py).
CUptiResult AdmitFirstApi(const char* function);
// The thread's last error, for cuptiGetLastError.
CUptiResult& LastCuptiError();

}  // namespace ranktap::standin

// In an entry: returns from it unless it may go on.
#define RETURN_UNLESS(admit)                                                                   \
  if (CUptiResult admitted_ = ::ranktap::standin::admit(__func__); admitted_ != CUPTI_SUCCESS) \
  return ::ranktap::standin::LastCuptiError() = admitted_
#define RETURN_UNLESS_ADMITTED() RETURN_UNLESS(Admit)
