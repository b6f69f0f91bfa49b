// Who took a main thread's CPU: each rule fires on its planted truth, and is silent on a twin that
// differs in nothing else.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collector/report/host/host_steps.h"
#include "collector/report/host/host_threads.h"
#include "collector/report/insights/find_insights.h"
#include "collector/report/steps/verdict.h"
#include "proto/framework_marks.h"
#include "proto/sample_marks.h"
#include "tests/unit/collector/report/steps/planted_program.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kStepNs = 100 * kMs, kStepCount = 10;

// What the sampler says of each step; the rest of it the main thread ran at train.py:9.
struct TakenStep {
  int64_t waited_ns = 0;  // at train.py:7
  int64_t cpu_ns = 0, queued_ns = 0, faults = 0, read_bytes = 0;
  bool only_first_faults = false;  // in the first step alone, and all steps wait as long
  proto::SampleState state = proto::SampleState::kWaits;
  int64_t other_cpu_ns = 0;  // of another thread at hog.py:3, meanwhile
  int64_t throttled_ns = 0;
  int64_t main_ran_ns = 50 * kMs;
  uint32_t lacks = 0;
  std::vector<std::string> files = {};  // that the look of each step in turn met it in
};

// Ten steps of a rank that may use CPUs 0 and 1.
Program WithTaken(const TakenStep& step) {
  constexpr uint32_t kMain = 40, kOther = 41;
  Program program;
  program.trace().hello.mutable_process()->set_pid(kMain);
  const auto mark = [&program](std::string_view name, int64_t at, const std::string& lines) {
    program.AddMark(proto::kSampleDomain, name, at, lines);
  };
  mark(proto::kSampledCodesMark, 0,
       "[1,\"/job/train.py\",\"main\"]\n[2,\"/job/hog.py\",\"spin\"]\n");
  mark(proto::kSampledFramesMark, 0, "[1,0,1,7]\n[2,0,1,9]\n[3,0,2,3]\n");
  for (int64_t at = 0; at < kStepCount * kStepNs; at += kStepNs) {
    program.AddStep(at, at + kStepNs);
    program.trace().ranges.payload[program.trace().ranges.size() - 1] =
        static_cast<uint64_t>(at / kStepNs);
    const int64_t middle = at + step.waited_ns, end = at + kStepNs;
    const int64_t faults = step.only_first_faults && at > 0 ? 0 : step.faults;
    if (step.waited_ns > 0) {
      mark(proto::kSamplesMark, at,
           fmt::format("[{},1,{},5,{},{},{},{},{},{}]\n", kMain, static_cast<int>(step.state), at,
                       middle, step.cpu_ns, step.queued_ns, faults, step.read_bytes));
    }
    mark(proto::kSamplesMark, at,
         fmt::format("[{},2,1,5,{},{},{},0,0,0]\n", kMain, middle, end, end - middle));
    if (!step.files.empty()) {
      mark(proto::kReadFilesMark, at,
           fmt::format("[{},{},\"{}\"]\n", kMain, middle,
                       step.files[static_cast<size_t>(at / kStepNs) % step.files.size()]));
    }
    if (step.other_cpu_ns > 0) {
      mark(proto::kSamplesMark, at,
           fmt::format("[{},3,1,5,{},{},{},0,0,0]\n", kOther, at, middle, step.other_cpu_ns));
    }
    mark(proto::kThreadCountsMark, at,
         fmt::format("[{},{},{},{},{},{},{},0,3,4,1,\"python\"]\n", kMain, at, end,
                     step.main_ran_ns, step.queued_ns, step.faults, step.read_bytes));
    mark(proto::kHostCountsMark, at,
         fmt::format("[{},{},{},2,0,0,0,3,0,0,0,2,{},\"0-1\"]\n", at, end, step.throttled_ns,
                     step.lacks));
  }
  return program;
}

const Insight* FoundRule(const Insights& insights, std::string_view rule) {
  for (const Insight& insight : insights.list) {
    if (insight.rule == rule) return &insight;
  }
  return nullptr;
}

std::string FindingOf(const TakenStep& step, std::string_view rule) {
  Program program = WithTaken(step);
  const Insights insights = FindInsights(program.run(), AllInsightRules());
  const Insight* const found = FoundRule(insights, rule);
  return found == nullptr ? "" : fmt::format("{} at {}", found->finding, found->where);
}

TEST(TakenCpu, AThreadWithoutACpuIsDescheduledAndOneThatWaitsIsNot) {
  EXPECT_EQ(FindingOf({.waited_ns = 40 * kMs, .queued_ns = 30 * kMs}, "descheduled"),
            "The main thread is ready to run and has no CPU for 30.00 ms of each 100.0 ms step "
            "(30.0 %); the rank uses 0.5 of its 2 CPUs, and something else has the rest. at "
            "train.py:7 (main)");
  EXPECT_EQ(FindingOf({.waited_ns = 40 * kMs}, "descheduled"), "");
}

