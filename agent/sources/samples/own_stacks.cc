// Reads of our own memory.
// Runs on: see own_stacks.h.  May not: see there.
#include "agent/sources/samples/own_stacks.h"

#include <fcntl.h>

#include "agent/sources/samples/python_place.h"
#include "agent/sources/samples/thread_runs.h"

namespace ranktap::agent::samples {

std::string_view OwnStacks::SetUp() {
  place_ = FindPythonPlace();
  uint64_t word = 0;
  if (!memory_.Read(place_.runtime, &word)) {
    mem_.Adopt(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
    memory_.UseDescriptor(mem_.get());
    if (!memory_.Read(place_.runtime, &word)) return "its memory cannot be read";
  }
  proto::PythonLayout layout;
  const std::string_view problem = proto::FindPythonLayout(memory_, place_, &layout);
  if (!problem.empty()) return problem;
  frames_.emplace(memory_, place_, layout);
  threads_.reserve(ThreadRuns::kMostThreads);
  return "";
}

bool OwnStacks::ReadThreads() {
  // The program may have closed it, and have the number for a file of its own.
  if (const int mem = mem_.get(); mem >= 0) memory_.UseDescriptor(mem);
  return frames_->ReadThreads(&threads_, ThreadRuns::kMostThreads);
}

bool OwnStacks::Read(proto::PythonThread* thread, std::span<const proto::PythonFrame>* stack) {
  const auto read = [&] { return frames_->ReadStack(*thread, stack) != proto::StackRead::kTorn; };
  const bool is_read = read() || (frames_->Refresh(thread) && read());
  check_.AddStack(!is_read);
  return is_read;
}

}  // namespace ranktap::agent::samples
