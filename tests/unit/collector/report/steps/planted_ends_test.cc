// How a program ended is the first thing that a report says of it, where it did not end well.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "collector/report/steps/bad_end.h"
#include "collector/report/steps/unlike_steps.h"
#include "collector/report/steps/verdict.h"
#include "collector/trace/operator_join.h"
#include "proto/sample_marks.h"
#include "tests/unit/collector/report/steps/planted_program.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kRow =
    R"({"type":"ValueError","message":"the labels do not fit.\nmore","frames":[)"
    R"("/usr/lib/python3.11/site-packages/torch/nn/functional.py(9): linear",)"
    R"("/home/me/train.py(31): main"]})";

Program TenSteps() {
  Program program;
  for (int64_t at = 0; at < 100 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    program.AddRange(proto::kModuleDomain, "Net", at, at + 10 * kMs);
  }
  return program;
}

TEST(PlantedEnds, AnExceptionIsSaidFirstWithTheInnermostLineOfTheProgram) {
  Program program = TenSteps();
  program.AddMark(proto::kStepDomain, proto::kEndingMark, 100 * kMs, kRow);
  program.run().info.exit_status = 1;
  EXPECT_TRUE(Judge(program.run())
                  .sentence.starts_with("The program ended with ValueError: the labels do not fit, "
                                        "at train.py(31): main. Without "))
      << Judge(program.run()).sentence;
}

TEST(PlantedEnds, MemoryThatRanOutIsCalledThat) {
  Program program = TenSteps();
  program.trace().info.notes.emplace_back("out of memory: 1024 bytes were asked for");
  program.AddMark(proto::kStepDomain, proto::kEndingMark, 100 * kMs,
                  R"({"type":"torch.OutOfMemoryError","message":"CUDA out of memory.","frames":[)"
                  R"("train.py(3): <module>"]})");
  EXPECT_EQ(DescribeEnd(program.run()),
            "The program ran out of memory: 1024 bytes were asked for (torch.OutOfMemoryError), at "
            "train.py(3): <module>. ");
}

TEST(PlantedEnds, ASignalAndAStatusAreSaidAndAGoodEndIsNot) {
  Program program = TenSteps();
  program.run().info.exit_status = 0;
  program.trace().info.detail = "exited with status 0";
  EXPECT_EQ(DescribeEnd(program.run()), "");
  program.trace().info.detail = "exited with status 3";
  EXPECT_EQ(DescribeEnd(program.run()), "The program exited with status 3. ");
  program.trace().info.detail = "killed by signal 9 (SIGKILL)";
  EXPECT_EQ(DescribeEnd(program.run()), "The program was killed by signal 9 (SIGKILL). ");
  program.trace().info.detail = "";
  program.run().info.exit_status = 2;
  EXPECT_EQ(DescribeEnd(program.run()), "The command exited with 2. ");
}

TEST(PlantedEnds, WhereTheWatchOfAHangNamesNobodyTheCallsOfTheRanksMay) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder.path() + "/hang-1");
  std::ofstream(folder.path() + "/hang-1/hang.json")
      << R"({"sentence": "All 2 ranks wait for their devices.", "cause": "devices", "calls": )"
      << R"({"cause": "not entered", "ranks": "rank 1", "guilty": true, "waiting": 1, )"
      << R"("finding": "Rank 1 did not enter AllReduce #63.", "advice": "look"}})";
  Program program = TenSteps();
  program.run().path = folder.path();
  program.run().info.exit_signal = 15;
  EXPECT_EQ(
      DescribeEnd(program.run()),
      "The job hung: All 2 ranks wait for their devices. Rank 1 did not enter AllReduce #63. ");
}