TEST(TakenCpu, WhereTheRanksUseAllCpusTheirThreadsAreTooMany) {
  const TakenStep own = {.waited_ns = 40 * kMs, .queued_ns = 30 * kMs, .main_ran_ns = 195 * kMs};
  EXPECT_EQ(FindingOf(own, "too-many-threads"),
            "The threads of 1 rank use up 2 CPUs: the main thread is ready to run and has no CPU "
            "for 30.00 ms of each 100.0 ms step (30.0 %). at train.py:7 (main)");
  EXPECT_EQ(FindingOf(own, "descheduled"), "");
  EXPECT_EQ(FindingOf({.waited_ns = 40 * kMs, .main_ran_ns = 195 * kMs}, "too-many-threads"), "");
}

TEST(TakenCpu, ALimitThatWasReachedIsThrottlingAndNoNeighbours) {
  const TakenStep limited = {
      .waited_ns = 40 * kMs, .queued_ns = 30 * kMs, .throttled_ns = 35 * kMs};
  EXPECT_EQ(FindingOf(limited, "cpu-throttled"),
            "The control group's limit of CPU time keeps the main thread from a CPU for 30.00 ms "
            "of each 100.0 ms step (30.0 %); it was reached in 20 of its periods. at train.py:7 "
            "(main)");
  EXPECT_EQ(FindingOf(limited, "descheduled"), "");
  // Other threads of the group were throttled; the main one was not.
  EXPECT_EQ(FindingOf({.waited_ns = 40 * kMs, .throttled_ns = 35 * kMs}, "cpu-throttled"), "");
}

TEST(TakenCpu, ReadsAndFaultsAreToldApart) {
  const TakenStep reads = {.waited_ns = 40 * kMs, .cpu_ns = 10 * kMs, .read_bytes = 8 << 20};
  TakenStep faults = reads;
  faults.faults = 500;
  EXPECT_EQ(FindingOf(reads, "slow-read"),
            "The main thread waits for storage for 30.00 ms of each 100.0 ms step (30.0 %), and "
            "reads 8.0 MiB of it a step. at train.py:7 (main)");
  EXPECT_EQ(FindingOf(reads, "page-faults"), "");
  EXPECT_EQ(FindingOf(faults, "page-faults"),
            "The main thread waits for pages that are not in memory, for 30.00 ms of each 100.0 ms "
            "step (30.0 %), in major faults that come 500 times a step. at train.py:7 (main)");
  EXPECT_EQ(FindingOf(faults, "slow-read"), "");
  TakenStep rare = faults;
  rare.waited_ns = 98 * kMs;
  rare.faults = 1;
  rare.only_first_faults = true;
  EXPECT_EQ(FindingOf(rare, "page-faults"), "") << "one fault in all steps together";
  EXPECT_EQ(FindingOf({.waited_ns = 40 * kMs}, "slow-read"), "");
}

TEST(TakenCpu, TheFileThatIsReadIsNamedOrTheFolderOfMany) {
  TakenStep step = {.waited_ns = 40 * kMs,
                    .read_bytes = 8 << 20,
                    .files = {"/data/a.bin", "/data/a.bin", "/tmp/b"}};
  const auto ends_with = [&step](const std::string& end) {
    const std::string finding = FindingOf(step, "slow-read");
    return finding.ends_with(end + " at train.py:7 (main)") ? "" : finding;
  };
  EXPECT_EQ(ends_with("reads 8.0 MiB of it a step, from /data/a.bin."), "");
  step.files = {"/data/a.bin", "/data/b.bin"};
  EXPECT_EQ(ends_with("reads 8.0 MiB of it a step, from files in /data."), "");
  step.files = {"/data/a.bin", "/tmp/b"};
  EXPECT_EQ(ends_with("reads 8.0 MiB of it a step."), "");
}

TEST(TakenCpu, TheThreadThatHoldsPythonsLockIsNamedWithItsLine) {
  TakenStep step = {
      .waited_ns = 40 * kMs, .state = proto::SampleState::kWantsGil, .other_cpu_ns = 39 * kMs};
  EXPECT_EQ(FindingOf(step, "gil-contention"),
            "While another thread runs at hog.py:3 (spin), the main thread waits for Python's lock "
            "(GIL) for 40.00 ms of each 100.0 ms step (40.0 %). at train.py:7 (main)");
  step.state = proto::SampleState::kWaits;
  EXPECT_EQ(FindingOf(step, "gil-contention"), "");
}

TEST(TakenCpu, WhatTheSystemDoesNotShowIsNotChecked) {
  Program blind = WithTaken({.lacks = proto::kLacksQueue | proto::kLacksThrottling});
  Program sighted = WithTaken({});
  for (Program* const program : {&blind, &sighted}) {
    size_t unchecked = 0;
    for (const auto& rule : FindInsights(program->run(), AllInsightRules()).unchecked) {
      unchecked += rule.rule == "descheduled" || rule.rule == "cpu-throttled" ? 1 : 0;
    }
    EXPECT_EQ(unchecked, program == &blind ? 2u : 0u);
  }
}

