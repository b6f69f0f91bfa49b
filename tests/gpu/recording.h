// A recording of what CUPTI handed to a client: its buffers as they were, the callbacks, and the
// strings that records point to. Made on a real GPU by cupti_recorder.so, replayed in tests ever
// after.
//
//   "RTCREC1\n" | u32 CUPTI version | entries: u32 kind | u32 bytes | content
#pragma once

#include <cstdint>

namespace ranktap::gpu {

inline constexpr char kRecordingMagic[8] = {'R', 'T', 'C', 'R', 'E', 'C', '1', '\n'};

enum class EntryKind : uint32_t {
  kBuffer = 1,      // the valid bytes of one completed buffer
  kString = 2,      // u64 pointer, then the text it stood for
  kCallback = 3,    // CallbackEntry, then the function's name
  kDropped = 4,     // u64 records
  kClientCall = 5,  // u64 CLOCK_MONOTONIC_RAW, then a CUPTI call of the program itself, as text
  kCut = 6,         // from here on something was left out: the recording was full
};

struct CallbackEntry {
  uint64_t monotonic_raw_ns;
  uint64_t thread;
  uint32_t domain, cbid, site, correlation;
  int32_t status;
  uint32_t pad;
};

}  // namespace ranktap::gpu