TEST(PlantedEnds, AHangIsSaidBeforeWhatEndedTheJobForItAndNotWhereTheJobWentOn) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder.path() + "/hang-1");
  std::ofstream(folder.path() + "/hang-1/hang.json")
      << R"({"sentence": "Rank 1 did not enter AllReduce.", "cause": "stuck"})";
  Program program = TenSteps();
  program.run().path = folder.path();
  program.run().info.exit_signal = 15;
  EXPECT_EQ(DescribeEnd(program.run()), "The job hung: Rank 1 did not enter AllReduce. ");
  program.run().info.exit_signal.reset();
  program.run().info.exit_status = 0;
  EXPECT_EQ(DescribeEnd(program.run()), "");
}

// gloo aborted rank 0, which got more bytes than it waited for.
TEST(PlantedEnds, TheRankWhoseTensorDiffersComesBeforeTheInnocentOneThatItEnded) {
  Program job = TenSteps();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Program program = TenSteps();
    for (uint64_t call = 0; call < 2; ++call) {
      program.AddRange(proto::kCommDomain, "gloo:allreduce", 100 * kMs, 101 * kMs,
                       call == 1 && rank == 0 ? 1 : 0);
      Ranges& ranges = program.trace().ranges;
      ranges.payload[ranges.size() - 1] = call == 1 && rank == 1 ? 128 : 64;
      ranges.category.PadTo(ranges.size());
      ranges.category.back() = 3;
    }
    program.trace().process_groups.push_back({.name = "0",
                                              .description = "default_pg",
                                              .backend = "gloo",
                                              .size = 3,
                                              .ranks = {0, 1, 2}});
    program.trace().info.rank = rank;
    program.trace().info.detail = rank == 0 ? "killed by signal 6 (SIGABRT)" : "";
    if (rank == 0) job.run().traces.clear();
    job.run().traces.push_back(std::move(program.trace()));
  }
  job.run().info.exit_status = 1;
  EXPECT_EQ(DescribeEnd(job.run()),
            "Rank 1 entered Allreduce #2 (64 B, group default_pg) with 128 B, where the 2 others "
            "had 64 B. Rank 0 was killed by signal 6 (SIGABRT). ");
}

std::string EndOfTwo(const std::string& row) {
  Program asked = TenSteps(), other = TenSteps();
  asked.trace().info.rank = 0;
  asked.trace().info.detail = "killed by signal 15 (SIGTERM)";
  other.trace().info.rank = 1;
  other.AddMark(proto::kStepDomain, proto::kEndingMark, 120 * kMs, row);
  asked.run().traces.push_back(std::move(other.trace()));
  return DescribeEnd(asked.run());
}

// The launcher ended rank 0, which had waited for 20 ms, for the exception of rank 1; or rank 1
// lost the connection to it.
TEST(PlantedEnds, ARankThatSigtermEndedComesBehindCausesAndBeforeWhatItsEndBrought) {
  EXPECT_EQ(EndOfTwo(std::string(kRow)),
            "Rank 1 ended with ValueError: the labels do not fit, at train.py(31): main. ");
  EXPECT_EQ(EndOfTwo(R"({"type":"RuntimeError","message":"Connection closed by peer [::1]:9"})"),
            "Rank 0 was killed by signal 15 (SIGTERM). ");
}

// Rank 0 loses its connection because rank 1 is gone.
TEST(PlantedEnds, OfSeveralRanksTheFirstThatEndedIsNamed) {
  Program first = TenSteps(), second = TenSteps();
  first.trace().info.rank = 0;
  first.AddMark(proto::kStepDomain, proto::kEndingMark, 120 * kMs, kRow);
  second.trace().info.rank = 1;
  second.trace().info.detail = "killed by signal 9 (SIGKILL)";
  first.run().traces.push_back(std::move(second.trace()));
  EXPECT_EQ(DescribeEnd(first.run()), "Rank 1 was killed by signal 9 (SIGKILL). ");
}

