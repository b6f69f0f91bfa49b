#include "collector/report/reports.h"
#include "collector/report/steps/mann_whitney.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "collector/report/steps/run_diff.h"
#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

TEST(MannWhitneyTest, GivesThePValuesOfScipy) {
  // scipy.stats.mannwhitneyu(a, b, method='asymptotic').pvalue
  EXPECT_NEAR(MannWhitney({1, 2, 3, 4, 5, 6}, {4, 5, 6, 7, 8, 9}), 0.03637858, 1e-6);
  // Without ties exact, as scipy's method="auto".
  EXPECT_NEAR(MannWhitney({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}), 2 / 252.0, 1e-12);
  EXPECT_NEAR(MannWhitney({6, 7, 8, 9, 10}, {1, 2, 3, 4, 5}), 2 / 252.0, 1e-12);
  EXPECT_NEAR(MannWhitney({1, 3, 5, 7, 9}, {2, 4, 6, 8, 10, 12}), 0.42857142857142855, 1e-9);
  EXPECT_NEAR(MannWhitney({1, 2, 3, 4, 5, 6, 7, 8, 9}, {10, 11, 12, 13, 14, 15, 16, 17, 18}),
              0.0004122948020616911, 1e-9);
  EXPECT_NEAR(MannWhitney({5, 5, 5}, {5, 5, 5}), 1, 1e-12);
}

RunSamples LinesOf(const std::vector<std::pair<std::string, double>>& lines) {
  RunSamples run;
  run.steps[static_cast<size_t>(SampleKind::kLine)] = 1;
  for (const auto& [name, ns] : lines) {
    run.by_key[{SampleKind::kLine, name}] = {.ns = {ns}, .calls = 1, .ids = {}};
  }
  return run;
}

TEST(Diff, LinesThatAnEditMovedAreTheSameLines) {
  RunSamples before = LinesOf({{"a.py:10 (f)", 50}, {"a.py:14 (f)", 7}, {"a.py:3 (g)", 9}});
  RunSamples after = LinesOf({{"a.py:12 (f)", 48}, {"a.py:13 (f)", 30}, {"a.py:3 (g)", 9}});
  JoinMovedLines(&before, &after);
  std::vector<std::string> names;
  for (const auto& [key, samples] : before.by_key) names.push_back(key.second);
  EXPECT_THAT(names, ::testing::ElementsAre("a.py:12 (f)", "a.py:16 (f)", "a.py:3 (g)"));
}

TEST(Diff, ALineThatSamplesMetInOneRunAloneIsNewOnlyIfItsTimeIsSignificant) {
  DiffRow step{.key = {SampleKind::kStep, "step"}, .before = 1e6, .after = 2e6};
  step.before_calls = step.after_calls = 1;
  step.p_value = 0.001;
  DiffRow line{.key = {SampleKind::kLine, "a.py:5 (f)"}, .after = 9e5};
  line.after_calls = 1;
  line.p_value = 0.2;
  const RunDiff by_chance{.rows = {step, line}};
  EXPECT_EQ(DescribeDiff(by_chance).find("a.py"), std::string::npos);
  line.p_value = 0.001;
  const RunDiff sure{.rows = {step, line}};
  EXPECT_NE(DescribeDiff(sure).find("New: line a.py:5 (f) (900.0 us)"), std::string::npos)
      << DescribeDiff(sure);
}

