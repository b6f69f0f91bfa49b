// Compiled against libunwind's internal headers (scripts/setup builds that very release).
// Runs on: user threads, one at a time.  May not: use libunwind's own initialisation, which opens a
// pipe, nor unw_step, which guesses along rbp.
#define UNW_LOCAL_ONLY
#define _GNU_SOURCE
#include "agent/stacks/libunwind_step.h"

#if !defined(__x86_64__)
// The rules are of x86-64's registers: no stack of native code elsewhere. A stack without a frame
// is counted as one that could not be read.
void RanktapUnwindPrepare(void) {}

void RanktapUnwindLearn(const struct RanktapRegisters* registers, uint64_t stack_low,
                        uint64_t stack_high, struct RanktapFrameRule* rule) {
  (void)registers, (void)stack_low, (void)stack_high;
  rule->type = RANKTAP_FRAME_NONE;
}

size_t RanktapUnwindAll(uint64_t stack_low, uint64_t stack_high, uint64_t* ips, uint64_t* slots,
                        size_t room, int* complete) {
  (void)stack_low, (void)stack_high, (void)ips, (void)slots, (void)room;
  *complete = 0;
  return 0;
}
#else
#include <config.h>

#include "libunwind_i.h"

#include "src/x86_64/init.h"

struct Context {
  ucontext_t registers;  // first: libunwind hands its address to ReadMemory
  uint64_t low, high;
};

static int ReadMemory(unw_addr_space_t space, unw_word_t address, unw_word_t* value, int write,
                      void* argument) {
  const struct Context* context = (const struct Context*)AS_ARG_GET_UC_PTR(argument);
  const int own = address >= (unw_word_t)context &&
                  address + sizeof(*value) <= (unw_word_t)(&context->registers + 1);
  const int on_stack = (address & 7) == 0 && address >= context->low && address < context->high &&
                       context->high - address >= sizeof(*value);
  (void)space;
  if (write || (!own && !on_stack)) return -UNW_EINVAL;
  *value = *(const unw_word_t*)address;
  return 0;
}

void RanktapUnwindPrepare(void) {
  mi_init();
  dwarf_init();
  x86_64_local_addr_space_init();
  // No cache, so no lock around it: what is learnt is kept by frame_rules.h.
  unw_local_addr_space->caching_policy = UNW_CACHE_NONE;
  unw_local_addr_space->acc.access_mem = ReadMemory;
  tdep_init_done = 1;
}

static int Begin(struct cursor* cursor, struct Context* context) {
  memset(cursor, 0, sizeof(*cursor));
  cursor->dwarf.as = unw_local_addr_space;
  cursor->dwarf.as_arg = dwarf_build_as_arg(&context->registers, 0);
  return common_init(cursor, 1);
}

void RanktapUnwindLearn(const struct RanktapRegisters* registers, uint64_t stack_low,
                        uint64_t stack_high, struct RanktapFrameRule* rule) {
  struct Context context;
  struct cursor cursor;
  memset(&context.registers.uc_mcontext.gregs, 0, sizeof(context.registers.uc_mcontext.gregs));
  context.registers.uc_mcontext.gregs[REG_RIP] = (greg_t)registers->ip;
  context.registers.uc_mcontext.gregs[REG_RSP] = (greg_t)registers->sp;
  context.registers.uc_mcontext.gregs[REG_RBP] = (greg_t)registers->bp;
  context.low = stack_low;
  context.high = stack_high;
  memset(rule, 0, sizeof(*rule));
  if (Begin(&cursor, &context) < 0) return;
  cursor.dwarf.stash_frames = 1;
  cursor.frame_info.virtual_address = registers->ip;
  cursor.frame_info.frame_type = UNW_X86_64_FRAME_OTHER;
  cursor.frame_info.rbp_cfa_offset = -1;
  cursor.frame_info.rsp_cfa_offset = -1;
  const int stepped = dwarf_step(&cursor.dwarf);
  if (stepped == -UNW_ENOINFO) return;
  if (stepped < 0) {
    rule->type = RANKTAP_FRAME_OTHER;
  } else if (stepped == 0) {
    rule->type = RANKTAP_FRAME_LAST;
  } else if (cursor.frame_info.frame_type != UNW_X86_64_FRAME_STANDARD ||
             cursor.frame_info.rsp_cfa_offset != -1) {
    rule->type = RANKTAP_FRAME_OTHER;
  } else {
    rule->type = RANKTAP_FRAME_STANDARD;
    rule->cfa_is_rsp = cursor.frame_info.cfa_reg_rsp != 0;
    rule->cfa_offset = (int32_t)cursor.frame_info.cfa_reg_offset;
    rule->rbp_saved = cursor.frame_info.rbp_cfa_offset != -1;
    rule->rbp_offset = (int32_t)cursor.frame_info.rbp_cfa_offset;
  }
}

size_t RanktapUnwindAll(uint64_t stack_low, uint64_t stack_high, uint64_t* ips, uint64_t* slots,
                        size_t room, int* complete) {
  struct Context context;
  struct cursor cursor;
  *complete = 0;
  unw_getcontext(&context.registers);
  context.low = stack_low;
  context.high = stack_high;
  if (Begin(&cursor, &context) < 0) return 0;
  size_t count = 0;
  while (count < room) {
    const int stepped = dwarf_step(&cursor.dwarf);
    if (stepped < 0) break;
    if (stepped == 0 || cursor.dwarf.ip == 0) {
      *complete = 1;
      break;
    }
    const uint64_t slot = DWARF_GET_LOC(cursor.dwarf.loc[RIP]);
    ips[count] = cursor.dwarf.ip;
    slots[count] = slot >= stack_low && slot < stack_high ? slot : 0;
    ++count;
  }
  return count;
}
#endif
