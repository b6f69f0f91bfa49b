// How much memory the process has in RAM.
// Runs on: the sender thread; CloseInForkChild in a fork child.  May not: run in a hook.
#pragma once

#include <cstdint>
#include <string_view>

#include "agent/core/own_descriptor.h"

namespace ranktap::agent {

struct ResidentMemory {
  uint64_t now = 0, peak = 0;  // bytes; 0: not known
};

// From VmRSS and VmHWM of a /proc/PID/status. getrusage's peak would not do: a program that was
// forked and replaced has its parent's.
ResidentMemory ParseResidentMemory(std::string_view status);

// Reads this process's resident memory. Its file is opened once: a descriptor that came and went
// each second could take the number that the program is about to be given, or be closed as the
// program's own.
class ResidentMemoryReader {
 public:
  // All 0 where /proc is not there, or the program has closed the file. Some 20 us.
  ResidentMemory Read();
  void Close() { file_.Close(); }
  void CloseInForkChild() { file_.CloseInForkChild(); }

 private:
  OwnDescriptor file_;
  bool opened_ = false;
};

}  // namespace ranktap::agent
