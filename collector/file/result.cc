#include "collector/file/result.h"

#include <fmt/core.h>

#include <cstring>

namespace ranktap::collector {

Failure SystemFailure(const std::string& what, int error) {
  char text[128];
  // The GNU strerror_r: it returns the text, which need not lie in the buffer.
  return {fmt::format("{}: {}", what, strerror_r(error, text, sizeof(text)))};
}

}  // namespace ranktap::collector
