// The first sentence, on programs whose truth is planted: what a verdict says must be what
// happened.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collector/facts/causes/stragglers.h"
#include "collector/facts/device_steps.h"
#include "collector/facts/steps.h"
#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "proto/framework_marks.h"
#include "tests/unit/collector/report/steps/planted_program.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

TEST(PlantedTruth, ASlowLoaderOfAHostOnlyJobIsTheFirstThingSaid) {
  Program program;
  for (int64_t at = 0; at < 10 * 164 * kMs; at += 164 * kMs) {
    program.AddStep(at, at + 164 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kDataPhase, at, at + 161 * kMs);
    program.AddRange(proto::kModuleDomain, "Net", at + 161 * kMs, at + 162 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at + 162 * kMs, at + 164 * kMs);
  }
  const Verdict verdict = Judge(program.run());
  EXPECT_EQ(verdict.sentence,
            "Without a device all of each 164.0 ms step is the host's time: 161.0 ms "
            "(98.2 %) waiting for data, 2.000 ms (1.2 %) in the backward pass.");
  ASSERT_EQ(verdict.losses.size(), 1u);
  EXPECT_EQ(verdict.losses[0].ns, 161 * kMs);
}

// A thread saves a checkpoint for as long as six of the ten steps take; another one fetches ahead.
TEST(PlantedTruth, WhatOtherThreadsSaveAndFetchIsNoPartOfAStep) {
  Program program;
  program.trace().writers.emplace_back().thread = 101;
  const auto beside = [&](std::string_view phase, int64_t start, int64_t end) {
    program.AddRange(proto::kPhaseDomain, phase, start, end);
    program.trace().ranges.writer.back() = 1;
  };
  for (int64_t at = 0; at < 10 * 20 * kMs; at += 20 * kMs) {
    program.AddStep(at, at + 20 * kMs);
    beside(proto::kDataPhase, at, at + 19 * kMs);
    program.AddRange(proto::kModuleDomain, "Net", at + kMs, at + 12 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at + 12 * kMs, at + 20 * kMs);
    if (at == 40 * kMs) beside(proto::kCheckpointPhase, at, at + 120 * kMs);
  }
  const Table steps = TabulateSteps(program.run(), {});
  ASSERT_EQ(steps.rows.size(), 10u);
  for (size_t row = 0; row < 10; ++row) {
    EXPECT_EQ(CellAt<int64_t>(steps, row, "checkpoint_ns"), 0);
    EXPECT_EQ(CellAt<int64_t>(steps, row, "data_ns"), 0);
    EXPECT_EQ(CellAt<int64_t>(steps, row, "other_ns"), kMs);
  }
  EXPECT_EQ(Judge(program.run()).sentence,
            "Without a device all of each 20.00 ms step is the host's time: 11.00 ms "
            "(55.0 %) in the forward pass, 8.000 ms (40.0 %) in the backward pass, 1.000 ms "
            "(5.0 %) between the backward and the next forward pass.");
}

// Five steps of forward 2 ms and backward, after the third three evaluations of 1 ms each, which
// end in a last one behind the last step.
TEST(PlantedTruth, EvaluationForwardsAreApartFromTrainingOnes) {
  Program program;
  int64_t now = 0;
  const auto forward = [&](int64_t ms) {
    program.AddRange(proto::kModuleDomain, "Net", now, now + ms * kMs);
    program.AddRange(proto::kModuleDomain, "Net.fc", now, now + ms * kMs / 2);
    program.trace().ranges.depth.back() = 1;
    now += ms * kMs;
  };
  for (int step = 0; step < 5; ++step) {
    const int64_t begin = now;
    for (int i = 0; i < (step == 3 ? 3 : 0); ++i) forward(1);
    forward(2);
    program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, now, now + 3 * kMs);
    now += 3 * kMs;
    program.AddStep(begin, now);
  }
  forward(1);
  const Table modules = TabulateModules(program.run(), {});
  ASSERT_EQ(modules.rows.size(), 2u);
  for (size_t row = 0; row < 2; ++row) {
    const int64_t part = row == 0 ? 1 : 2;
    EXPECT_EQ(CellAt<int64_t>(modules, row, "calls"), 5);
    EXPECT_EQ(CellAt<int64_t>(modules, row, "mean_ns"), 2 * kMs / part);
    EXPECT_EQ(CellAt<int64_t>(modules, row, "evaluation_calls"), 4);
    EXPECT_EQ(CellAt<int64_t>(modules, row, "evaluation_mean_ns"), kMs / part);
  }
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "self_ns"), 5 * kMs);
}

