#include "collector/facts/range_instances.h"

#include <algorithm>
#include <tuple>

#include "collector/trace/framework_ranges.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

// By start.
bool LongerFirst(const RangeInstance& a, const RangeInstance& b) {
  return std::tie(a.start, b.end) < std::tie(b.start, a.end);
}

std::vector<RangeInstance> Collect(const Trace& trace) {
  std::vector<RangeInstance> found;
  const Ranges& ranges = trace.ranges;
  found.reserve(ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const bool unfinished = ranges.unfinished.At(i) != 0;
    // After the last optimizer's step comes no step: that range is open until the program ends.
    if (unfinished && trace.dictionary.Domain(ranges.domain[i]) == kStepDomain) continue;
    found.push_back({.start = ranges.start[i],
                     .end = ranges.end[i],
                     .name = ranges.name[i],
                     .domain = ranges.domain[i],
                     .writer = ranges.writer[i],
                     .unfinished = unfinished,
                     .nests = static_cast<RangeKind>(ranges.kind[i]) == RangeKind::kPushPop});
  }
  MergeRows(&found, 0, LongerFirst);
  const size_t annotations = found.size();
  const Operators& ops = trace.operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (static_cast<OperatorKind>(ops.kind[i]) != OperatorKind::kAnnotation) continue;
    found.push_back({.start = ops.start[i],
                     .end = ops.end[i],
                     .name = ops.name[i],
                     .domain = kAnnotationDomain,
                     .writer = ops.writer[i]});
  }
  MergeRows(&found, annotations, LongerFirst);
  return found;
}

// Ranges of two domains may overlap without one holding the other: then neither is a child.
void Nest(std::vector<RangeInstance>* ranges, size_t writers) {
  std::vector<std::vector<uint32_t>> open(writers);
  for (uint32_t i = 0; i < ranges->size(); ++i) {
    RangeInstance& range = (*ranges)[i];
    if (!range.nests || range.writer >= writers) continue;
    std::vector<uint32_t>& stack = open[range.writer];
    while (!stack.empty()) {
      const int64_t end = (*ranges)[stack.back()].end;
      if (end >= range.end && (end > range.start || range.end == range.start)) break;
      stack.pop_back();
    }
    range.level = static_cast<uint32_t>(stack.size());
    if (!stack.empty()) {
      range.parent = stack.back();
      RangeInstance& parent = (*ranges)[range.parent];
      ++parent.children;
      parent.children_ns += range.end - range.start;
    }
    stack.push_back(i);
  }
}

void AddWork(const DeviceWork& work, std::vector<WorkExtent>* by_call) {
  for (size_t i = 0; i < work.size(); ++i) {
    if (work.launch[i] == kNone || work.start[i] == kUntimed) continue;
    (*by_call)[work.launch[i]].Add(
        {work.start[i], work.end[i], work.end[i] - work.start[i], /*operations=*/1});
  }
}

}  // namespace

const std::vector<RangeInstance>& RangeInstances(const Trace& trace) {
  struct Found {
    std::vector<RangeInstance> list;
  };
  return trace.memo.Get<Found>([&] { return Found{FindRangeInstances(trace)}; }).list;
}

std::vector<RangeInstance> FindRangeInstances(const Trace& trace) {
  std::vector<RangeInstance> found = Collect(trace);
  Nest(&found, trace.writers.size());
  return found;
}

std::string_view DomainName(const Trace& trace, uint32_t domain) {
  return domain == kAnnotationDomain ? std::string_view(proto::kLabelDomain)
                                     : std::string_view(trace.dictionary.Domain(domain));
}

void WorkExtent::Add(const WorkExtent& other) {
  first = std::min(first, other.first);
  last = std::max(last, other.last);
  total_ns += other.total_ns;
  operations += other.operations;
}

ProjectedWork::ProjectedWork(const Trace& trace) : threads_(trace.writers.size()) {
  const ApiCalls& calls = trace.api_calls;
  std::vector<WorkExtent> by_call(calls.size());
  AddWork(trace.kernels, &by_call);
  AddWork(trace.copies, &by_call);
  AddWork(trace.memsets, &by_call);
  AddWork(trace.graph_launches, &by_call);
  for (size_t i = 0; i < by_call.size(); ++i) {
    if (by_call[i].operations == 0 || calls.writer[i] >= threads_.size()) continue;
    threads_[calls.writer[i]].launches.push_back(calls.start[i]);
    threads_[calls.writer[i]].tree.push_back(by_call[i]);
  }
  for (Thread& thread : threads_) {
    const size_t leaves = thread.tree.size();
    thread.tree.insert(thread.tree.begin(), leaves, WorkExtent{});
    for (size_t node = leaves; node-- > 1;) {
      thread.tree[node] = thread.tree[2 * node];
      thread.tree[node].Add(thread.tree[2 * node + 1]);
    }
  }
}

WorkExtent ProjectedWork::Of(const RangeInstance& range) const {
  WorkExtent extent;
  if (range.writer >= threads_.size()) return extent;
  const auto& [launches, tree] = threads_[range.writer];
  const auto index = [&launches = launches](int64_t time) {
    return launches.size() +
           static_cast<size_t>(std::lower_bound(launches.begin(), launches.end(), time) -
                               launches.begin());
  };
  for (size_t left = index(range.start), right = index(range.end); left < right;
       left /= 2, right /= 2) {
    if (left % 2 == 1) extent.Add(tree[left++]);
    if (right % 2 == 1) extent.Add(tree[--right]);
  }
  return extent;
}

}  // namespace ranktap::collector
