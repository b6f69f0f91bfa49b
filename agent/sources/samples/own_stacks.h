// The Python stacks of this process.
// Runs on: SetUp on the starting thread, then the sampler.  May not: allocate once it is set up.
#pragma once

#include <unistd.h>

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "agent/core/own_descriptor.h"
#include "agent/sources/samples/reading_check.h"
#include "proto/process_memory.h"
#include "proto/python_frames.h"

namespace ranktap::agent::samples {

class OwnStacks {
 public:
  // Empty: it is ready. Else why no stack will be read.
  std::string_view SetUp();

  // False: the list cannot be followed now.
  [[nodiscard]] bool ReadThreads();
  const std::vector<proto::PythonThread>& threads() const { return threads_; }

  // False: the stack changed both times that it was read.
  [[nodiscard]] bool Read(proto::PythonThread* thread, std::span<const proto::PythonFrame>* stack);
  proto::PythonFrames& frames() { return *frames_; }
  const proto::PythonPlace& place() const { return place_; }

  ReadingCheck& check() { return check_; }

 private:
  proto::ProcessMemory memory_{getpid()};
  OwnDescriptor mem_;  // of /proc/self/mem, where process_vm_readv is refused
  proto::PythonPlace place_;
  std::optional<proto::PythonFrames> frames_;
  std::vector<proto::PythonThread> threads_;
  ReadingCheck check_;
};

}  // namespace ranktap::agent::samples
