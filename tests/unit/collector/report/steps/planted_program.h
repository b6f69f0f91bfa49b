// A trace to which a test adds what it wants a report to say.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/trace/run.h"
#include "proto/framework_marks.h"
#include "tests/unit/collector/nanoseconds.h"

namespace ranktap::collector {

// A trace to which things are added in the order of time.
class Program {
 public:
  Program() {
    Trace& trace = run_.traces.emplace_back();
    trace.info.file = "process.trace";
    trace.closed = true;
    trace.lanes = {{0, 1, 7}};
    trace.writers.emplace_back().thread = 100;
    trace.dictionary.AppendApi(
        {.domain = proto::ApiDomain::kRuntime, .cbid = 1, .name = "cudaLaunchKernel"});
  }

  void AddRange(std::string_view domain, std::string_view name, int64_t start, int64_t end,
                uint8_t unfinished = 0) {
    Ranges& ranges = trace().ranges;
    ranges.start.push_back(start);
    ranges.end.push_back(end);
    ranges.name.push_back(StringOf(name));
    ranges.domain.push_back(DomainOf(domain));
    ranges.writer.push_back(0);
    ranges.depth.push_back(0);
    ranges.kind.push_back(0);
    ranges.payload.PadTo(ranges.size());
    ranges.unfinished.push_back(unfinished);
    Reach(start, end);
  }
  // A mark of the agent's hooks, with lines of JSON.
  void AddMark(std::string_view domain, std::string_view name, int64_t at, std::string_view lines) {
    Ranges& marks = trace().marks;
    marks.start.push_back(at);
    marks.end.push_back(at);
    marks.name.push_back(StringOf(name));
    marks.domain.push_back(DomainOf(domain));
    marks.writer.push_back(0);
    marks.depth.push_back(0);
    marks.kind.push_back(static_cast<uint8_t>(RangeKind::kMark));
    const uint64_t head[2] = {0, lines.size()};  // schema, bytes
    trace().payloads.push_back(std::string(reinterpret_cast<const char*>(head), sizeof(head)) +
                               std::string(lines));
    marks.inline_payload.PadTo(marks.size());
    marks.inline_payload.back() = static_cast<uint32_t>(trace().payloads.size());
    Reach(at, at);
  }
  void AddStep(int64_t start, int64_t end) { AddRange(proto::kStepDomain, "step", start, end); }
  void AddKernel(int64_t launched, int64_t start, int64_t end) {
    ApiCalls& calls = trace().api_calls;
    Kernels& kernels = trace().kernels;
    kernels.start.push_back(start);
    kernels.end.push_back(end);
    kernels.lane.push_back(0);
    kernels.correlation.push_back(static_cast<uint32_t>(calls.size()) + 1);
    kernels.launch.push_back(static_cast<uint32_t>(calls.size()));
    kernels.name.push_back(StringOf("gemm"));
    kernels.shape.push_back(0);
    kernels.collective.PadTo(kernels.size());
    calls.start.push_back(launched);
    calls.end.push_back(launched + 1'000);
    calls.correlation.push_back(static_cast<uint32_t>(calls.size()));
    calls.api.push_back(1);
    calls.writer.push_back(0);
    Reach(launched, end);
  }
  // A call that launches nothing.
  void AddCall(std::string_view name, int64_t start, int64_t end) {
    const auto known = std::find(apis_.begin(), apis_.end(), name);
    const auto api = static_cast<uint32_t>(known - apis_.begin()) + 2;  // after cudaLaunchKernel
    if (known == apis_.end()) {
      apis_.emplace_back(name);
      trace().dictionary.AppendApi(
          {.domain = proto::ApiDomain::kRuntime, .cbid = 100 + api, .name = std::string(name)});
    }
    ApiCalls& calls = trace().api_calls;
    calls.start.push_back(start);
    calls.end.push_back(end);
    calls.correlation.push_back(static_cast<uint32_t>(calls.size()));
    calls.api.push_back(api);
    calls.writer.push_back(0);
    Reach(start, end);
  }
  void AddOperator(std::string_view name, int64_t start, int64_t end,
                   OperatorKind kind = OperatorKind::kOperator) {
    Operators& ops = trace().operators;
    ops.start.push_back(start);
    ops.end.push_back(end);
    ops.name.push_back(StringOf(name));
    ops.writer.push_back(0);
    ops.kind.push_back(static_cast<uint8_t>(kind));
    ops.parent.push_back(kNone);
    Reach(start, end);
  }

  Trace& trace() { return run_.traces[0]; }
  Run& run() { return run_; }

 private:
  uint32_t StringOf(std::string_view text) { return IdOf(text, &strings_, true); }
  uint16_t DomainOf(std::string_view text) {
    return text.empty() ? 0 : static_cast<uint16_t>(IdOf(text, &domains_, false));
  }
  uint32_t IdOf(std::string_view text, std::vector<std::string>* known, bool is_string) {
    for (size_t i = 0; i < known->size(); ++i) {
      if ((*known)[i] == text) return static_cast<uint32_t>(i) + 1;
    }
    known->emplace_back(text);
    if (is_string) {
      trace().dictionary.AppendString(std::string(text));
    } else {
      v1::Dictionary names;
      v1::Text& domain = *names.add_nvtx_domains();
      domain.set_id(static_cast<uint32_t>(known->size()));
      domain.set_text(std::string(text));
      const std::string bytes = names.SerializeAsString();
      EXPECT_TRUE(trace().dictionary.Add(std::as_bytes(std::span(bytes))));
    }
    return static_cast<uint32_t>(known->size());
  }
  void Reach(int64_t start, int64_t end) {
    if (trace().events++ == 0) trace().first_ns = start;
    trace().last_ns = std::max(trace().last_ns, end);
  }

  Run run_;
  std::vector<std::string> strings_, domains_, apis_;
};

}  // namespace ranktap::collector
