// What the stand-in was told to do: RANKTAP_STANDIN_<NAME> of the environment, read once, and what
// a test has set since through the marker's control function. Safe from every thread.
#pragma once

#include <cstdint>

namespace ranktap::standin {

// The text of a setting, or null. What it points to lives for ever.
const char* Setting(const char* name);
uint64_t NumberSetting(const char* name, uint64_t fallback);
int64_t SignedSetting(const char* name, int64_t fallback);
// A null value removes the setting.
void ChangeSetting(const char* name, const char* value);
// Grows with every change, so that what is derived from a setting can be kept.
uint64_t SettingsGeneration();

// RANKTAP_STANDIN_FAIL="cudaMalloc:2:after=3,cuptiActivityEnable:1": the call's status, and how
// many calls succeed first (0). True when a failure of this function is due now.
bool TakeScriptedFailure(const char* function, int* status);

// RANKTAP_STANDIN_KERNELS="gemm=50000,relu=2500": a kernel whose name contains the text takes so
// many nanoseconds. False where no entry fits.
bool ScriptedKernelDuration(const char* name, uint64_t* duration_ns);

}  // namespace ranktap::standin
