// CUPTI's enums in Kineto's words. An unknown value has a name too.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranktap::collector {

std::string_view CopyKindName(uint8_t kind);     // "HtoD"
std::string_view MemoryKindName(uint32_t kind);  // "Pageable"
std::string_view SyncTypeName(uint32_t type);    // "Stream Sync"
std::string_view OverheadName(uint32_t kind);    // "Buffer Flush"

}  // namespace ranktap::collector
