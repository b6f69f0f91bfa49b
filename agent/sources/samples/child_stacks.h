// Looks at the Python threads of the processes below this one: they have none of our threads, or
// nothing to say by themselves. What was told of our code holds for a fork child as well.
// Runs on: SetUp on the starting thread, then the sampler.  May not: allocate, but at the first
// child and for a code object that is new.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/sources/samples/child_list.h"
#include "agent/sources/samples/process_looks.h"
#include "agent/sources/samples/sample_lines.h"
#include "agent/sources/samples/stack_numbers.h"
#include "proto/process_memory.h"
#include "proto/python_frames.h"

namespace ranktap::agent::samples {

class ChildStacks {
 public:
  void SetUp(const proto::PythonPlace& place, const proto::PythonLayout& layout);

  void Round(uint64_t now_ns, uint64_t now_ticks, StackNumbers& numbers, SampleLines& lines);
  void CloseInForkChild() { list_.CloseInForkChild(); }
  void Cut(SampleLines& lines) { looks_.Cut(lines); }
  void Close(SampleLines& lines);

 private:
  void LookAt(Child* child, StackNumbers& numbers, SampleLines& lines);
  void LookAtThread(const Child& child, proto::PythonThread thread, uint64_t cpu_ns,
                    StackNumbers& numbers, SampleLines& lines);
  void TellFile(Child* child, SampleLines& lines);

  proto::PythonPlace place_;
  proto::PythonLayout layout_{};
  ChildList list_;
  uint64_t find_at_ns_ = 0, now_ns_ = 0, now_ticks_ = 0;
  proto::ProcessMemory memory_{0};
  std::optional<proto::PythonFrames> frames_;
  std::vector<proto::PythonThread> threads_;
  ProcessLooks looks_;
};

}  // namespace ranktap::agent::samples
