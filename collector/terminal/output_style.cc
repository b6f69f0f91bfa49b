#include "collector/terminal/output_style.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace ranktap::collector {
namespace {

constexpr std::string_view kBold = "\x1b[1m", kHeading = "\x1b[36m", kDim = "\x1b[2m",
                           kPlain = "\x1b[0m";

bool IsSet(const char* name) {
  const char* const value = ::getenv(name);
  return value != nullptr && value[0] != '\0';
}

}  // namespace

OutputStyle& Style() {
  static OutputStyle style;
  return style;
}

bool IsColored(int fd) {
  if (Style().color != "auto") return Style().color == "always";
  const char* const terminal = ::getenv("TERM");
  if (IsSet("NO_COLOR") || (terminal != nullptr && std::string_view(terminal) == "dumb")) {
    return false;
  }
  return ::isatty(fd) == 1 || (fd == STDOUT_FILENO && Style().is_paged);
}

std::string ColoredTable(std::string_view text, bool has_rows) {
  std::string colored;
  bool in_title = true, heading_is_next = has_rows, in_note = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    in_title &= !line.starts_with("  ");
    in_note |= line.starts_with("  note: ");
    std::string_view style = in_title ? kBold : in_note ? kDim : "";
    if (!in_title && heading_is_next) {
      style = kHeading;
      heading_is_next = false;
    }
    colored += style;
    colored += line;
    colored += style.empty() ? "\n" : std::string(kPlain) + "\n";
  }
  return colored;
}

}  // namespace ranktap::collector
