// The simulated address space. Device memory is host memory of this process under the same address,
// reserved but not touched until it is used, so that 4 devices of 80 GiB cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::kPageable;
  uint32_t device = 0;
  uint32_t context_id = 0;
  unsigned flags = 0;       // cuMemHostAlloc's
  bool registered = false;  // the program's own memory
  uint64_t pool = 0;        // of cuMemAllocAsync
};

// False when the device (or the host) has no such memory left.
bool Allocate(const Allocation& wanted, Allocation* made);
// Makes the program's own memory known as pinned. False when it overlaps something known.
bool Register(const Allocation& own);
// Removes what starts at the address, and tells what it was.
bool Release(uint64_t address, Allocation* was);
// What contains the address. Unknown memory is pageable.
Allocation Lookup(uint64_t address, bool* known = nullptr);
uint64_t BytesInUse(uint32_t device);
// For a tool, until the process ends. False: there is no more.
bool TakeDeviceMemory(uint32_t device, uint64_t bytes);
void ReleaseContextMemory(uint32_t context_id);

}  // namespace ranktap::standin
