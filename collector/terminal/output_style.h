// How this process speaks to a person: colours, quiet, and the width of the screen. Set while the
// command line is read, by one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ranktap::collector {

struct OutputStyle {
  std::string color = "auto";  // auto, always, never
  bool quiet = false;          // neither progress nor what only explains
  bool is_paged = false;       // standard output is a pager's input now
};
OutputStyle& Style();

// Whether what goes to `fd` is coloured. "auto": a terminal that is not "dumb", without NO_COLOR
// (https://no-color.org).
bool IsColored(int fd);
// A table as FormatText made it: its title bold, its headings and notes told apart.
std::string ColoredTable(std::string_view text, bool has_rows);

}  // namespace ranktap::collector
