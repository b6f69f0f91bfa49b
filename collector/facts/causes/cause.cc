#include "collector/facts/causes/cause.h"

namespace ranktap::collector {

std::string_view NameOf(Cause cause) {
  static constexpr std::array<std::string_view, kCauses> kNames = {
      "compute",    "exposed transfer",   "exposed wait", "memory copy",   "not recorded",
      "checkpoint", "garbage collection", "data loading", "graph capture", "sync",
      "host",       "kernel latency",     "dependency",   "optimizer",     "backward",
      "forward"};
  return kNames[static_cast<size_t>(cause)];
}

}  // namespace ranktap::collector
