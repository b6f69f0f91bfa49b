// The waterfall, the verdict and the stragglers on jobs whose answers are known.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "collector/facts/causes/stragglers.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/steps.h"
#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

JobShape Jittered(uint32_t seed) {
  std::mt19937 random(seed);
  const auto up_to = [&random](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most)(random);
  };
  return {.ranks = static_cast<uint32_t>(1 + up_to(5)),
          .layers = static_cast<uint32_t>(1 + up_to(4)),
          .seed = seed,
          .steps = static_cast<int>(3 + up_to(9)),
          .compute_ns = 100'000 + up_to(300'000),
          .copy_ns = 10'000 + up_to(40'000),
          .transfer_ns = 20'000 + up_to(100'000),
          .data_ns = up_to(60'000),
          .host_ns = 1'000 + up_to(60'000),
          .jitter_ns = up_to(50'000),
          .syncs = up_to(1) == 0};
}

TEST(Waterfall, EachStepOfEachRankIsExactlyWhatWasPlanted) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SyntheticJob job(Jittered(seed));
    const std::vector<RankWaterfall> found = ComputeWaterfalls(job.run());
    ASSERT_EQ(found.size(), job.causes().size());
    for (size_t rank = 0; rank < found.size(); ++rank) {
      ASSERT_EQ(found[rank].times.size(), job.causes()[rank].size());
      for (size_t step = 0; step < found[rank].times.size(); ++step) {
        const CauseTimes& times = found[rank].times[step];
        EXPECT_EQ(std::accumulate(times.begin(), times.end(), int64_t{0}),
                  found[rank].steps.list[step].length());
        for (size_t c = 0; c < kCauses; ++c) {
          EXPECT_EQ(times[c], job.causes()[rank][step][c])
              << NameOf(static_cast<Cause>(c)) << " of rank " << rank << " in step " << step;
        }
      }
    }
  }
}

TEST(Waterfall, TheSharesOfTheTableAddUpToAllOfTheStep) {
  SyntheticJob job(Jittered(7));
  const Table table = TabulateWaterfall(job.run(), {});
  double sum = 0;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    sum += CellAt<double>(table, row, "share_percent");
  }
  EXPECT_NEAR(sum, 100, 1e-9);
}

class PlantedStraggler : public ::testing::TestWithParam<Cause> {};