// Each of three steps of 11 ms has an evaluation of 1 ms and a forward whose own are 2 ms, with a
// backward pass of 4 and an optimizer's of 3 inside, then 2 between two steps and 1 in the next.
TEST(PlantedTruth, AForwardThatOptimizesByHandIsCountedWithoutItsBackwardPassAndItsOptimizer) {
  Program program;
  for (int64_t at = 0; at < 3 * 13 * kMs; at += 13 * kMs) {
    program.AddStep(at, at + 11 * kMs);
    program.AddRange(proto::kModuleDomain, "Lit", at + kMs, at + 2 * kMs);
    const bool is_last = at == 26 * kMs;
    program.AddRange(proto::kModuleDomain, "Lit", at + 2 * kMs, at + (is_last ? 12 : 14) * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at + 4 * kMs, at + 8 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kOptimizerPhase, at + 8 * kMs, at + 11 * kMs);
    program.AddOperator("aten::add_", at + 9 * kMs, at + 10 * kMs);
  }
  const Table modules = TabulateModules(program.run(), {});
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "calls"), 3);
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "mean_ns"), 3 * kMs);
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "self_ns"), 9 * kMs);
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "evaluation_calls"), 3);
  const Table steps = TabulateSteps(program.run(), {});
  ASSERT_EQ(steps.rows.size(), 3u);
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(CellAt<int64_t>(steps, row, "forward_ns"), (row == 0 ? 3 : 4) * kMs);
    EXPECT_EQ(CellAt<int64_t>(steps, row, "backward_ns"), 4 * kMs);
    EXPECT_EQ(CellAt<int64_t>(steps, row, "optimizer_ns"), 3 * kMs);
    EXPECT_EQ(CellAt<int64_t>(steps, row, "other_ns"), (row == 0 ? 1 : 0) * kMs);
  }
  ReportOptions by_module;
  by_module.by_module = true;
  const Table ops = TabulateOps(program.run(), by_module);
  EXPECT_EQ(CellAt<std::string>(ops, 0, "module"), "");
  EXPECT_EQ(CellAt<std::string>(ops, 0, "pass"), "");
}

// The optimizer's 10 ms have a forward of 3 and a backward pass of 4 inside: its closure's.
TEST(PlantedTruth, AClosuresPassesAreNotTheOptimizers) {
  Program program;
  for (int64_t at = 0; at < 3 * 10 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kOptimizerPhase, at, at + 10 * kMs);
    program.AddRange(proto::kModuleDomain, "Net", at + kMs, at + 4 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at + 4 * kMs, at + 8 * kMs);
    program.AddOperator("aten::add_", at + 9 * kMs, at + 10 * kMs);
  }
  EXPECT_EQ(Judge(program.run()).sentence,
            "Without a device all of each 10.00 ms step is the host's time: 4.000 ms "
            "(40.0 %) in the backward pass, 3.000 ms (30.0 %) in the forward pass, 3.000 ms "
            "(30.0 %) in the optimizer.");
  ReportOptions by_module;
  by_module.by_module = true;
  EXPECT_EQ(CellAt<std::string>(TabulateOps(program.run(), by_module), 0, "pass"), "");
}

// A compiler runs the backward pass inside of the first forward, after two evaluations.
TEST(PlantedTruth, ABackwardPassInsideOfAForwardMakesNoEvaluationATraining) {
  Program program;
  for (int64_t at = 0; at < 6 * kMs; at += kMs) {
    if (at >= 2 * kMs) program.AddStep(at, at + kMs);
    program.AddRange(proto::kModuleDomain, "Net", at, at + kMs / 2);
    if (at == 2 * kMs) {
      program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at + 1, at + 2);
    }
    if (at >= 2 * kMs) {
      program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at + kMs / 2, at + kMs);
    }
  }
  const Table modules = TabulateModules(program.run(), {});
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "calls"), 4);
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "evaluation_calls"), 2);
}

