// What a thread waits for, as far as /proc says it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ranktap::collector {

// A line of /proc/PID/task/TID/syscall: "202 0x7f.. 0x189 .. SP PC", "running", "-1 SP PC".
struct SystemCall {
  int64_t number = -1;
  std::array<uint64_t, 6> arguments{};
};
std::optional<SystemCall> ParseSystemCall(std::string_view line);

// Where a futex's address is the interpreter's own, the thread waits for the GIL.
bool IsFutex(const SystemCall& call);

// "reads /data/a.bin (descriptor 5)"; `descriptor_path`: what DescriptorOf is, empty where nobody
// knows.
std::string DescribeSystemCall(const SystemCall& call, const std::string& descriptor_path);
// The descriptor that it is about; -1: none.
int DescriptorOf(const SystemCall& call);

}  // namespace ranktap::collector
