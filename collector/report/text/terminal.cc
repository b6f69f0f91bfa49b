#include "collector/report/text/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace ranktap::collector {

size_t OutputWidth(int fd) {
  constexpr long kNarrowest = 40, kWidest = 10'000;
  if (const char* const columns = ::getenv("COLUMNS")) {
    const long width = std::strtol(columns, nullptr, 10);
    if (width >= kNarrowest && width <= kWidest) return static_cast<size_t>(width);
  }
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= kNarrowest) return size.ws_col;
  return kUnlimitedWidth;
}

}  // namespace ranktap::collector
