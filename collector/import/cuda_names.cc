#include "collector/import/cuda_names.h"

#include <cstddef>
#include <iterator>

namespace ranktap::collector {
namespace {

template <size_t N>
uint8_t IndexOf(const std::string_view (&names)[N], std::string_view name) {
  for (size_t i = 1; i < N; ++i) {
    if (names[i] == name) return static_cast<uint8_t>(i);
  }
  return 0;
}

}  // namespace

uint8_t CopyKindNamed(std::string_view name) {
  static constexpr std::string_view kNames[] = {"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                                "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
  // As roctracer names them: "CopyHostToDevice".
  static constexpr std::string_view kHip[] = {"",
                                              "CopyHostToDevice",
                                              "CopyDeviceToHost",
                                              "",
                                              "",
                                              "",
                                              "",
                                              "",
                                              "CopyDeviceToDevice",
                                              "CopyHostToHost",
                                              "CopyPeerToPeer"};
  if (name.starts_with("Copy")) return IndexOf(kHip, name);
  return IndexOf(kNames, name.substr(0, 4));
}

// "Host" is HIP's, which does not tell pageable memory from pinned; CUPTI has no such number.
uint8_t MemoryKindNamed(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "",        "Pageable",      "Pinned",         "Device", "Array",
      "Managed", "Device Static", "Managed Static", "Host"};
  return IndexOf(kNames, name);
}

uint8_t SyncTypeNamed(std::string_view name) {
  static constexpr std::string_view kNames[] = {"", "Event Sync", "Stream Wait Event",
                                                "Stream Sync", "Context Sync"};
  return IndexOf(kNames, name);
}

}  // namespace ranktap::collector