// Steps of a host: `before` of `long_ns`, then others of 4 ms, all but 1 ms before the forward.
std::string SentenceOfSteps(int64_t before, int64_t long_ns, int64_t all) {
  Program program;
  int64_t now = 0;
  for (int64_t step = 0; step < all; ++step) {
    const int64_t ns = step < before ? long_ns : 4 * kMs;
    program.AddStep(now, now + ns);
    program.trace().ranges.payload[program.trace().ranges.size() - 1] = static_cast<uint64_t>(step);
    program.AddRange(proto::kModuleDomain, "Net", now + ns - kMs, now + ns - kMs / 2);
    program.AddRange(proto::kPhaseDomain, proto::kOptimizerPhase, now + ns - kMs / 2, now + ns);
    now += ns;
  }
  return Judge(program.run()).sentence;
}

TEST(UnlikeSteps, AnEpochThatIsSlowerIsSaidAndIsNoWarmUp) {
  for (const int64_t slow : {6, 10, 40}) {
    const std::string sentence = SentenceOfSteps(slow, 40 * kMs, 50);
    EXPECT_TRUE(sentence.starts_with(fmt::format(
        "Steps 0 to {} take 40.00 ms, steps {} to 49 4.000 ms (medians); the difference is after "
        "the optimizer and before the next forward pass. ",
        slow - 1, slow)))
        << sentence;
    const int64_t mean_us = (slow * 40'000 + (50 - slow) * 4'000) / 50;
    EXPECT_NE(sentence.find(fmt::format("of each {:.2f} ms step", mean_us / 1e3).substr(0, 12)),
              std::string::npos)
        << sentence;
  }
}

TEST(UnlikeSteps, ThreeStepsOfWarmUpAreLeftOutInSilence) {
  const std::string sentence = SentenceOfSteps(3, 40 * kMs, 50);
  EXPECT_TRUE(sentence.starts_with("Without a device all of each 4.000 ms step")) << sentence;
}

// Of 60 steps 15, 35 and 55 wait 200 ms for data, the others 1. The rest of a step takes 5 ms, from
// step 16 on `later`.
std::string SentenceOfStalls(int64_t later) {
  Program program;
  int64_t now = 0;
  for (int64_t step = 0; step < 60; ++step) {
    const bool stalls = step == 15 || step == 35 || step == 55;
    const int64_t data = (stalls ? 200 : 1) * kMs, rest = step < 16 ? 5 * kMs : later;
    program.AddStep(now, now + data + rest);
    program.trace().ranges.payload[program.trace().ranges.size() - 1] = static_cast<uint64_t>(step);
    program.AddRange(proto::kPhaseDomain, proto::kDataPhase, now, now + data);
    program.AddRange(proto::kModuleDomain, "Net", now + data, now + data + rest);
    now += data + rest;
  }
  return Judge(program.run()).sentence;
}

TEST(UnlikeSteps, AFewThatWaitForDataAreNamedWithTheirShare) {
  const std::string sentence = SentenceOfStalls(5 * kMs);
  // 3 * 205 of 3 * 205 + 57 * 6 ms.
  EXPECT_TRUE(sentence.starts_with(
      "3 of 60 steps (15, 35, 55) take 205.0 ms and have 64.3 % of the time, mostly waiting for "
      "data; the others take 6.000 ms (medians). "))
      << sentence;
}

TEST(UnlikeSteps, AFewLongOnesAreNotTakenForAChangeOfTheOthers) {
  const std::string sentence = SentenceOfStalls(11 * kMs);
  EXPECT_TRUE(sentence.starts_with("3 of 60 steps (15, 35, 55) take 211.0 ms and have "))
      << sentence;
}

