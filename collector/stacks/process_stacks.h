// The Python stacks of a live process, read from outside: it is not stopped, and nothing in it
// runs for it. So a process that is stuck, or stopped, is read as well.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collector/stacks/native_stack.h"

namespace ranktap::collector {

struct StackFrame {
  std::string file;
  std::string function;
  uint32_t line = 0;  // 0: the instruction has none
  bool operator==(const StackFrame&) const = default;
};

struct ThreadStack {
  pid_t thread = 0;  // 0: not known
  std::string name;
  std::string does;  // "runs", "sleeps", "waits for the GIL": a verb and what it waits for
  // "cudaStreamSynchronize": the CUDA call that it is inside of, where an agent knows that.
  std::string cuda_call;
  std::optional<int64_t> cuda_call_ns;  // for how long
  bool holds_gil = false;
  bool truncated = false;          // the outermost frames are left out
  std::vector<StackFrame> frames;  // the innermost first
  // In C below them, the innermost first, where it was asked for and the thread is blocked: of a
  // thread in Python up to the interpreter.
  std::vector<NativeFrame> native;
  bool native_cut = false;  // there are more, which cannot be told
};

struct ProcessStacks {
  pid_t process = 0;
  std::string python;   // "3.11"
  std::string problem;  // set: there are no threads, for this reason
  std::vector<ThreadStack> threads;
  // Of a process whose main thread has come to the program's end, where an exception was that end:
  // "ValueError: no such label", and its frames, the innermost first.
  std::string exception;
  std::vector<StackFrame> exception_frames;
  uint32_t torn = 0;  // stacks that changed each time they were read
};

// Of a main thread whose program has come to its end, or was ended by an exception, while other
// threads go on.
bool IsAtProgramsEnd(const ThreadStack& stack);

// True where an interpreter is mapped in the process, read or not.
bool HasPython(pid_t process);

// Reads one process again and again. It keeps where the interpreter lies.
class StackReader {
 public:
  explicit StackReader(pid_t process);
  StackReader(StackReader&& other) noexcept;
  ~StackReader();

  ProcessStacks Read();

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

// with_native: all threads, with their stacks in C; of a process without Python too.
ProcessStacks ReadProcessStacks(pid_t process, bool with_native = false);

}  // namespace ranktap::collector
