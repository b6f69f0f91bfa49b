// What a verdict is about: the whole of a trace where no steps are in it, and nothing that a file
// does not hold.
#include <gtest/gtest.h>

#include <string>

#include "collector/facts/steps.h"
#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "collector/trace/operator_join.h"
#include "tests/unit/collector/report/steps/planted_program.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

// 260 launches in ten steps of 20 ms; `recorded`: their kernels are in the file.
Program LaunchesInSteps(bool recorded) {
  Program program;
  program.trace().origin = TraceOrigin::kKineto;
  for (int64_t at = 0; at < 10 * 20 * kMs; at += 20 * kMs) {
    program.AddStep(at, at + 20 * kMs);
    program.AddRange(proto::kModuleDomain, "Net", at, at + 15 * kMs);
    for (int64_t i = 0; i < 26; ++i) {
      program.AddKernel(at + i * kMs / 2, at + i * kMs / 2, at + (i + 1) * kMs / 2);
    }
  }
  if (!recorded) program.trace().kernels = {};
  return program;
}

TEST(PlantedWindow, WorkOfLaunchesWithoutRecordsIsNotInTheFile) {
  Program program = LaunchesInSteps(false);
  EXPECT_EQ(Judge(program.run()).sentence,
            "The work of 260 launches is not in this file: what is known of each 20.00 ms step is "
            "the host's time: 15.00 ms (75.0 %) in the forward pass, 5.000 ms (25.0 %) between "
            "two forward passes.");
  for (const auto tabulate : {TabulateUsage, TabulateCriticalPath, TabulateWorkTypes}) {
    const Table table = tabulate(program.run(), {});
    ASSERT_EQ(table.notes.size(), 1u);
    EXPECT_EQ(table.notes[0], "the work of 260 launches is not in this file");
  }
  const Table insights = TabulateInsights(program.run(), {});
  for (const std::string& note : insights.notes) {
    EXPECT_EQ(note.find("nothing ran"), std::string::npos) << note;
  }
}

TEST(PlantedWindow, WorkThatIsInTheFileIsJudged) {
  Program program = LaunchesInSteps(true);
  const std::string sentence = Judge(program.run()).sentence;
  EXPECT_NE(sentence.find("The largest loss is 7.000 ms of each 20.00 ms step (35.0 %)"),
            std::string::npos)
      << sentence;
}

TEST(PlantedWindow, RangesAloneSayNothingOfADevice) {
  Program program;
  program.trace().origin = TraceOrigin::kNsys;
  for (int64_t at = 0; at < 10 * kMs; at += kMs) program.AddRange("", "step", at, at + kMs);
  EXPECT_EQ(Judge(program.run()).sentence,
            "No verdict: only ranges are recorded, so what a device did is not known.");
}

