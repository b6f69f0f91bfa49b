// A bare client of CUPTI, as few calls as there can be: what it sees is CUPTI's doing.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/sources/cupti/cupti_api.h"

namespace ranktap::gpu {

using Timestamp = uint64_t (*)();

uint64_t RealtimeNs();
uint64_t MonotonicNs();
uint64_t Tsc();

// The one libcupti, opened at the first call; ends the process where there is none.
const agent::cupti::LoadedApi& Cupti();
// CUPTI's result, or -1 where this CUPTI has no such function.
int RegisterTimestamp(Timestamp timestamp);

// Which domains' launches are called back.
enum class Calls { kNone, kRuntime, kDriver, kBoth };
// Both say their result when they fail.
bool Subscribe(Calls calls);
void Unsubscribe();

// Our buffers' content before CUPTI gets them.
void FillBuffersWith(uint8_t byte);
void Enable(agent::cupti::Kind kind);
void Disable(agent::cupti::Kind kind);

struct Call {
  uint64_t realtime_ns;
  bool driver;
};
// The callbacks of one thread, counted.
struct Seen {
  uint64_t calls = 0, nested_driver = 0, without_id = 0, without_symbol = 0;
  uint64_t dirty_runtime = 0, dirty_driver = 0;  // correlation data that was not 0 on entry
  uint64_t changed = 0;                          // correlation data that was not ours on exit
  std::map<uint32_t, Call> outermost;            // by correlation id
  const char* name = nullptr;                    // of the last of those
};
// From now on callbacks fill this; nullptr: they return at once.
void Watch(Seen* seen);

// One record; it ends where the next one begins.
struct Copy {
  std::vector<uint8_t> bytes;
  const agent::cupti::Record& record() const {
    return *reinterpret_cast<const agent::cupti::Record*>(bytes.data());
  }
};
struct Returned {
  uint64_t late_ns = 0;  // how long after the flush had returned the last buffer came; 0: before
  bool on_other_thread = false;
};
// Waits for the device, flushes, and throws away what comes.
Returned FlushAndWatch(bool forced);
// Waits for the device, flushes, and takes all records.
std::vector<Copy> TakeRecords(bool forced);
std::vector<agent::cupti::KernelRecord> Kernels(const std::vector<Copy>& records);
uint64_t BuffersAskedFor();

void Launch(int count);

}  // namespace ranktap::gpu
