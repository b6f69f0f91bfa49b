// The device's clock: CLOCK_REALTIME, as CUPTI reports it, plus a scripted error
// (CLOCK_OFFSET_NS, CLOCK_DRIFT_PPM). And CLOCK_MONOTONIC_RAW, in which the truth log keeps hosts.
#pragma once

#include <cstdint>

namespace ranktap::standin {

uint64_t DeviceNow();
uint64_t RawNow();
// The raw clock at a moment of the device's, from the pair of readings taken last (at most 20 ms
// ago).
uint64_t RawOfDevice(uint64_t device_ns);
// Returns at or after the moment. A cancellation point, like the wait of a real driver.
void WaitUntilDevice(uint64_t device_ns);

}  // namespace ranktap::standin
