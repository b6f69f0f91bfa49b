// Our part of libunwind: the rule by which one frame is left, and the walk of a whole stack where a
// rule is not enough. Everything else of it (its caches, its memory validation, which opens pipes
// in the host, its guesses along rbp) is not used.
// Runs on: user threads, one at a time (stack_walker.h sees to it).  May not: read memory outside
// [stack_low, stack_high) but for unwind tables of modules in the module table.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum RanktapFrameType {
  RANKTAP_FRAME_NONE = 0,      // no unwind table says anything about this address
  RANKTAP_FRAME_STANDARD = 1,  // CFA is rsp or rbp plus an offset, the return address at CFA - 8
  RANKTAP_FRAME_OTHER = 2,     // needs the walk of the whole stack
  RANKTAP_FRAME_LAST = 3,      // the outermost one
};

struct RanktapFrameRule {
  int32_t type;        // RanktapFrameType
  int32_t cfa_is_rsp;  // else rbp
  int32_t cfa_offset;
  int32_t rbp_saved;  // 1: rbp is at CFA + rbp_offset
  int32_t rbp_offset;
};

struct RanktapRegisters {
  uint64_t ip, sp, bp;
};

// Once, before anything else here.
void RanktapUnwindPrepare(void);

// The rule for a frame that is at registers->ip: of a caller, the return address.
void RanktapUnwindLearn(const struct RanktapRegisters* registers, uint64_t stack_low,
                        uint64_t stack_high, struct RanktapFrameRule* rule);

// From this function's own caller outwards: instruction pointers, and the address at which each
// was found (0 where that was no stack slot). Returns how many; *complete is 0 when the outermost
// frame was not reached.
size_t RanktapUnwindAll(uint64_t stack_low, uint64_t stack_high, uint64_t* ips, uint64_t* slots,
                        size_t room, int* complete);

#ifdef __cplusplus
}
#endif
