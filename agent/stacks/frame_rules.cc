// Open addressing; a cell's address is set once, its rule as often as generations ask.
// Runs on: any thread.  May not: allocate, lock.
#include "agent/stacks/frame_rules.h"

#include <sys/mman.h>

namespace ranktap::agent::stacks {

bool FrameRules::Create() {
  void* memory = mmap(nullptr, sizeof(Cell) * kCells, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  cells_ = static_cast<Cell*>(memory);
  return true;
}

uint64_t FrameRules::Pack(const FrameRule& rule, uint32_t generation) {
  return static_cast<uint64_t>(rule.type) | (rule.cfa_is_rsp ? 4u : 0u) |
         (rule.rbp_saved ? 8u : 0u) | uint64_t{static_cast<uint32_t>(rule.cfa_offset) << 8} |
         uint64_t{static_cast<uint16_t>(rule.rbp_offset)} << 32 |
         uint64_t{static_cast<uint16_t>(generation)} << 48;
}

void FrameRules::Keep(uint64_t ip, const FrameRule& rule, uint32_t generation) {
  Cell* cell = CellFor(ip);
  for (uint32_t i = 0; i < kProbes; ++i, ++cell) {
    uint64_t found = cell->ip.load(std::memory_order_acquire);
    if (found == 0 && !cell->ip.compare_exchange_strong(found, ip, std::memory_order_acq_rel)) {
      if (found != ip) continue;
    } else if (found != 0 && found != ip) {
      continue;
    }
    return cell->rule.store(Pack(rule, generation), std::memory_order_release);
  }
}

}  // namespace ranktap::agent::stacks
