// The processors that this process may use, and those of them that nobody loads a trace on.
#pragma once

#include <cstddef>
#include <string>

namespace ranktap::collector {

// By its affinity and its control group's quota. At least 1.
size_t ProcessorCount();
// Of `count`, as many as a group may keep busy whose cpu.max is `quota`: "max 100000", or two
// numbers of microseconds. A part of a processor is one thread.
size_t ProcessorsWithin(size_t count, const std::string& quota);

// Threads that load traces, each for as long as one of these lives.
class BusyThreads {
 public:
  BusyThreads() : BusyThreads(1) {}  // this thread, which needs no idle processor
  // As many others as there are idle processors, at most `most`.
  static BusyThreads OnIdle(size_t most);
  ~BusyThreads();
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;
  size_t count() const { return count_; }

 private:
  explicit BusyThreads(size_t count);
  const size_t count_;
};

}  // namespace ranktap::collector