// Two forwards for each backward are no evaluations, nor are a pipeline's before its first one.
TEST(PlantedTruth, ForwardsThatWaitForTheirBackwardAreNoEvaluations) {
  for (const std::string order : {"FFBFFBFFB", "FFBFBBFFBFBB"}) {
    Program program;
    for (size_t i = 0; i < order.size(); ++i) {
      const auto start = static_cast<int64_t>(i) * kMs;
      if (i % (order.size() == 9 ? 3 : 6) == 0) {
        program.AddStep(start, start + (order.size() == 9 ? 3 : 6) * kMs);
      }
      program.AddRange(order[i] == 'F' ? proto::kModuleDomain : proto::kPhaseDomain,
                       order[i] == 'F' ? "Net" : proto::kBackwardPhase, start, start + kMs / 2);
    }
    const Table modules = TabulateModules(program.run(), {});
    ASSERT_EQ(modules.rows.size(), 1u);
    EXPECT_EQ(CellAt<int64_t>(modules, 0, "evaluation_calls"), 0) << order;
    EXPECT_EQ(CellAt<int64_t>(modules, 0, "calls"), 6) << order;
  }
}

TEST(PlantedTruth, GarbageCollectionIsNeverAStep) {
  Program program;
  for (int64_t i = 0; i < 10; ++i) {
    program.AddRange(proto::kPhaseDomain, "garbage collection", i * kMs, (i + 1) * kMs);
  }
  EXPECT_TRUE(DetectSteps(program.trace()).list.empty());
  Program named;  // the program's own ranges of the same times are
  for (int64_t i = 0; i < 10; ++i) named.AddRange("", "iteration", i * kMs, (i + 1) * kMs);
  EXPECT_EQ(DetectSteps(named.trace()).list.size(), 10u);
}

TEST(PlantedTruth, GarbageCollectionWhileTheDeviceWaitsIsNamed) {
  Program program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kCollectionPhase, at, at + 6 * kMs);
    program.AddKernel(at + 6 * kMs, at + 6 * kMs, at + 10 * kMs);
  }
  EXPECT_EQ(Judge(program.run()).sentence,
            "The largest loss is 6.000 ms of each 10.00 ms step (60.0 %): an idle device while "
            "Python collects garbage.");
}

TEST(PlantedTruth, AHostThatCapturesGraphsIsNotCalledLate) {
  Program program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    program.AddCall("cudaStreamBeginCapture", at, at + 1'000);
    program.AddCall("cudaStreamEndCapture", at + 4 * kMs, at + 5 * kMs);
    program.AddCall("cudaGraphInstantiateWithFlags", at + 5 * kMs, at + 6 * kMs);
    program.AddKernel(at + 6 * kMs, at + 6 * kMs, at + 10 * kMs);
  }
  EXPECT_EQ(Judge(program.run()).sentence,
            "The largest loss is 6.000 ms of each 10.00 ms step (60.0 %): an idle device while the "
            "host captures CUDA graphs.");
}

TEST(PlantedTruth, AHostThatRunsAheadIsNoLossAndStepsAreTheDevices) {
  // Each step launches 10 ms of work in 2 ms; nobody waits before the end.
  Program program;
  for (int64_t i = 0; i < 10; ++i) {
    program.AddStep(i * 2 * kMs, (i + 1) * 2 * kMs);
    program.AddKernel(i * 2 * kMs, i * 10 * kMs, (i + 1) * 10 * kMs);
  }
  const DeviceSteps& steps = StepsOnDevice(program.trace());
  ASSERT_EQ(steps.list.size(), 10u);
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(steps.list[static_cast<size_t>(i)].start, i * 10 * kMs) << i;
    EXPECT_EQ(steps.list[static_cast<size_t>(i)].end, (i + 1) * 10 * kMs) << i;
  }
  EXPECT_DOUBLE_EQ(steps.host_ahead, 3.6);  // (0 + 8 + ... + 72) / 100
  EXPECT_EQ(Judge(program.run()).sentence,
            "No loss is worth more than 1 % of each 10.00 ms step: the devices compute 100.0 % of "
            "the time.");
  const Table table = TabulateVerdict(program.run(), {});
  ASSERT_FALSE(table.notes.empty());
  EXPECT_NE(table.notes[0].find("runs 3.6 steps ahead of its device"), std::string::npos)
      << table.notes[0];
}

