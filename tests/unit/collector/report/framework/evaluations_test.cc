// A program that trains and evaluates, as the tables of operators and modules tell it.
#include <gtest/gtest.h>

#include "collector/report/reports.h"
#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kProductFlops = 2 * 2 * 3 * 4;

// A forward of 10 ms, in which one product runs.
void AddForward(int64_t at, bool recorded, InsightRank* rank) {
  rank->AddRange(proto::kModuleDomain, "Net", at, at + 10 * kMs);
  if (!recorded) return;
  rank->AddOperator("aten::mm", at + 1 * kMs, at + 2 * kMs);
  Trace& trace = rank->trace();
  trace.operators.shapes.PadTo(trace.operators.size());
  trace.operators.shapes[trace.operators.size() - 1] =
      trace.dictionary.AppendString("[[2, 3], [3, 4]]");
}

// One training step, whose forward has a backward pass, and two forwards after it.
InsightProgram ATrainingStepAndTwoEvaluations(bool trains_recorded, bool evaluates_recorded) {
  InsightProgram program;
  program->trace().origin = TraceOrigin::kCapture;
  program->AddStep(0, 40 * kMs);
  AddForward(0, trains_recorded, &program.rank());
  program->AddRange(proto::kPhaseDomain, proto::kBackwardPhase, 20 * kMs, 30 * kMs);
  AddForward(50 * kMs, evaluates_recorded, &program.rank());
  AddForward(70 * kMs, evaluates_recorded, &program.rank());
  return program;
}

TEST(Evaluations, AreCountedAndAddNothingToATrainingStepsFlops) {
  InsightProgram program = ATrainingStepAndTwoEvaluations(true, true);
  const Table modules = TabulateModules(program.run(), {});
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "calls"), 1);
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "evaluation_calls"), 2);
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "forward_flops"), kProductFlops);
}

TEST(Evaluations, AloneInAWindowSayTheFlopsOfOneForward) {
  InsightProgram program = ATrainingStepAndTwoEvaluations(false, true);
  const Table modules = TabulateModules(program.run(), {});
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "forward_flops"), kProductFlops);
}

TEST(Evaluations, AreSaidBesideTheRecordedSteps) {
  InsightProgram program = ATrainingStepAndTwoEvaluations(true, true);
  EXPECT_TRUE(TabulateOps(program.run(), {})
                  .notes[0]
                  .ends_with(", of 1 recorded step and 2 forwards that only evaluate"));
  InsightProgram alone = ATrainingStepAndTwoEvaluations(false, true);
  EXPECT_TRUE(
      TabulateOps(alone.run(), {}).notes[0].ends_with(", of 2 forwards that only evaluate"));
}

TEST(Operators, OfAWindowThatItsScheduleLeftWithoutAnyAreExplained) {
  InsightProgram program = ATrainingStepAndTwoEvaluations(false, false);
  const Table table = TabulateOps(program.run(), {});
  EXPECT_TRUE(table.rows.empty());
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_TRUE(
      table.notes[0].ends_with("no step was recorded operator by operator: --schedule "
                               "counts steps from the begin of the window"))
      << table.notes[0];
}

}  // namespace
}  // namespace ranktap::collector
