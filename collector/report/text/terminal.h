// How wide the output may be.
#pragma once

#include <cstddef>

namespace ranktap::collector {

inline constexpr size_t kUnlimitedWidth = 0;

// Columns of the terminal behind `fd`, or what $COLUMNS says. Without either: kUnlimitedWidth, for
// what is piped is read by programs.
size_t OutputWidth(int fd);

}  // namespace ranktap::collector
