// Pieces of device work come back as they were appended, however little is kept of them.
#include "collector/facts/device_spans.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace ranktap::collector {
namespace {

constexpr uint32_t kRows = 3000;

// A pause of 5 s, so that one block of the column keeps its times whole.
int64_t StartOf(uint32_t row) { return 10 * int64_t{row} + (row < 1500 ? 0 : 5'000'000'000); }

Trace TraceOfKernels() {
  Trace trace;
  trace.lanes = {{0, 1, 7}, {0, 1, 20}};
  for (uint32_t row = 0; row < kRows; ++row) {
    trace.kernels.start.push_back(StartOf(row));
    trace.kernels.end.push_back(StartOf(row) + 5);
    trace.kernels.lane.push_back(row % 2);
    trace.kernels.name.push_back(row % 3);
    trace.kernels.launch.push_back(2 * row);
  }
  return trace;
}

DeviceSpan CopyOf(uint32_t row) {
  return {.start = row,
          .end = row + 1,
          .row = row,
          .table = DeviceSpan::Table::kCopy,
          .kind = WorkKind::kMemory};
}

void ExpectSame(const DeviceSpan& span, const DeviceSpan& expected, size_t i) {
  ASSERT_EQ(span.row, expected.row) << i;
  ASSERT_EQ(span.table, expected.table) << i;
  ASSERT_EQ(span.kind, expected.kind) << i;
  if (span.table != DeviceSpan::Table::kKernel) return;
  ASSERT_EQ(span.start, StartOf(span.row)) << i;
  ASSERT_EQ(span.end, StartOf(span.row) + 5) << i;
  ASSERT_EQ(span.stream, span.row % 2 == 0 ? 7u : 20u) << i;
  ASSERT_EQ(span.name, span.row % 3) << i;
  ASSERT_EQ(span.launch, 2 * span.row) << i;
}

// By place, by a walk, and by walks that begin anywhere.
void ExpectSame(const DeviceSpans& spans, const std::vector<DeviceSpan>& expected) {
  ASSERT_EQ(spans.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ExpectSame(spans[i], expected[i], i);
  for (size_t from = 0; from < expected.size(); from += from / 2 + 1) {
    size_t i = from;
    for (auto at = spans.begin() + static_cast<std::ptrdiff_t>(from); at != spans.end(); ++at) {
      ExpectSame(*at, expected[i], i);
      ++i;
    }
    ASSERT_EQ(i, expected.size());
  }
  std::vector<uint32_t> others, kept;
  for (uint32_t i = 0; i < expected.size(); ++i) {
    if (expected[i].table != DeviceSpan::Table::kKernel) others.push_back(i);
  }
  spans.ForEachKeptWhole([&](uint32_t place, const DeviceSpan& span) {
    ExpectSame(span, expected[place], place);
    if (span.table != DeviceSpan::Table::kKernel) kept.push_back(place);
  });
  EXPECT_EQ(kept, others);
  for (const WorkKind kind : {WorkKind::kCompute, WorkKind::kCommunication, WorkKind::kMemory}) {
    std::vector<uint32_t> of_kind, visited;
    for (uint32_t i = 0; i < expected.size(); ++i) {
      if (expected[i].kind == kind) of_kind.push_back(i);
    }
    spans.ForEachOfKind(kind, [&](uint32_t place, const DeviceSpan& span) {
      ExpectSame(span, expected[place], place);
      visited.push_back(place);
    });
    EXPECT_EQ(visited, of_kind);
  }
}

class Appended {
 public:
  explicit Appended(const Trace& trace) : spans_(trace) {}
  void Add(const DeviceSpan& span) {
    spans_.Append(span);
    all_.push_back(span);
  }
  void AddKernel(uint32_t row) {
    Add({.row = row, .kind = row % 5 == 0 ? WorkKind::kCommunication : WorkKind::kCompute});
  }
  void AddKernels(uint32_t row, uint32_t count) {
    std::vector<WorkKind> kinds;
    for (uint32_t i = row; i < row + count; ++i) {
      kinds.push_back(i % 5 == 0 ? WorkKind::kCommunication : WorkKind::kCompute);
      all_.push_back({.row = i, .kind = kinds.back()});
    }
    spans_.AppendKernels(row, kinds);
  }
  void Check() const { ExpectSame(spans_, all_); }

 private:
  DeviceSpans spans_;
  std::vector<DeviceSpan> all_;
};

TEST(DeviceSpans, KernelsInOrderAmongOtherWork) {
  const Trace trace = TraceOfKernels();
  Appended spans(trace);
  for (uint32_t row = 3; row < kRows; ++row) {
    spans.AddKernel(row);
    if (row % 7 == 0) spans.Add(CopyOf(row));
    if (row == 100) {
      for (uint32_t copy = 0; copy < 90; ++copy) spans.Add(CopyOf(copy));
    }
  }
  spans.Check();
}

TEST(DeviceSpans, KernelsOfManyRowsAtOnce) {
  const Trace trace = TraceOfKernels();
  Appended spans(trace);
  for (uint32_t row = 0, count = 0; row + count <= kRows; row += count, count = (count + 13) % 80) {
    spans.AddKernels(row, count);
    if (count % 3 == 0) spans.Add(CopyOf(row));
  }
  spans.AddKernels(17, 40);  // again: their rows do not go on
  spans.Check();
}

TEST(DeviceSpans, KernelsWhoseRowsDoNotCountUp) {
  const Trace trace = TraceOfKernels();
  Appended spans(trace);
  for (uint32_t i = 0; i < kRows; ++i) {
    if (i % 9 == 0) spans.Add(CopyOf(i));
    spans.AddKernel(i < 70 ? i : i < 80 ? 149 - i : i < 90 ? 10 : kRows - 1 - i / 2);
  }
  spans.Check();
}

}  // namespace
}  // namespace ranktap::collector
