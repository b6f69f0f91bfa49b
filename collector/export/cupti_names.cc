#include "collector/export/cupti_names.h"

#include <array>
#include <cstddef>

namespace ranktap::collector {
namespace {

template <size_t N>
std::string_view Pick(const std::array<std::string_view, N>& names, size_t index) {
  return index < N ? names[index] : names[0];
}

}  // namespace

std::string_view CopyKindName(uint8_t kind) {
  constexpr std::array<std::string_view, 11> kNames = {
      "<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
  return Pick(kNames, kind);
}

std::string_view MemoryKindName(uint32_t kind) {
  constexpr std::array<std::string_view, 9> kNames = {"Unknown",       "Pageable",       "Pinned",
                                                      "Device",        "Array",          "Managed",
                                                      "Device Static", "Managed Static", "Host"};
  return Pick(kNames, kind);
}

std::string_view SyncTypeName(uint32_t type) {
  constexpr std::array<std::string_view, 5> kNames = {
      "Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
  return Pick(kNames, type);
}

std::string_view OverheadName(uint32_t kind) {
  constexpr std::array<std::string_view, 9> kNames = {"Unknown",
                                                      "Buffer Flush",
                                                      "Instrumentation",
                                                      "Resource",
                                                      "Runtime Triggered Module Loading",
                                                      "Lazy Function Loading",
                                                      "Command Buffer Full",
                                                      "Activity Buffer Request",
                                                      "UVM Activity Init"};
  if (kind == 1) return "Driver Compiler";
  // All others count in the upper half.
  return (kind & 0xffff) == 0 ? Pick(kNames, kind >> 16) : kNames[0];
}

}  // namespace ranktap::collector
