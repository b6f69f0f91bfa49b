// Symbols of a library or program, from the memory of the process that has it loaded: it may lie
// in another container, or be deleted.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "proto/process_memory.h"

namespace ranktap::collector {

struct LiveSymbol {
  std::string_view name;
  uint64_t address = 0;  // in the process; 0: not there
  uint64_t bytes = 0;
};

// Fills `symbols` from the dynamic symbols of the 64-bit ELF file that is mapped at `base`.
// False: there is none.
[[nodiscard]] bool FindLiveSymbols(proto::MemoryReader& memory, uint64_t base,
                                   std::span<LiveSymbol> symbols);

}  // namespace ranktap::collector
