#include "collector/export/recorded_cycles.h"

#include <gtest/gtest.h>

#include <string>

namespace ranktap::collector {
namespace {

// Steps 1 and 2 of 10 ns with an operator in each; the first begins 10 ns after `start`.
Trace StepsFrom(int64_t start) {
  Trace trace;
  trace.writers.resize(1);
  const auto add = [&trace](int64_t from, int64_t to, const std::string& name, OperatorKind kind) {
    trace.operators.start.push_back(from);
    trace.operators.end.push_back(to);
    trace.operators.name.push_back(trace.dictionary.AppendString(name));
    trace.operators.writer.push_back(0);
    trace.operators.kind.push_back(static_cast<uint8_t>(kind));
    trace.operators.parent.push_back(kNone);
  };
  for (int64_t step = 1; step <= 2; ++step) {
    const int64_t at = start + 10 * step;
    add(at, at + 10, "ProfilerStep#" + std::to_string(step), OperatorKind::kAnnotation);
    add(at + 1, at + 9, "aten::mm", OperatorKind::kOperator);
  }
  return trace;
}

TEST(RecordedCyclesTest, ARankThatIsAheadEndsItsCycleWithItsOwnLastStep) {
  collector::Run run;
  run.traces.push_back(StepsFrom(100));
  run.traces.push_back(StepsFrom(107));
  const std::vector<RecordedCycle> cycles = RecordedCycles(run);
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_EQ(cycles[0].of_all, Interval(110, 137));
  EXPECT_EQ(cycles[0].by_trace, (std::vector<Interval>{{110, 130}, {117, 137}}));
}

}  // namespace
}  // namespace ranktap::collector
