// The functions that NVTX calls before there is an agent. NVTX's own take integers and pointers
// only, six at most, and return an integer, a pointer or nothing: one shape fits all.
// Runs on: threads of the program at their first NVTX call.  May not: allocate; wait, but for the
// agent's start.
#include <stddef.h>
#include <stdint.h>

#include "agent/stub/stub.h"

enum { kCallbacks = 1 };             // NVTX_ETID_CALLBACKS
enum { kModules = 7, kSlots = 16 };  // NVTX_CB_MODULE_SIZE, the largest of its NVTX_CBID_*_SIZE
enum { kCore = 1, kCore2 = 5 };
enum { kNotTracked = -2 };  // NVTX_NO_PUSH_POP_TRACKING

typedef void (*Function)(void);
typedef Function** Table;

struct ExportedCallbacks {  // NvtxExportTableCallbacks
  size_t bytes;
  int (*find)(int module, Table* table, unsigned* size);
};

// Push and pop tell how deep they are, or that nobody counts.
static long Otherwise(unsigned module, unsigned slot) {
  const int is_push_or_pop = (module == kCore && slot >= 8 && slot <= 11) ||
                             (module == kCore2 && (slot == 4 || slot == 5));
  return is_push_or_pop ? kNotTracked : 0;
}

#define THUNK(module, slot)                                                            \
  static long Thunk##module##_##slot(long a, long b, long c, long d, long e, long f) { \
    const long arguments[6] = {a, b, c, d, e, f};                                      \
    return stub_first_call(module, slot, arguments, Otherwise(module, slot));          \
  }
// clang-format never settles on these.
// clang-format off
#define ALL_SLOTS(DO, m) \
  DO(m, 0) DO(m, 1) DO(m, 2) DO(m, 3) DO(m, 4) DO(m, 5) DO(m, 6) DO(m, 7) \
  DO(m, 8) DO(m, 9) DO(m, 10) DO(m, 11) DO(m, 12) DO(m, 13) DO(m, 14) DO(m, 15)
#define ALL(DO) \
  ALL_SLOTS(DO, 1) ALL_SLOTS(DO, 2) ALL_SLOTS(DO, 3) \
  ALL_SLOTS(DO, 4) ALL_SLOTS(DO, 5) ALL_SLOTS(DO, 6)
// clang-format on
ALL(THUNK)

#define PLACE(module, slot) [module][slot] = &Thunk##module##_##slot,
static const Call kThunks[kModules][kSlots] = {ALL(PLACE)};

static Table Find(ExportTableFinder finder, unsigned module, unsigned* size) {
  const struct ExportedCallbacks* const callbacks = finder(kCallbacks);
  Table table = NULL;
  *size = 0;
  if (callbacks == NULL || callbacks->bytes < sizeof(*callbacks) || callbacks->find == NULL ||
      callbacks->find((int)module, &table, size) == 0) {
    *size = 0;
    return NULL;
  }
  if (*size > kSlots) *size = kSlots;
  return table;
}

int stub_install_thunks(ExportTableFinder finder) {
  unsigned size;
  if (Find(finder, kCore, &size) == NULL) return 0;
  for (unsigned module = 1; module < kModules; ++module) {
    const Table table = Find(finder, module, &size);
    for (unsigned slot = 1; table != NULL && slot < size; ++slot) {
      if (table[slot] != NULL) *table[slot] = (Function)kThunks[module][slot];
    }
  }
  return 1;
}

void stub_remove_thunks(ExportTableFinder finder, int all) {
  unsigned size;
  for (unsigned module = 1; module < kModules; ++module) {
    const Table table = Find(finder, module, &size);
    for (unsigned slot = 1; table != NULL && slot < size; ++slot) {
      if (table[slot] == NULL) continue;
      if (all || *table[slot] == (Function)kThunks[module][slot]) *table[slot] = NULL;
    }
  }
}

Call stub_handler(ExportTableFinder finder, unsigned module, unsigned slot) {
  unsigned size;
  const Table table = finder == NULL ? NULL : Find(finder, module, &size);
  if (table == NULL || slot >= size || table[slot] == NULL) return NULL;
  const Call call = (Call)*table[slot];
  return call == kThunks[module][slot] ? NULL : call;
}