// Three steps launch 10 ms of work in 2 ms each; their device has 30 ms to do when the window
// begins.
TEST(PlantedTruth, WorkLaunchedBeforeTheWindowIsOfNoStep) {
  Program program;
  program.trace().origin = TraceOrigin::kKineto;
  for (int64_t i = 0; i < 30; ++i) {
    program.AddKernel(0, i * kMs, (i + 1) * kMs);
    program.trace().kernels.launch.back() = kNone;
  }
  for (int64_t i = 0; i < 3; ++i) {
    program.AddStep(i * 2 * kMs, (i + 1) * 2 * kMs);
    program.AddKernel(i * 2 * kMs, (30 + i * 10) * kMs, (40 + i * 10) * kMs);
  }
  const DeviceSteps& steps = StepsOnDevice(program.trace());
  ASSERT_EQ(steps.list.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(steps.list[static_cast<size_t>(i)].start, (30 + i * 10) * kMs) << i;
    EXPECT_EQ(steps.list[static_cast<size_t>(i)].end, (40 + i * 10) * kMs) << i;
  }
  EXPECT_EQ(Judge(program.run()).sentence,
            "No loss is worth more than 1 % of each 10.00 ms step: the devices compute 100.0 % of "
            "the time.");
  const Table table = TabulateSteps(program.run(), {});
  for (size_t row = 0; row < 3; ++row) EXPECT_EQ(CellAt<int64_t>(table, row, "kernels"), 1) << row;
}

// The host prepares the next batch on a stream of its own, long before its step's work can run.
TEST(PlantedTruth, WorkOnASideStreamMovesNoStep) {
  Program program;
  program.trace().lanes.push_back({0, 1, 8});
  for (int64_t i = 0; i < 5; ++i) {
    program.AddStep(i * 2 * kMs, (i + 1) * 2 * kMs);
    program.AddKernel(i * 2 * kMs, i * 2 * kMs, i * 2 * kMs + kMs / 2);
    program.trace().kernels.lane.Set(program.trace().kernels.size() - 1, 1);
    program.AddKernel(i * 2 * kMs, i * 10 * kMs, (i + 1) * 10 * kMs);
  }
  const DeviceSteps& steps = StepsOnDevice(program.trace());
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(steps.list[static_cast<size_t>(i)].start, i * 10 * kMs) << i;
    EXPECT_EQ(steps.list[static_cast<size_t>(i)].end, (i + 1) * 10 * kMs) << i;
  }
}

// Nobody knows who launched the work of the first step: it may be of any.
TEST(PlantedTruth, WorkOfAStepWhoseLaunchesAreMissingIsNotTakenForEarlierWork) {
  Program program;
  for (int64_t i = 0; i < 3; ++i) {
    program.AddStep(i * 10 * kMs, (i + 1) * 10 * kMs);
    program.AddKernel(i * 10 * kMs, i * 10 * kMs, (i + 1) * 10 * kMs);
  }
  program.trace().kernels.launch[0] = kNone;
  const Table table = TabulateSteps(program.run(), {});
  ASSERT_EQ(table.rows.size(), 3u);
  for (size_t row = 0; row < 3; ++row) EXPECT_EQ(CellAt<int64_t>(table, row, "kernels"), 1) << row;
}

TEST(PlantedTruth, WhereTheHostWaitsAtEachStepsEndStepsAreTheHosts) {
  Program program;
  for (int64_t i = 0; i < 5; ++i) {
    program.AddStep(i * 10 * kMs, (i + 1) * 10 * kMs);
    program.AddKernel(i * 10 * kMs + kMs, i * 10 * kMs + 2 * kMs, i * 10 * kMs + 9 * kMs);
  }
  const StepList& host = DetectSteps(program.trace());
  const DeviceSteps& device = StepsOnDevice(program.trace());
  ASSERT_EQ(device.list.size(), host.list.size());
  for (size_t i = 0; i < host.list.size(); ++i) {
    EXPECT_EQ(device.list[i].start, host.list[i].start);
    EXPECT_EQ(device.list[i].end, host.list[i].end);
  }
}

TEST(PlantedTruth, WhoIsLateIsNotSaidWhereMostLaunchesAreMissing) {
  Program program;
  program.trace().origin = TraceOrigin::kKineto;
  for (int64_t i = 0; i < 6; ++i) {
    program.AddStep(i * 10 * kMs, (i + 1) * 10 * kMs);
    program.AddKernel(i * 10 * kMs + 8 * kMs, i * 10 * kMs + 8 * kMs, (i + 1) * 10 * kMs);
    if (i > 1) program.trace().kernels.launch.back() = kNone;
  }
  EXPECT_NE(Judge(program.run())
                .sentence.find("an idle device, why is not known: most launches are not recorded"),
            std::string::npos)
      << Judge(program.run()).sentence;
}

