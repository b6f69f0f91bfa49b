// Names that other tools' files use for CUPTI's kinds -> CUPTI's numbers. 0: not known.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranktap::collector {

uint8_t CopyKindNamed(std::string_view name);    // "HtoD", "HtoD (Pageable -> Device)", HIP's
uint8_t MemoryKindNamed(std::string_view name);  // "Pageable"
uint8_t SyncTypeNamed(std::string_view name);    // "Stream Sync"

}  // namespace ranktap::collector
