// Which file a thread reads now: the descriptor of the call that it is in.
// Runs on: the sampler.  May not: allocate, take a low descriptor.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ranktap::agent::samples {

// The descriptor that a line of /proc/PID/task/TID/syscall reads from; -1: it is in no such call.
int ReadDescriptorIn(std::string_view line);

// Views `buffer`. Empty: the thread is in no call that reads, not from a file with a path, or
// nobody may know. Process 0: our own.
using PathBuffer = std::array<char, 1024>;
std::string_view FileReadBy(int32_t process, int32_t thread, PathBuffer* buffer);

}  // namespace ranktap::agent::samples