// Of 60 steps 15 and 35 spend 90 ms in Net.experts, the others 1; the rest of a step takes 2 ms.
// The sampler found step 35's host at line 97, where it is for 1 ms of other steps.
TEST(UnlikeSteps, TheModuleAndTheLineWithMostOfALongStepAreNamed) {
  Program program;
  program.trace().hello.mutable_process()->set_pid(40);
  program.AddMark(proto::kSampleDomain, proto::kSampledCodesMark, 0,
                  "[1,\"/job/moe.py\",\"forward\"]\n");
  program.AddMark(proto::kSampleDomain, proto::kSampledFramesMark, 0, "[1,0,1,97]\n[2,0,1,12]\n");
  std::string samples;
  int64_t now = 0;
  for (int64_t step = 0; step < 60; ++step) {
    const int64_t experts = (step == 15 || step == 35 ? 90 : 1) * kMs,
                  end = now + experts + 2 * kMs;
    const auto add_module = [&program](std::string_view name, uint16_t depth, int64_t from,
                                       int64_t to) {
      program.AddRange(proto::kModuleDomain, name, from, to);
      program.trace().ranges.depth.back() = depth;
    };
    program.AddStep(now, end);
    program.trace().ranges.payload[program.trace().ranges.size() - 1] = static_cast<uint64_t>(step);
    add_module("Net", 0, now, end);
    add_module("Net.embed", 1, now, now + kMs);
    add_module("Net.experts", 1, now + kMs, now + kMs + experts);
    samples += fmt::format("[40,2,1,1,{},{},0]\n[40,1,1,1,{},{},0]\n", now, now + kMs, now + kMs,
                           now + kMs + experts);
    now = end;
  }
  program.AddMark(proto::kSampleDomain, proto::kSamplesMark, now, samples);
  EXPECT_TRUE(Judge(program.run())
                  .sentence.starts_with("2 of 60 steps (15, 35) take 92.00 ms and have 51.4 % of "
                                        "the time, mostly in the forward pass (most in "
                                        "Net.experts), at moe.py:97 (forward); the others take "
                                        "3.000 ms (medians). "))
      << Judge(program.run()).sentence;
  EXPECT_EQ(DescribeLongestStep(program.run(), 0),
            "step 15 takes 89.00 ms more than the median, mostly in the forward pass (most in "
            "Net.experts), at moe.py:97 (forward)");
}

// Steps 20 and 40 of 60 take 100 ms and the others 2.
TEST(UnlikeSteps, AStepThatOurRecordingMadeLongIsNotTheProgramsOwn) {
  const auto sentence_of = [](const std::vector<int64_t>& recorded) {
    Program program;
    int64_t now = 0;
    for (int64_t step = 0; step < 60; ++step) {
      const int64_t ns = (step == 20 || step == 40 ? 100 : 2) * kMs;
      program.AddStep(now, now + ns);
      program.trace().ranges.payload[program.trace().ranges.size() - 1] =
          static_cast<uint64_t>(step);
      program.AddRange(proto::kModuleDomain, "Net", now, now + ns);
      if (std::ranges::find(recorded, step) != recorded.end()) {
        program.AddOperator("aten::addmm", now + kMs / 2, now + kMs);
      }
      now += ns;
    }
    NestOperators(&program.trace());
    return Judge(program.run()).sentence;
  };
  EXPECT_TRUE(sentence_of({20, 40}).starts_with("Without a device")) << sentence_of({20, 40});
  EXPECT_TRUE(sentence_of({10, 30}).starts_with("2 of 60 steps (20, 40) take 100.0 ms"))
      << sentence_of({10, 30});
  EXPECT_TRUE(sentence_of({20}).starts_with("1 of 60 steps (40) takes 100.0 ms"))
      << sentence_of({20});
}

TEST(UnlikeSteps, StepsThatVaryALittleAreAlike) {
  Program program;
  int64_t now = 0;
  for (int64_t step = 0; step < 60; ++step) {
    const int64_t ns = (10 + step * 7 % 5) * kMs;
    program.AddStep(now, now + ns);
    program.AddRange(proto::kModuleDomain, "Net", now, now + ns);
    now += ns;
  }
  EXPECT_TRUE(Judge(program.run()).sentence.starts_with("Without a device"));
}

}  // namespace
}  // namespace ranktap::collector
