// The processes below this one, by what /proc says: workers that it forked, and interpreters that
// it started. Where the kernel keeps no list of children there are none.
// Runs on: SetUp on the starting thread, then the sampler.  May not: allocate once it is set up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/own_descriptor.h"
#include "proto/python_layout.h"

namespace ranktap::agent::samples {

struct Child {
  enum class Kind : uint8_t {
    kUnknown,    // or it has no Python that is laid out as ours: looked at again later
    kForked,     // its memory is a copy of ours, at the same addresses
    kStarted,    // another program of our interpreter
    kSeesItself  // its own agent samples it, and what is below it
  };
  int32_t process = 0, parent = 0;
  Kind kind = Kind::kUnknown;
  uint64_t shift = 0;        // of its interpreter's addresses, from ours
  uint64_t agent_shift = 0;  // of our library's; 0: it has none
  uint64_t asks_again_ns = 0, pause_ns = 0;
  uint64_t file_asked_ns = 0;  // when it was last seen what it reads; 0: not since looks began
};

class ChildList {
 public:
  static constexpr size_t kMost = 64;

  void SetUp(const proto::PythonPlace& place);
  // Tells those who read this process's memory that it samples itself.
  static void TellActive();

  // Lists them anew: what our main thread has started, and the main threads of those.
  void Find(uint64_t now_ns);
  std::span<Child> children() { return {children_.data(), count_}; }

  // It has become another program since, or has ended.
  bool IsStillForked(const Child& child);
  // A child's copy of what we have open. Runs on: the forking thread, in the child.
  void CloseInForkChild() { own_children_.CloseInForkChild(); }

 private:
  void AddListed(std::string_view numbers, int32_t parent, std::span<const Child> before);
  void AddChildrenOf(const Child& child, bool anew, std::span<const Child> before);
  void Identify(Child* child, uint64_t now_ns);
  bool FindShifts(Child* child);

  struct Mapped {
    std::string path;
    uint64_t base = 0;  // in this process
  };
  Mapped python_, agent_;
  std::array<Child, kMost> children_{}, before_{};
  size_t count_ = 0;
  std::vector<char> text_;
  OwnDescriptor own_children_;
};

}  // namespace ranktap::agent::samples