TEST_P(PlantedStraggler, IsFoundWithItsCauseAndItsCost) {
  const Cause cause = GetParam();
  SyntheticJob job({.steps = 10,
                    .transfer_ns = 20'000,
                    .syncs = false,
                    .late = {{.rank = 2, .cause = cause, .ns = 150'000}}});
  const std::vector<CollectiveRun> collectives = MatchCollectives(job.run());
  const std::vector<RankWaterfall> waterfalls = ComputeWaterfalls(job.run());
  const std::vector<Straggler> found = FindStragglers(job.run(), collectives, waterfalls);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].trace, 2u);
  EXPECT_EQ(found[0].caused_wait_ns, 150'000);
  EXPECT_TRUE(found[0].persistent);
  ASSERT_TRUE(found[0].cause.has_value());
  EXPECT_EQ(*found[0].cause, cause);
  EXPECT_EQ(found[0].excess_ns, 150'000);
  const Verdict verdict = Judge(job.run());
  EXPECT_NE(
      verdict.sentence.find("wait for rank 2, which spends 150.0 us a step more than they do"),
      std::string::npos)
      << verdict.sentence;
}
INSTANTIATE_TEST_SUITE_P(Causes, PlantedStraggler,
                         ::testing::Values(Cause::kCompute, Cause::kMemory, Cause::kHost,
                                           Cause::kDataLoading));

TEST(Stragglers, OnceLateInTwoStepsIsNoHabit) {
  SyntheticJob job({.steps = 3, .late = {{.rank = 1, .ns = 300'000, .first_step = 2}}});
  const Table table = TabulateStragglers(job.run(), {});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "steps_late"), 1);
  EXPECT_LE(CellAt<int64_t>(table, 0, "steps"), 3);
  EXPECT_EQ(CellAt<std::string>(table, 0, "kind"), "transient");
}

TEST(Stragglers, OfOneStepNobodyKnowsWhetherItIsAHabit) {
  SyntheticJob job({.steps = 1, .late = {{.rank = 1, .ns = 3'000'000}}});
  for (Trace& trace : job.run().traces) {
    trace.dictionary.AppendString("ProfilerStep#4");
    Operators& ops = trace.operators;
    ops.start.push_back(trace.first_ns);
    ops.end.push_back(trace.last_ns);
    ops.name.push_back(SyntheticJob::kDataName + 1);
    ops.writer.push_back(0);
    ops.kind.push_back(static_cast<uint8_t>(OperatorKind::kAnnotation));
    ops.parent.push_back(kNone);
  }
  const Table table = TabulateStragglers(job.run(), {});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "steps"), 1);
  const auto kind = std::find_if(table.columns.begin(), table.columns.end(),
                                 [](const TableColumn& each) { return each.name == "kind"; });
  EXPECT_EQ(table.rows[0][static_cast<size_t>(kind - table.columns.begin())], Cell());
  const std::string sentence = Judge(job.run()).sentence;
  EXPECT_NE(sentence.find("the other ranks wait for rank 1"), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find("in some steps only"), std::string::npos) << sentence;
}

TEST(Stragglers, RanksThatAreLateInTurnAreNobodysGuilt) {
  SyntheticJob job({.steps = 20,
                    .transfer_ns = 20'000,
                    .syncs = false,
                    .late = {{.rank = 1, .ns = 300'000, .first_step = 0, .last_step = 9},
                             {.rank = 2, .ns = 280'000, .first_step = 10, .last_step = 19}}});
  const Table table = TabulateStragglers(job.run(), {});
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_GE(CellAt<int64_t>(table, 0, "steps_late") * 2, CellAt<int64_t>(table, 0, "steps"));
  EXPECT_EQ(CellAt<std::string>(table, 0, "kind"), "transient");
  EXPECT_EQ(CellAt<std::string>(table, 1, "kind"), "transient");
  const std::string sentence = Judge(job.run()).sentence;
  EXPECT_NE(sentence.find("the ranks wait for each other in turn, most for rank 1"),
            std::string::npos)
      << sentence;
}

TEST(Stragglers, OneThatIsLateInTwoStepsOfTwentyIsTransient) {
  SyntheticJob job(
      {.steps = 20, .late = {{.rank = 1, .ns = 300'000, .first_step = 5, .last_step = 6}}});
  const Table table = TabulateStragglers(job.run(), {});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "rank"), 1);
  EXPECT_EQ(CellAt<std::string>(table, 0, "kind"), "transient");
  EXPECT_EQ(CellAt<int64_t>(table, 0, "steps_late"), 2);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "caused_wait_ns"), 30'000);
}

TEST(Stragglers, ClocksThatDifferBySecondsChangeNothing) {
  JobShape shape{.late = {{.rank = 3, .ns = 90'000}}};
  SyntheticJob same(shape);
  shape.clocks = {{0}, {5'000'000'000}, {-3'000'000'000}, {77}};
  SyntheticJob apart(shape);
  EXPECT_EQ(TabulateStragglers(same.run(), {}).rows, TabulateStragglers(apart.run(), {}).rows);
  EXPECT_EQ(TabulateWaterfall(same.run(), {}).rows, TabulateWaterfall(apart.run(), {}).rows);
}

TEST(Verdict, RefusesWhereEventsAreMissing) {
  SyntheticJob job({});
  EXPECT_FALSE(Judge(job.run()).refused);
  job.run().traces[1].writers[0].lost[static_cast<size_t>(proto::Loss::kRingFull)] = 3;
  const Verdict verdict = Judge(job.run());
  EXPECT_TRUE(verdict.refused);
  EXPECT_TRUE(verdict.losses.empty());
  EXPECT_NE(verdict.sentence.find("rank 1 lost 3 events"), std::string::npos) << verdict.sentence;
}

TEST(Verdict, RefusesWhereKernelsOfLaunchesAreMissing) {
  SyntheticJob job({});
  Kernels& kernels = job.run().traces[2].kernels;
  for (size_t i = 0; i < kernels.size(); i += 4) kernels.launch[i] = kNone;
  const Verdict verdict = Judge(job.run());
  EXPECT_TRUE(verdict.refused);
  EXPECT_NE(verdict.sentence.find("rank 2"), std::string::npos) << verdict.sentence;
}

TEST(Verdict, BlamesNoDeviceWhereNoneDidAnything) {
  SyntheticJob job({.ranks = 1});
  job.run().traces[0].copies = {};
  job.run().traces[0].kernels = {};
  job.run().traces[0].api_calls = {};
  const Verdict verdict = Judge(job.run());
  EXPECT_TRUE(verdict.on_host);
  ASSERT_EQ(verdict.losses.size(), 2u);
  EXPECT_EQ(verdict.losses[0].cause, Cause::kHost);
  EXPECT_EQ(verdict.losses[0].finding, "running code on the host");
  EXPECT_EQ(verdict.losses[1].cause, Cause::kDataLoading);
  EXPECT_NE(verdict.sentence.find("Without a device all of each"), std::string::npos)
      << verdict.sentence;
  EXPECT_NE(verdict.sentence.find(" waiting for data"), std::string::npos) << verdict.sentence;
}

// Two iterations as torch.profiler records them on a CPU: 4 ms of forward operators, 5 ms of
// autograd's, 1 ms of the optimizer.
InsightProgram ATorchProgramOnTheHost(bool has_optimizer) {
  InsightProgram program;
  for (int64_t at = 0; at < 20 * kMs; at += 10 * kMs) {
    program->AddOperator("aten::linear", at, at + 4 * kMs);
    program->AddOperator("autograd::engine::evaluate_function: AddmmBackward0", at + 4 * kMs,
                         at + 9 * kMs);
    if (!has_optimizer) continue;
    program->AddOperator("Optimizer.step#SGD.step", at + 9 * kMs, at + 10 * kMs);
  }
  return program;
}

TEST(Verdict, OfAHostWithoutStepsOfTheProfilersGoesByItsOptimizersSteps) {
  InsightProgram program = ATorchProgramOnTheHost(true);
  EXPECT_EQ(DetectSteps(program.run().traces[0]).source, "Optimizer.step");
  EXPECT_EQ(Judge(program.run()).sentence,
            "Without a device all of each 10.00 ms step is the host's time: 5.000 ms (50.0 %) in "
            "the backward pass, 4.000 ms (40.0 %) in the forward pass or before it (in "
            "aten::linear), 1.000 ms (10.0 %) in the optimizer.");
}

TEST(Verdict, OfAHostWithoutAnyStepsIsAboutAllItsOperators) {
  InsightProgram program = ATorchProgramOnTheHost(false);
  EXPECT_EQ(
      Judge(program.run()).sentence,
      "Without a device all of 19.00 ms is the host's time: 10.00 ms (52.6 %) in the backward "
      "pass, "
      "9.000 ms (47.4 %) between two backward passes (in aten::linear). No steps were found.");
}

TEST(Steps, OfTwoOptimizersEndWithTheSecondWhereNoBackwardPassIsBetweenThem) {
  InsightProgram program = ATorchProgramOnTheHost(true);
  program->AddOperator("Optimizer.step#Adam.step", 20 * kMs, 22 * kMs);
  const std::vector<Step>& steps = DetectSteps(program.run().traces[0]).list;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].start, 10 * kMs);
  EXPECT_EQ(steps[1].end, 22 * kMs);
}

}  // namespace
}  // namespace ranktap::collector
