// What /proc says of a live process: texts, threads, descriptors. Another user's process, and one
// that has just ended, reads as nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

// "/proc/PID/" and so on: at most 16 MiB. nullopt: not there, or refused.
std::optional<std::string> ReadProcFile(const std::string& path);

// The target of a link; empty: refused.
std::string ReadProcLink(const std::string& path);

// The names in a folder that are numbers, in order: processes, threads.
std::vector<pid_t> NumbersIn(const std::string& directory);

// Numbers of threads, in order.
std::vector<pid_t> ThreadsOf(pid_t process);

// All processes below this one, parents first.
std::vector<pid_t> DescendantsOf(pid_t process);

// The value of NAME in the environment that the process began with; empty: none.
std::string VariableOf(pid_t process, std::string_view name);

struct MappedFile {
  std::string path;
  uint64_t base = 0;  // of its first mapping
};
// The files that a process maps as programs and libraries, each once.
std::vector<MappedFile> MappedFilesOf(pid_t process);

struct ThreadCondition {
  std::string name;
  char state = '?';         // as in /proc/PID/stat: R, S, D, T, t, Z
  std::string system_call;  // /proc/PID/task/TID/syscall, one line
};
std::optional<ThreadCondition> ConditionOf(pid_t process, pid_t thread);

}  // namespace ranktap::collector
