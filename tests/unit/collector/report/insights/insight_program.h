// A run to which a test adds what a rule should see, and nothing else.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/report/insights/find_insights.h"
#include "collector/trace/operator_join.h"
#include "collector/trace/run.h"
#include "proto/framework_marks.h"
#include "tests/unit/collector/nanoseconds.h"

namespace ranktap::collector {

inline constexpr std::string_view kAllReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
// CUPTI's numbers of kinds of memory, and of copies.
inline constexpr uint8_t kPageable = 1, kPinned = 2, kOnDevice = 3;
inline constexpr uint8_t kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 8;

// One rank. Calls are added in the order of time, and so is each kind of work.
class InsightRank {
 public:
  explicit InsightRank(Trace* trace) : trace_(*trace) {
    trace_.closed = true;
    trace_.writers.emplace_back().thread = 100;
  }
  Trace& trace() { return trace_; }

  uint32_t AddCall(std::string_view api, int64_t start, int64_t end) {
    ApiCalls& calls = trace_.api_calls;
    calls.start.push_back(start);
    calls.end.push_back(end);
    calls.correlation.push_back(static_cast<uint32_t>(calls.size()));
    calls.api.push_back(ApiOf(api));
    calls.writer.push_back(0);
    Reach(start, end);
    return static_cast<uint32_t>(calls.size()) - 1;
  }
  struct Kernel {
    std::string_view name = "gemm";
    int64_t launched = 0, start = 0, end = 0;
    uint32_t stream = 7, device = 0;
    std::string_view api = "cudaLaunchKernel";
    int64_t launch_ns = 1 * kUs;
  };
  void AddKernel(const Kernel& kernel) {
    Kernels& kernels = trace_.kernels;
    const uint32_t launch =
        AddCall(kernel.api, kernel.launched, kernel.launched + kernel.launch_ns);
    AddWork(&kernels, kernel.start, kernel.end, LaneOf(kernel.device, kernel.stream), launch);
    kernels.name.push_back(StringOf(kernel.name));
    kernels.shape.push_back(0);
    kernels.collective.PadTo(kernels.size());
  }
  struct Copy {
    uint8_t kind = kHostToDevice, from = kPinned, to = kOnDevice;
    uint64_t bytes = 0;
    int64_t called = 0, returned = 0;
    int64_t start = 0, end = 0;
    uint32_t stream = 7;
    std::string_view api = "cudaMemcpyAsync";
  };
  void AddCopy(const Copy& copy) {
    Copies& copies = trace_.copies;
    AddWork(&copies, copy.start, copy.end, LaneOf(0, copy.stream),
            AddCall(copy.api, copy.called, copy.returned));
    copies.bytes.push_back(copy.bytes);
    copies.copy_kind.push_back(copy.kind);
    copies.src_kind.push_back(copy.from);
    copies.dst_kind.push_back(copy.to);
  }
  struct Memset {
    uint64_t bytes = 0;
    int64_t called = 0, returned = 0;
    int64_t start = 0, end = 0;
    std::string_view api = "cudaMemsetAsync";
  };
  void AddMemset(const Memset& memset) {
    Memsets& memsets = trace_.memsets;
    AddWork(&memsets, memset.start, memset.end, LaneOf(0, 7),
            AddCall(memset.api, memset.called, memset.returned));
    memsets.bytes.push_back(memset.bytes);
    memsets.memory_kind.push_back(kOnDevice);
  }
  // Of the kernel that was added last. `sequence`: of the call in its group, from 1.
  void DescribeCollective(uint64_t sequence, uint64_t bytes, uint32_t ranks) {
    trace_.collectives.push_back({.name = "allreduce",
                                  .dtype = "Float",
                                  .group = "0",
                                  .group_description = "default_pg",
                                  .group_ranks = ranks == 2 ? "[0, 1]" : "[0, 1, 2, 3]",
                                  .in_elements = bytes / 4,
                                  .out_elements = bytes / 4,
                                  .group_size = ranks,
                                  .sequence = sequence + 1});
    trace_.kernels.collective[trace_.kernels.size() - 1] =
        static_cast<uint32_t>(trace_.collectives.size());
  }
  // `stack` as torch.profiler writes it: "train.py(12): step;train.py(40): main".
  void AddOperator(std::string_view name, int64_t start, int64_t end, std::string_view stack = "") {
    Operators& ops = trace_.operators;
    ops.start.push_back(start);
    ops.end.push_back(end);
    ops.name.push_back(StringOf(name));
    ops.writer.push_back(0);
    ops.kind.push_back(static_cast<uint8_t>(OperatorKind::kOperator));
    ops.parent.push_back(kNone);
    ops.stack.PadTo(ops.size());
    if (!stack.empty()) ops.stack[ops.size() - 1] = StringOf(stack);
    NestOperators(&trace_);
    Reach(start, end);
  }
  void AddRange(std::string_view domain, std::string_view name, int64_t start, int64_t end) {
    Ranges& ranges = trace_.ranges;
    ranges.start.push_back(start);
    ranges.end.push_back(end);
    ranges.name.push_back(StringOf(name));
    ranges.domain.push_back(DomainOf(domain));
    ranges.writer.push_back(0);
    ranges.depth.push_back(0);
    ranges.kind.push_back(0);
    ranges.payload.PadTo(ranges.size());
    Reach(start, end);
  }
  void AddStep(int64_t start, int64_t end) { AddRange(proto::kStepDomain, "step", start, end); }