// Its GPU lies on node 0, beside CPUs 0 and 1.
TEST(TakenCpu, AMainThreadOnAnotherNodeThanItsGpuIsFar) {
  for (const bool is_far : {true, false}) {
    Program program = WithTaken({});
    program.AddMark(proto::kSampleDomain, proto::kNodesMark, 0,
                    is_far ? "[0,\"0\"]\n[1,\"1\"]\n" : "[0,\"0-1\"]\n[1,\"2-3\"]\n");
    program.AddMark(proto::kSampleDomain, proto::kBusNodesMark, 0, "[0,\"0000:3b:00.0\"]\n");
    v1::Device* const device = program.trace().hello.add_devices();
    device->set_pci_bus("0000:3B:00.0");
    for (int64_t at = 0; at < kStepCount * kStepNs; at += kStepNs) {
      program.AddKernel(at, at + kMs, at + 90 * kMs);
    }
    const Insights insights = FindInsights(program.run(), AllInsightRules());
    const Insight* const found = FoundRule(insights, "far-numa");
    ASSERT_EQ(found != nullptr, is_far);
    if (is_far) {
      EXPECT_EQ(found->finding,
                "The main thread ran on NUMA node 1 in 100.0 % of the time, and its GPU lies on "
                "node 0.");
    }
  }
}

TEST(TakenCpu, TheVerdictBeginsWithATenthOfAStepAndTheLine) {
  Program much = WithTaken({.waited_ns = 40 * kMs, .queued_ns = 30 * kMs});
  Program little = WithTaken({.waited_ns = 40 * kMs, .queued_ns = 9 * kMs});
  const std::string sentence = Judge(much.run()).sentence;
  EXPECT_TRUE(sentence.starts_with(
      "The main thread is ready to run and has no CPU for 30.00 ms of each 100.0 ms step (30.0 %); "
      "the rank uses 0.5 of its 2 CPUs, and something else has the rest; most of it at train.py:7 "
      "(main) (descheduled). Without a device"))
      << sentence;
  EXPECT_TRUE(Judge(little.run()).sentence.starts_with("Without a device"));
}

TEST(TakenCpu, ALargerWaitForDataComesFirst) {
  for (const int64_t data_ns : {60 * kMs, 20 * kMs}) {
    Program program = WithTaken({.waited_ns = 40 * kMs, .queued_ns = 30 * kMs});
    for (int64_t at = 0; at < kStepCount * kStepNs; at += kStepNs) {
      program.AddRange(proto::kPhaseDomain, proto::kDataPhase, at + kStepNs - data_ns,
                       at + kStepNs);
    }
    const std::string sentence = Judge(program.run()).sentence;
    EXPECT_EQ(sentence.starts_with("Without a device"), data_ns > 30 * kMs) << sentence;
    EXPECT_EQ(sentence.ends_with("(descheduled)."), data_ns > 30 * kMs) << sentence;
  }
}

TEST(TakenCpu, TheTableHasWhatTheKernelCountedInSteps) {
  Program program = WithTaken({.waited_ns = 40 * kMs, .queued_ns = 30 * kMs, .faults = 7});
  const Table table = TabulateHostThreads(program.run());
  ASSERT_EQ(table.rows.size(), 1u);
  const auto cell = [&table](std::string_view name) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (table.columns[c].name == name) return std::get<int64_t>(table.rows[0][c]);
    }
    return int64_t{-1};
  };
  EXPECT_EQ(cell("on_cpu_ns"), 500 * kMs);
  EXPECT_EQ(cell("no_cpu_ns"), 300 * kMs);
  EXPECT_EQ(cell("in_worst_step_ns"), 30 * kMs);
  EXPECT_EQ(cell("stopped"), 40);
  EXPECT_EQ(cell("waits"), 30);
  EXPECT_EQ(cell("major_faults"), 70);
}

TEST(TakenCpu, EachStepHasItsTimesAndTheLineThatTakesMost) {
  Program program = WithTaken(
      {.waited_ns = 60 * kMs, .cpu_ns = 10 * kMs, .queued_ns = 20 * kMs, .read_bytes = 4096});
  const Table table = TabulateHostSteps(program.run());
  ASSERT_EQ(table.rows.size(), static_cast<size_t>(kStepCount));
  const auto cell = [&table](std::string_view name) {
    size_t c = 0;
    while (table.columns[c].name != name) ++c;
    return table.rows[1][c];
  };
  EXPECT_EQ(cell("sampled_ns"), Cell(kStepNs));
  EXPECT_EQ(cell("on_cpu_ns"), Cell(50 * kMs));
  EXPECT_EQ(cell("no_cpu_ns"), Cell(20 * kMs));
  EXPECT_EQ(cell("waiting_ns"), Cell(30 * kMs));
  EXPECT_EQ(cell("read_bytes"), Cell(int64_t{4096}));
  EXPECT_EQ(cell("line_ns"), Cell(60 * kMs));
  EXPECT_EQ(cell("line"), Cell(std::string("train.py:7 (main)")));
}

}  // namespace
}  // namespace ranktap::collector
