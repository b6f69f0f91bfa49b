// Where a blocked thread of a live process stands in C: unwound from the stack pointer and the
// instruction that /proc tells of it, by the unwind tables of its libraries. The thread is not
// stopped: of one that runs nobody knows the registers, and it has no native stack.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

struct NativeFrame {
  std::string module;    // "libc.so.6"
  std::string function;  // empty: no symbol covers it
  bool operator==(const NativeFrame&) const = default;
};

// The last two numbers of a line of /proc/PID/task/TID/syscall. nullopt: the thread runs, or nobody
// may know.
struct BlockedAt {
  uint64_t stack = 0, instruction = 0;
};
std::optional<BlockedAt> ParseBlockedAt(std::string_view line);

class NativeStacks {
 public:
  // Without names of functions it reads no table of symbols, and PyTorch's are large.
  explicit NativeStacks(pid_t process, bool with_functions = true);
  ~NativeStacks();
  NativeStacks(const NativeStacks&) = delete;
  NativeStacks& operator=(const NativeStacks&) = delete;

  // The innermost first, at most 128. *is_cut: the outermost was not reached. A table is missing,
  // or a caller is found by its frame pointer, which /proc does not tell and no frame within has
  // saved.
  std::vector<NativeFrame> Read(pid_t thread, const BlockedAt& at, bool* is_cut);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace ranktap::collector