// 5.1 s of loading, then 3.6 s of kernels that do not repeat.
TEST(PlantedWindow, WithoutStepsALoaderBeforeTheFirstKernelIsTold) {
  Program program;
  program.AddRange(proto::kPhaseDomain, proto::kDataPhase, 0, 5'100 * kMs);
  program.AddKernel(5'100 * kMs, 5'100 * kMs, 8'700 * kMs);
  EXPECT_EQ(
      Judge(program.run()).sentence,
      "The largest loss is 5.100 s of 8.700 s (58.6 %): an idle device while the host loads data. "
      "No steps were found.");
}

TEST(PlantedWindow, WithoutStepsAndWithoutADeviceTheHostIsTold) {
  Program program;
  program.AddRange(proto::kModuleDomain, "Net", 0, 3 * kMs);
  program.AddRange(proto::kPhaseDomain, proto::kDataPhase, 3 * kMs, 10 * kMs);
  program.trace().ranges.unfinished[0] = 1;  // no step is made of it
  EXPECT_EQ(
      Judge(program.run()).sentence,
      "Without a device all of 10.00 ms is the host's time: 7.000 ms (70.0 %) waiting for data, "
      "3.000 ms (30.0 %) in the forward pass. No steps were found.");
}

// Two kernels of 5 us, eight times in 80 us, of a trace that lasts `lasts`.
Program TwoKernelsInTurn(int64_t lasts) {
  Program program;
  program.AddOperator("main", 0, lasts);
  for (int64_t i = 0; i < 16; ++i) {
    program.AddKernel(i * 5'000, i * 5'000, i * 5'000 + 4'000);
    program.trace().kernels.name.Set(static_cast<size_t>(i), static_cast<uint32_t>(1 + i % 2));
  }
  return program;
}

TEST(PlantedWindow, WhatRepeatsInALittleOfTheTraceIsNoStep) {
  Program little = TwoKernelsInTurn(100 * kMs), much = TwoKernelsInTurn(100'000);
  EXPECT_TRUE(DetectSteps(little.trace()).list.empty());
  EXPECT_EQ(DetectSteps(much.trace()).source, "period of 2 kernels");
}

// Twelve layers of two kernels in one call, which an operator of Inductor's, or a module's forward
// in Python, is around; without it they are all that is known of the program's loop.
TEST(PlantedWindow, ALayerThatRepeatsInsideOfOneForwardIsNoStep) {
  for (const char* const around : {"", "## Call CompiledFxGraph f1 ##", "main"}) {
    Program program;
    if (*around != '\0') program.AddOperator(around, 0, 120 * kMs);
    for (int64_t at = 0; at < 120 * kMs; at += 10 * kMs) {
      program.AddKernel(at, at, at + 4 * kMs);
      program.AddKernel(at + 5 * kMs, at + 5 * kMs, at + 9 * kMs);
      program.trace().kernels.name.Set(program.trace().kernels.size() - 1, 2);
    }
    program.trace().dictionary.AppendString("relu");
    const bool is_layer = std::string_view(around).starts_with("##");
    EXPECT_EQ(DetectSteps(program.trace()).list.empty(), is_layer) << around;
    EXPECT_EQ(Judge(program.run()).sentence.find("No steps were found") != std::string::npos,
              is_layer)
        << Judge(program.run()).sentence;
  }
}

// Four backward passes and optimizers; the second step has two optimizers.
TEST(PlantedWindow, RangesOfOptimizersAreStepsWhereNoProfilerStepIs) {
  Program program;
  int64_t at = 0;
  for (const int optimizers : {1, 2, 1, 1}) {
    program.AddOperator("autograd::engine::evaluate_function: MmBackward0", at, at + 5 * kMs);
    at += 8 * kMs;
    for (int i = 0; i < optimizers; ++i) {
      program.AddOperator("Optimizer.step#SGD.step", at, at + kMs, OperatorKind::kAnnotation);
      at += kMs;
    }
  }
  NestOperators(&program.trace());
  const StepList& steps = DetectSteps(program.trace());
  EXPECT_EQ(steps.source, "Optimizer.step");
  ASSERT_EQ(steps.list.size(), 4u);
  EXPECT_EQ(steps.list[0].length(), 9 * kMs);
  EXPECT_EQ(steps.list[1].start, 9 * kMs);
  EXPECT_EQ(steps.list[1].length(), 10 * kMs);
  EXPECT_EQ(steps.list[2].length(), 9 * kMs);
}

// Ten steps of 1 ms in the last of two seconds.
std::string SentenceOfTenSteps(bool dropped_before) {
  Program program;
  program.trace().dropped_before = dropped_before;
  program.AddOperator("load", 0, 1'990 * kMs);
  for (int64_t at = 1'990 * kMs; at < 2'000 * kMs; at += kMs) {
    program.AddStep(at, at + kMs);
    program.AddKernel(at, at, at + kMs / 2);
  }
  return Judge(program.run()).sentence;
}

TEST(PlantedWindow, AVerdictOfLittleOfTheTraceSaysSoFirst) {
  EXPECT_EQ(SentenceOfTenSteps(false).substr(0, 67),
            "The 10 steps found are 10.00 ms of 2.000 s that were recorded (0.5 ");
}

// "load" lasts since long before what --keep kept.
TEST(PlantedWindow, AVerdictOfTheLastMinuteDoesNotCountTheTimeThatKeepDropped) {
  EXPECT_FALSE(SentenceOfTenSteps(true).starts_with("The 10 steps found are"));
}

}  // namespace
}  // namespace ranktap::collector
