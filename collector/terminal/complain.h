// How a verb ends, and what it says of a failure.
#pragma once

#include <string_view>

namespace ranktap::collector {

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;
inline constexpr int kWrongUsage = 2;
inline constexpr int kRegression = 3, kCannotTell = 4;  // `diff`
inline constexpr int kNotTraced = 125;  // `run --require` has not started the command

// Prints "ranktap: MESSAGE" on stderr.
void Complain(std::string_view message);
// Prints the same and returns `status`, so that a verb can end with it.
int Complained(std::string_view message, int status);

}  // namespace ranktap::collector