TEST(PlantedTruth, AFileWithoutTimesGetsNoVerdict) {
  Program program;
  for (int64_t i = 0; i < 5; ++i) program.AddStep(i * 10 * kMs, (i + 1) * 10 * kMs);
  program.trace().origin = TraceOrigin::kExecution;
  EXPECT_EQ(Judge(program.run()).sentence,
            "No verdict: an execution trace has no times, and process.trace has nothing else; name "
            "torch.profiler's file of the same steps beside it.");
  program.trace().origin = TraceOrigin::kMemory;
  EXPECT_EQ(Judge(program.run()).sentence,
            "No verdict: a file of the memory profiler says who held memory, and nothing of time.");
}

TEST(PlantedTruth, OfTwoStepsTheLongerIsNoWarmUp) {
  Program program;
  program.AddStep(0, 30 * kMs);
  program.AddStep(30 * kMs, 40 * kMs);
  for (const Step& step : DetectSteps(program.trace()).list) EXPECT_FALSE(step.warm_up);
}

TEST(PlantedTruth, AProfilersStubAtTheEndIsNoStep) {
  Program program;
  for (int64_t i = 0; i < 3; ++i) {
    program.AddOperator("ProfilerStep#" + std::to_string(i), i * 10 * kMs, (i + 1) * 10 * kMs,
                        OperatorKind::kAnnotation);
    program.AddKernel(i * 10 * kMs, i * 10 * kMs, (i + 1) * 10 * kMs);
  }
  program.AddOperator("ProfilerStep#3", 30 * kMs, 36 * kMs, OperatorKind::kAnnotation);
  EXPECT_EQ(DetectSteps(program.trace()).list.size(), 3u);
}

TEST(PlantedTruth, WhatRepeatsIsCalledAPeriod) {
  Program program;
  for (int64_t i = 0; i < 40; ++i) program.AddKernel(i * kMs, i * kMs, (i + 1) * kMs);
  for (uint32_t i = 0; i < 40; ++i) program.trace().kernels.name.Set(i, 1);
  program.trace().dictionary.AppendString("layernorm");
  for (uint32_t i = 0; i < 40; i += 4) program.trace().kernels.name.Set(i, 2);
  ASSERT_TRUE(DetectSteps(program.trace()).is_period);
  EXPECT_EQ(Judge(program.run()).sentence,
            "No loss is worth more than 1 % of each 4.000 ms period: the devices compute 100.0 % "
            "of the time.");
}

TEST(PlantedTruth, TheOpenStepBehindTheLastOptimizerIsNeitherAStepNorARange) {
  Program program;
  for (int64_t i = 0; i < 5; ++i) program.AddStep(i * 2 * kMs, (i + 1) * 2 * kMs);
  program.AddRange(proto::kStepDomain, "step", 10 * kMs, 500 * kMs, /*unfinished=*/1);
  EXPECT_EQ(DetectSteps(program.trace()).list.size(), 5u);
  const Table table = TabulateRanges(program.run(), {});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "total_ns"), 10 * kMs);
}

// One program at 10 and at 30 steps; operators are recorded in the third step only.
TEST(PlantedTruth, DiffDividesWhatOneStepRecordedByThatStep) {
  const auto record = [](Program* program, int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      program->AddStep(i * 10 * kMs, (i + 1) * 10 * kMs);
      if (i != 2) continue;
      for (int64_t k = 0; k < 4; ++k) {
        program->AddOperator("aten::mm", (i * 10 + k) * kMs, (i * 10 + k + 1) * kMs);
      }
    }
  };
  Program few, many;
  record(&few, 10);
  record(&many, 30);
  const Table table = TabulateDiff(few.run(), many.run());
  const size_t mm = RowWith<std::string>(table, "name", "aten::mm");
  EXPECT_EQ(CellAt<int64_t>(table, mm, "before_ns"), 4 * kMs);
  EXPECT_EQ(CellAt<int64_t>(table, mm, "after_ns"), 4 * kMs);
}

TEST(PlantedTruth, OnlyAWarmUpThatWasRecordedIsBetterThanNothing) {
  Program program;
  program.AddStep(0, 100 * kMs);
  program.AddOperator("aten::mm", 0, 7 * kMs);
  for (int64_t i = 10; i < 20; ++i) program.AddStep(i * 10 * kMs, (i + 1) * 10 * kMs);
  ASSERT_TRUE(DetectSteps(program.trace()).list[0].warm_up);
  const Table table = TabulateDiff(program.run(), program.run());
  const size_t mm = RowWith<std::string>(table, "name", "aten::mm");
  EXPECT_EQ(CellAt<int64_t>(table, mm, "before_ns"), 7 * kMs);
}

}  // namespace
}  // namespace ranktap::collector