 private:
  void AddWork(DeviceWork* work, int64_t start, int64_t end, uint32_t lane, uint32_t launch) {
    work->start.push_back(start);
    work->end.push_back(end);
    work->lane.push_back(lane);
    work->correlation.push_back(launch + 1);
    work->launch.push_back(launch);
    Reach(start, end);
  }
  uint32_t LaneOf(uint32_t device, uint32_t stream) {
    const Lane lane{device, 1, stream};
    const auto at = std::ranges::find(trace_.lanes, lane);
    if (at == trace_.lanes.end()) trace_.lanes.push_back(lane);
    return static_cast<uint32_t>(std::ranges::find(trace_.lanes, lane) - trace_.lanes.begin());
  }
  uint32_t ApiOf(std::string_view name) {
    const auto at = std::ranges::find(apis_, name);
    if (at != apis_.end()) return static_cast<uint32_t>(at - apis_.begin()) + 1;
    apis_.emplace_back(name);
    return trace_.dictionary.AppendApi(
        {.domain = proto::ApiDomain::kRuntime, .cbid = 1, .name = std::string(name)});
  }
  uint32_t StringOf(std::string_view text) {
    const auto at = std::ranges::find(strings_, text);
    if (at != strings_.end()) return static_cast<uint32_t>(at - strings_.begin()) + 1;
    strings_.emplace_back(text);
    return trace_.dictionary.AppendString(text);
  }
  uint16_t DomainOf(std::string_view text) {
    if (text.empty()) return 0;
    const auto at = std::ranges::find(domains_, text);
    if (at != domains_.end()) return static_cast<uint16_t>(at - domains_.begin() + 1);
    domains_.emplace_back(text);
    v1::Dictionary names;
    v1::Text& domain = *names.add_nvtx_domains();
    domain.set_id(static_cast<uint32_t>(domains_.size()));
    domain.set_text(std::string(text));
    const std::string bytes = names.SerializeAsString();
    EXPECT_TRUE(trace_.dictionary.Add(std::as_bytes(std::span(bytes))));
    return static_cast<uint16_t>(domains_.size());
  }
  void Reach(int64_t start, int64_t end) {
    trace_.first_ns = trace_.events++ == 0 ? start : std::min(trace_.first_ns, start);
    trace_.last_ns = std::max(trace_.last_ns, end);
  }

  Trace& trace_;
  std::vector<std::string> strings_, domains_, apis_;
};

// A job of some ranks; of one without a number where there is one alone.
class InsightProgram {
 public:
  explicit InsightProgram(uint32_t ranks = 1) {
    run_.traces.resize(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      Trace& trace = run_.traces[rank];
      trace.info.file = "rank-" + std::to_string(rank) + ".trace";
      if (ranks > 1) {
        trace.info.rank = rank;
        trace.info.world_size = ranks;
      }
      ranks_.emplace_back(&trace);
    }
  }
  InsightRank& rank(uint32_t rank = 0) { return ranks_[rank]; }
  InsightRank* operator->() { return &ranks_[0]; }
  Run& run() { return run_; }

 private:
  Run run_;
  std::vector<InsightRank> ranks_;
};

inline std::vector<Insight> FindingsOf(const Run& run, std::string_view rule) {
  std::vector<Insight> found;
  for (const InsightRule& known : AllInsightRules()) {
    if (known.name == rule) found = FindInsights(run, {&known, 1}).list;
  }
  return found;
}
inline bool IsSilent(const Run& run, std::string_view rule) {
  const std::vector<Insight> found = FindingsOf(run, rule);
  for (const Insight& insight : found) ADD_FAILURE() << insight.finding;
  return found.empty();
}
// The one finding of a rule that must fire once.
inline Insight TheFinding(const Run& run, std::string_view rule) {
  std::vector<Insight> found = FindingsOf(run, rule);
  EXPECT_EQ(found.size(), 1u) << rule;
  return found.empty() ? Insight() : std::move(found[0]);
}
// Whether the rule says that the trace cannot tell.
inline bool IsUnchecked(const Run& run, std::string_view rule) {
  for (const Insights::Unchecked& unchecked : FindInsights(run).unchecked) {
    if (unchecked.rule == rule) return true;
  }
  return false;
}

}  // namespace ranktap::collector