TEST(Diff, WhatWasMadeSlowerIsFoundWithItsAmountAndIsSignificant) {
  JobShape shape{.ranks = 2, .seed = 1, .steps = 30, .jitter_ns = 5'000};
  SyntheticJob before(shape);
  shape.seed = 2;
  shape.compute_ns += 20'000;
  SyntheticJob after(shape);
  const Table table = TabulateDiff(before.run(), after.run());
  EXPECT_EQ(CellAt<std::string>(table, 0, "kind"), "step");
  EXPECT_EQ(CellAt<std::string>(table, 0, "significant"), "yes");
  const size_t gemm = RowWith<std::string>(table, "name", "gemm");
  EXPECT_NEAR(static_cast<double>(CellAt<int64_t>(table, gemm, "diff_ns")), 3 * 20'000, 2'000);
  EXPECT_EQ(CellAt<std::string>(table, gemm, "significant"), "yes");
  EXPECT_DOUBLE_EQ(CellAt<double>(table, gemm, "before_calls"), 3);
}

TEST(Diff, OfTheSameJobWithOtherNoiseIsNotSignificant) {
  SyntheticJob before({.seed = 1, .steps = 30, .jitter_ns = 50'000});
  SyntheticJob after({.seed = 2, .steps = 30, .jitter_ns = 50'000});
  const Table table = TabulateDiff(before.run(), after.run());
  const size_t gemm = RowWith<std::string>(table, "name", "gemm");
  EXPECT_EQ(CellAt<std::string>(table, gemm, "significant"), "no");
}

TEST(Diff, WithoutStepsThereIsNoTest) {
  SyntheticJob before({}), after({});
  for (collector::Run* const run : {&before.run(), &after.run()}) {
    for (Trace& trace : run->traces) {
      trace.ranges = Ranges();
      trace.kernels = Kernels();
    }
  }
  const Table table = TabulateDiff(before.run(), after.run());
  EXPECT_TRUE(
      std::holds_alternative<std::monostate>(table.rows[0][ColumnNamed(table, "significant")]));
}

// Two runs that differ in what a test changes, and in nothing else: ten steps of a host, each of a
// forward pass of 8 ms, a backward pass of 8 and an optimizer of 2, and 2 ms of Python.
struct Planted {
  int64_t forward = 8 * kMs, backward = 8 * kMs, optimizer = 2 * kMs, python = 2 * kMs;
  int64_t data = 0;
  std::string_view module, log;  // a module in Net that takes 3 ms more; a range in `python`
  int steps = 10, batch = 0;     // the number of the first, of ranges "batch N"
};

InsightProgram HostOf(const Planted& planted) {
  InsightProgram program;
  int64_t at = 0;
  for (int step = 0; step < planted.steps; ++step) {
    const int64_t begin = at;
    const auto phase = [&](std::string_view name, int64_t ns) {
      if (ns > 0) program->AddRange(proto::kPhaseDomain, name, at, at + ns);
      at += ns;
    };
    const int64_t extra = planted.module.empty() ? 0 : 3 * kMs;
    phase(proto::kDataPhase, planted.data);
    program->AddRange(proto::kModuleDomain, "Net", at, at + planted.forward + extra);
    if (planted.batch > 0) {
      program->AddRange("", "batch " + std::to_string(planted.batch + step), at, at + kMs);
      program->AddRange("", "layer 1", at + kMs, at + 2 * kMs);
      program->AddRange("", "layer 2", at + 2 * kMs, at + 3 * kMs);
    }
    if (extra > 0) program->AddRange(proto::kModuleDomain, planted.module, at, at + extra);
    at += planted.forward + extra;
    phase(proto::kBackwardPhase, planted.backward);
    phase(proto::kOptimizerPhase, planted.optimizer);
    if (!planted.log.empty()) program->AddRange("", planted.log, at, at + planted.python);
    at += planted.python;
    program->AddStep(begin, at);
  }
  return program;
}

// The causes and places add up to the step's change, whatever it is.
void ExpectExplained(const Table& table) {
  int64_t parts = 0;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const auto kind = CellAt<std::string>(table, row, "kind");
    if (kind == "cause" || kind == "host") parts += CellAt<int64_t>(table, row, "diff_ns");
  }
  EXPECT_NEAR(static_cast<double>(parts), static_cast<double>(CellAt<int64_t>(table, 0, "diff_ns")),
              0.1 * static_cast<double>(std::abs(CellAt<int64_t>(table, 0, "diff_ns"))) + 5);
}

Table DiffOf(const Planted& a, const Planted& b) {
  InsightProgram before = HostOf(a), after = HostOf(b);
  Table table = TabulateDiff(before.run(), after.run());
  ExpectExplained(table);
  return table;
}

TEST(PlantedDiff, SlowerPythonIsThePlaceOfTheHost) {
  EXPECT_EQ(DiffOf({}, {.python = 12 * kMs}).title,
            "A step takes 30.00 ms, 10.00 ms more than before (+50.0 %): host after the optimizer "
            "and before the next forward pass +10.00 ms.");
}

TEST(PlantedDiff, ASlowerOptimizerIsNotTheOperatorsOfOneStep) {
  EXPECT_EQ(DiffOf({}, {.optimizer = 6 * kMs}).title,
            "A step takes 24.00 ms, 4.000 ms more than before (+20.0 %): optimizer +4.000 ms.");
}

TEST(PlantedDiff, ANewModuleComesFirstAndIsCalledNew) {
  const Table table = DiffOf({}, {.module = "Net.extra"});
  EXPECT_EQ(table.title,
            "A step takes 23.00 ms, 3.000 ms more than before (+15.0 %): forward +3.000 ms. New: "
            "module Net.extra (3.000 ms).");
  EXPECT_EQ(CellAt<std::string>(table, 1, "name"), "Net.extra");
  EXPECT_EQ(CellAt<std::string>(table, 1, "only_in"), "after");
}

TEST(PlantedDiff, WhatIsGoneIsCalledGone) {
  const Table table =
      DiffOf({.python = 4 * kMs, .data = 5 * kMs, .log = "log"}, {.python = 1 * kMs});
  EXPECT_EQ(table.title,
            "A step takes 19.00 ms, 8.000 ms less than before (-29.6 %): data loading -5.000 ms, "
            "host after the optimizer and before the next forward pass -3.000 ms. Gone: range log "
            "(4.000 ms).");
  EXPECT_EQ(CellAt<std::string>(table, 1, "name"), "data loading");
  EXPECT_EQ(CellAt<std::string>(table, RowWith<std::string>(table, "name", "log"), "only_in"),
            "before");
}

TEST(PlantedDiff, TheSameTwiceIsTheSame) {
  EXPECT_EQ(DiffOf({}, {}).title,
            "A step takes 20.00 ms and took 20.00 ms before (+0.0 %): the steps of one run differ "
            "as much.");
}

// Ten steps that take 15 to 33 ms each, in two runs alike; one of them loads for 5 ms more.
TEST(PlantedDiff, APartThatChangesIsToldWhereStepsDifferByMore) {
  const auto program_of = [](int64_t load) {
    InsightProgram program;
    int64_t at = 0;
    for (int64_t step = 0; step < 10; ++step) {
      const int64_t begin = at;
      program->AddRange(proto::kPhaseDomain, proto::kDataPhase, at, at + load);
      program->AddRange(proto::kModuleDomain, "Net", at + load, at + load + kMs);
      at += load + (10 + 2 * (step * 7 % 10)) * kMs;
      program->AddStep(begin, at);
    }
    return program;
  };
  InsightProgram before = program_of(5 * kMs), after = program_of(10 * kMs);
  const std::string title = TabulateDiff(before.run(), after.run()).title;
  EXPECT_NE(title.find("the steps of one run differ as much. Changed all the same: data loading "
                       "+5.000 ms."),
            std::string::npos)
      << title;
}

// The kernel that is slower, on a device that waits for nothing.
TEST(PlantedDiff, ASlowerKernelIsNamed) {
  SyntheticJob before({.ranks = 1, .layers = 1, .steps = 10}),
      after({.ranks = 1, .layers = 1, .steps = 10, .compute_ns = 400'000});
  const Table table = TabulateDiff(before.run(), after.run());
  EXPECT_NE(table.title.find("compute +200.0 us. In kernel gemm it is +200.0 us."),
            std::string::npos)
      << table.title;
  ExpectExplained(table);
}

TEST(PlantedDiff, RangesThatDifferByANumberAreOneRow) {
  const Table table = DiffOf({.batch = 10}, {.batch = 500});
  const size_t row = RowWith<std::string>(table, "name", "batch N");
  EXPECT_EQ(CellAt<std::string>(table, row, "ids"), "10 to 19; 500 to 509");
  EXPECT_EQ(CellAt<int64_t>(table, row, "diff_ns"), 0);
  EXPECT_EQ(CellAt<std::string>(table, RowWith<std::string>(table, "name", "layer 2"), "kind"),
            "range")
      << "it comes in each step";
}

// Ten steps, of which one was recorded operator by operator.
TEST(PlantedDiff, OperatorsOfFewStepsAreMarked) {
  InsightProgram before = HostOf({}), after = HostOf({.backward = 9 * kMs});
  before->AddOperator("aten::mm", 20 * kMs, 21 * kMs);
  after->AddOperator("aten::mm", 21 * kMs, 23 * kMs);
  const Table table = TabulateDiff(before.run(), after.run());
  EXPECT_EQ(
      CellAt<std::string>(table, RowWith<std::string>(table, "name", "aten::mm"), "significant"),
      "of 1 step");
  EXPECT_NE(table.title.find("In operator aten::mm it is +1.000 ms, of 1 step recorded."),
            std::string::npos)
      << table.title;
}

// An operator's time without that of the operators it calls: one change is one row.
TEST(PlantedDiff, AnOperatorsCallersDoNotChange) {
  const auto program_of = [](int64_t mm) {
    InsightProgram program = HostOf({});
    for (int64_t at = 0; at < 200 * kMs; at += 20 * kMs) {
      program->AddOperator("aten::linear", at, at + 2 * kMs + mm);
      program->AddOperator("aten::mm", at + kMs, at + kMs + mm);
    }
    return program;
  };
  InsightProgram before = program_of(kMs), after = program_of(3 * kMs);
  const Table table = TabulateDiff(before.run(), after.run());
  const auto change_of = [&table](const std::string& name) {
    return CellAt<int64_t>(table, RowWith(table, "name", name), "diff_ns");
  };
  EXPECT_EQ(change_of("aten::mm"), 2 * kMs);
  EXPECT_EQ(change_of("aten::linear"), 0);
}

TEST(PlantedDiff, OfARunThatLostEventsNothingIsClaimed) {
  InsightProgram before = HostOf({}), after = HostOf({.python = 9 * kMs});
  after->trace().not_read = 1'000;
  after->trace().not_read_most = "events of category odd";
  EXPECT_EQ(TabulateDiff(before.run(), after.run()).title,
            "What changed is undecided: after, 1000 events of rank-0.trace could not be read, "
            "mostly events of category odd");
}

}  // namespace
}  // namespace ranktap::collector
