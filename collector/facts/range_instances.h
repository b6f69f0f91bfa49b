// The program's ranges one by one, with how they nest and what they launched.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// In place of a Dictionary::Domain: record_function and ProfilerStep#N.
inline constexpr uint32_t kAnnotationDomain = kNone;

struct RangeInstance {
  int64_t start = 0, end = 0;
  uint32_t name = 0;    // Dictionary::String
  uint32_t domain = 0;  // Dictionary::Domain or kAnnotationDomain
  uint16_t writer = 0;  // the thread that began it
  bool unfinished = false;
  bool nests = true;  // false: began and ended by hand, on any thread; no parent and no children
  uint32_t level = 0;
  uint32_t parent = kNone;  // index: the innermost range of the same thread that holds all of it
  uint32_t children = 0;    // directly below
  int64_t children_ns = 0;
  int64_t self_ns() const { return end - start - children_ns; }
};

// NVTX ranges and the framework's annotations, by start, of equal starts the longer first. Without
// the step that is open when the program ends. Worked out once and kept in the trace's memo.
const std::vector<RangeInstance>& RangeInstances(const Trace& trace);
// The same, not kept: of 64 ranks of a million events they are 132 MiB.
std::vector<RangeInstance> FindRangeInstances(const Trace& trace);

// "": the default domain.
std::string_view DomainName(const Trace& trace, uint32_t domain);

// The work that a thread launched within a time: from the first one's begin to the last one's end.
struct WorkExtent {
  int64_t first = INT64_MAX, last = INT64_MIN;
  int64_t total_ns = 0;    // sum of the pieces
  int64_t operations = 0;  // kernels, copies, memsets, graphs that were traced as a whole
  int64_t projected_ns() const { return operations == 0 ? 0 : last - first; }
  void Add(const WorkExtent& other);
};

// Answers in O(log n). Work without times, or without a known launch, is left out.
class ProjectedWork {
 public:
  explicit ProjectedWork(const Trace& trace);
  WorkExtent Of(const RangeInstance& range) const;

 private:
  struct Thread {
    std::vector<int64_t> launches;
    std::vector<WorkExtent> tree;  // of node i: 2i and 2i + 1; leaves from launches.size() on
  };
  std::vector<Thread> threads_;  // by writer
};

}  // namespace ranktap::collector
