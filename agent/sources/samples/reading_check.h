// Whether what is read is a CPython of the layout that its version has: a build with other offsets
// reads as other things. Its stacks are torn then, or its threads are not this process's.
// Runs on: the sampler.  May not: allocate.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranktap::agent::samples {

class ReadingCheck {
 public:
  void AddStack(bool is_torn) { ++stacks_.all, stacks_.bad += is_torn ? 1 : 0; }
  // `is_ours`: the kernel has a thread of that number in this process.
  void AddThread(bool is_ours) { ++threads_.all, threads_.bad += is_ours ? 0 : 1; }

  // Why no more should be read; empty: go on. Asked once a round, of the last 200 or more.
  std::string_view TakeVerdict() {
    if (threads_.TakeIsMost()) return "its threads are not where its version has them";
    if (stacks_.TakeIsMost()) return "most of those read made no sense";
    return "";
  }

 private:
  struct Count {
    uint64_t all = 0, bad = 0;
    bool TakeIsMost() {
      constexpr uint64_t kEnough = 200;
      if (all < kEnough) return false;
      const bool is_most = bad * 2 > all;
      *this = {};
      return is_most;
    }
  };
  Count stacks_, threads_;
};

}  // namespace ranktap::agent::samples
