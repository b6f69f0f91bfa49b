// CUPTI's facts about devices and libraries, as amendments to the hello.
// Runs on: the arming thread, the drain thread.  May not: run in a hook (allocates).
#pragma once

#include <string>

#include "agent/sources/cupti/cupti_abi.h"
#include "agent/sources/cupti/cupti_api.h"

namespace ranktap::agent::cupti {

// v1.Hello with one device. Asks the driver for what CUPTI's record lacks.
std::string EncodeDevice(const DeviceRecord& device);

// v1.Hello with the versions and paths of libcupti and the driver, and whether it is a stand-in.
std::string EncodeLibraries(const LoadedApi& cupti, const DriverFacts& driver);

// v1.CuptiTrial: asks for a trial of this CUPTI.
std::string EncodeTrial(const LoadedApi& cupti, const DriverFacts& driver);

}  // namespace ranktap::agent::cupti
