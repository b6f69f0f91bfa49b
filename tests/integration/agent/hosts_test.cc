// The hostile hosts under the real agent and collector: exit status, stdout and stderr as without
// ranktap, and every event that the host says it made is stored or declared lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::Trace;
using testing::HasSubstr;

// The number behind "key=" in the host's "counts" line.
uint64_t Count(const SimulatedRun& run, const std::string& key) {
  const size_t at = run.output().find(" " + key + "=");
  EXPECT_NE(at, std::string::npos) << key << " in: " << run.output();
  return at == std::string::npos ? 0 : std::stoull(run.output().substr(at + key.size() + 2));
}

uint64_t LaunchesIn(const Trace& trace) {
  uint64_t launches = 0;
  for (size_t i = 0; i < trace.api_calls.size(); ++i) {
    const collector::ApiFunction& api = trace.dictionary.Api(trace.api_calls.api[i]);
    launches += api.name.find("LaunchKernel") != std::string::npos ? 1 : 0;
  }
  return launches;
}

uint64_t RangesIn(const Trace& trace, bool unfinished) {
  uint64_t ranges = 0;
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    ranges += (trace.ranges.unfinished.At(i) != 0) == unfinished ? 1 : 0;
  }
  return ranges;
}

// The one trace of a run of one process, which verifies.
const Trace& TheTrace(const TracedRun& run) {
  static const Trace kNothing;
  EXPECT_EQ(run.Problems(), "");
  EXPECT_EQ(run.run().traces.size(), 1u) << run.load_problem();
  return run.run().traces.empty() ? kNothing : run.run().traces[0];
}

class EndingTest : public testing::TestWithParam<const char*> {};

TEST_P(EndingTest, TheProcessEndsAsBareAndNothingThatHappenedBeforeIsMissing) {
  const std::vector<std::string> command = {Host("endings"), GetParam(), "50"};
  const SimulatedRun bare(command, {});
  const TracedRun traced(command);
  ExpectSameToTheUser(bare, traced.process());
  const Trace& trace = TheTrace(traced);
  EXPECT_EQ(LaunchesIn(trace), 50u);
  EXPECT_EQ(RangesIn(trace, /*unfinished=*/false), 50u);
  EXPECT_EQ(RangesIn(trace, /*unfinished=*/true), 1u) << "the range that is open at the end";
  EXPECT_EQ(SumWriters(trace).lost, 0u);
}

INSTANTIATE_TEST_SUITE_P(Ways, EndingTest,
                         testing::Values("return", "exit", "_exit", "quick_exit", "abort", "segv",
                                         "terminate", "kill", "exec"),
                         [](const auto& info) {
                           const std::string how = info.param;
                           return how == "_exit" ? std::string("exit_at_once") : how;
                         });

TEST(EndingsTest, AnOrderlyExitHasEveryKernelToo) {
  const TracedRun traced({Host("endings"), "exit", "50"});
  EXPECT_EQ(TheTrace(traced).kernels.size(), 50u);
}

class ForkTest : public testing::TestWithParam<const char*> {};

TEST_P(ForkTest, TheParentsTraceIsWholeAndHoldsNothingOfTheChildren) {
  const TracedRun traced({Host("forks"), GetParam(), "40", "8", "touch"});
  ASSERT_TRUE(traced.process().exited_with(0))
      << traced.process().output() << traced.process().errors();
  EXPECT_EQ(traced.Problems(), "");
  ASSERT_EQ(traced.process().Processes().size(), 1u);
  const Trace* trace = traced.TraceOf(traced.process().Processes()[0]);
  ASSERT_NE(trace, nullptr) << traced.load_problem();
  const Sums sums = SumWriters(*trace);
  EXPECT_EQ(sums.produced, sums.stored + sums.lost);
  if (sums.lost > 0) {
    GTEST_LOG_(INFO) << "the machine was too slow to keep " << sums.lost << " events";
    return;
  }
  EXPECT_EQ(LaunchesIn(*trace), Count(traced.process(), "launches"));
  EXPECT_EQ(trace->kernels.size(), Count(traced.process(), "launches"));
  EXPECT_EQ(trace->ranges.size(), Count(traced.process(), "ranges"));
  for (size_t i = 0; i < trace->ranges.size(); ++i) {
    EXPECT_NE(trace->dictionary.String(trace->ranges.name[i]), "in the child");
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ForkTest, testing::Values("fork", "raw", "vfork", "spawn"),
                         [](const auto& info) { return std::string(info.param); });

TEST(HostsTest, AHostThatClosesOurDescriptorsIsNotWrittenIntoAndLosesNothing) {
  const std::vector<std::string> command = {Host("closes_descriptors"), "100"};
  const SimulatedRun bare(command, {});
  const TracedRun traced(command);
  ExpectSameToTheUser(bare, traced.process());
  const Trace& trace = TheTrace(traced);
  EXPECT_EQ(LaunchesIn(trace), 200u);
  EXPECT_EQ(trace.ranges.size(), 200u);
}

class ThrowTest : public testing::TestWithParam<const char*> {};

TEST_P(ThrowTest, ExceptionsAndCancellationPassThroughUs) {
  const std::vector<std::string> command = {Host("throws"), GetParam(), "7"};
  const SimulatedRun bare(command, {});
  const TracedRun traced(command);
  // A cancelled thread has made as many launches as it came to: no two runs print the same.
  if (GetParam() != std::string("cancel")) ExpectSameToTheUser(bare, traced.process());
  EXPECT_TRUE(traced.process().exited_with(0));
  EXPECT_EQ(Count(traced.process(), "survived"), 7u);
  const Trace& trace = TheTrace(traced);
  EXPECT_EQ(trace.kernels.size(), Count(traced.process(), "launches"));
}

INSTANTIATE_TEST_SUITE_P(Ways, ThrowTest, testing::Values("ranges", "occupancy", "cancel"),
                         [](const auto& info) { return std::string(info.param); });

TEST(HostsTest, SixtyFourThreadsLoseNothing) {
  const TracedRun traced({Host("threads"), "64", "64", "100", "50"});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  const Trace& trace = TheTrace(traced);
  EXPECT_EQ(SumWriters(trace).lost, 0u);
  EXPECT_EQ(trace.kernels.size(), 64u * 100u);
  EXPECT_EQ(LaunchesIn(trace), 64u * 100u);
  EXPECT_EQ(trace.ranges.size(), 64u * 50u);
}

// A thread's ring goes back to the pool when the collector has its events on disk, up to 200 ms
// after its end: a program that makes threads faster than that runs out of rings, which is counted.
TEST(HostsTest, OfTwoThousandShortThreadsEveryEventIsStoredOrCounted) {
  const TracedRun traced({Host("threads"), "50", "2000", "1", "1"});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  const Trace& trace = TheTrace(traced);
  const Sums sums = SumWriters(trace);
  EXPECT_EQ(sums.produced, sums.stored + sums.lost);
  // Rings that a busy machine's sender has not emptied yet are what the kernels' records need too.
  EXPECT_LE(trace.kernels.size(), 2000u);
  EXPECT_GE(trace.kernels.size() + sums.lost, 2000u);
  EXPECT_GE(trace.ranges.size() * 2 + sums.lost, 2000u * 2);
}

TEST(HostsTest, EveryNvtxCallArrives) {
  const TracedRun traced({Host("nvtx_everything"), "3"});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  EXPECT_EQ(Count(traced.process(), "levels_wrong"), 0u);
  EXPECT_EQ(Count(traced.process(), "enabled"), 3u);
  const Trace& trace = TheTrace(traced);
  uint64_t push_pop = 0, start_end = 0;
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    const auto kind = static_cast<collector::RangeKind>(trace.ranges.kind[i]);
    push_pop += kind == collector::RangeKind::kPushPop ? 1 : 0;
    start_end += kind == collector::RangeKind::kStartEnd ? 1 : 0;
  }
  EXPECT_EQ(push_pop, Count(traced.process(), "push_pop"));
  EXPECT_EQ(start_end, Count(traced.process(), "start_end"));
  EXPECT_EQ(trace.marks.size(), Count(traced.process(), "marks"));
  EXPECT_EQ(RangesIn(trace, /*unfinished=*/true), 0u);
  // Payloads of every schema, and what was given a name.
  EXPECT_GT(trace.payloads.size(), 0u);
  EXPECT_FALSE(trace.names.empty());
}

TEST(HostsTest, KernelsThatCuptiHeldWhenTheProcessHadToGoAreDeclared) {
  constexpr uint64_t kLaunches = 20'000;
  // Without a flush before the end, and with no time for the last one.
  const TracedRun traced({Host("launches"), std::to_string(kLaunches), "0"},
                         {{"RANKTAP_EXIT_MS", "0"}, {"RANKTAP_FLUSH_MS", "10000"}});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  const Trace& trace = TheTrace(traced);
  uint64_t held = 0;
  for (const collector::Writer& writer : trace.writers) {
    held += writer.lost[static_cast<size_t>(proto::Loss::kUnflushed)];
  }
  EXPECT_EQ(LaunchesIn(trace), kLaunches);
  EXPECT_EQ(trace.kernels.size() + held, kLaunches);
  std::stringstream book;
  book << std::ifstream(traced.path() + "/run.json").rdbuf();
  EXPECT_EQ(book.str().find("records CUPTI still held") != std::string::npos, held > 0);
}

TEST(HostsTest, AProgramWithoutCudaAndNvtxLeavesNothing) {
  const TracedRun traced({Host("plain"), "7"});
  EXPECT_TRUE(traced.process().exited_with(7));
  EXPECT_EQ(traced.process().errors(), "");
  EXPECT_TRUE(traced.run().traces.empty());
}

TEST(OverloadTest, WhatTheRingCannotTakeIsCountedExactly) {
  constexpr uint64_t kThreads = 4, kRanges = 1'000'000;
  const TracedRun traced({Host("threads"), std::to_string(kThreads), std::to_string(kThreads), "0",
                          std::to_string(kRanges)},
                         {{"RANKTAP_RING_MIB", "4"}});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  const Trace& trace = TheTrace(traced);
  const Sums sums = SumWriters(trace);
  EXPECT_GT(sums.lost, 0u) << "the ring took everything: this machine shows no overload";
  EXPECT_EQ(sums.produced, sums.stored + sums.lost);
  // A push and a pop each; the rest are a few calls of the CUDA API and the drain's records.
  EXPECT_GE(sums.produced, 2 * kThreads * kRanges);
  EXPECT_LE(sums.produced, 2 * kThreads * kRanges + 1000);
}

// A launch by hand: what `ranktap run` sets, with something wrong in it.
Environment ByHand(const Environment& more) {
  const std::string agent = BuildPath("lib/libranktap.so");
  Environment environment = {{"LD_PRELOAD", agent},
                             {"CUDA_INJECTION64_PATH", agent},
                             {"NVTX_INJECTION64_PATH", agent},
                             {"RANKTAP_LEVEL", "kernels"},
                             {"RANKTAP_SPOOL_MIB", "0"},
                             {"RANKTAP_EXIT_MS", "100"}};
  environment.insert(environment.end(), more.begin(), more.end());
  return environment;
}

class BadInputTest : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BadInputTest, TheHostRunsOnUntouched) {
  const SimulatedRun bare({Host("endings"), "return", "50"}, {});
  const SimulatedRun traced({Host("endings"), "return", "50"}, ByHand({GetParam()}));
  ExpectSameToTheUser(bare, traced);
}

INSTANTIATE_TEST_SUITE_P(Environments, BadInputTest,
                         testing::Values(std::pair("RANKTAP_SOCKET", "/nonexistent/ranktap.sock"),
                                         std::pair("RANKTAP_SOCKET", "/dev/null"),
                                         std::pair("RANKTAP_SOCKET", "."),
                                         std::pair("RANKTAP_SOCKET", ""),
                                         std::pair("RANKTAP_DISABLE", "1"),
                                         std::pair("RANKTAP_LOG", "/nonexistent/log"),
                                         std::pair("RANKTAP_CUPTI", "/nonexistent/libcupti.so")),
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

TEST(BadEnvironmentTest, WrongValuesAreNotedInTheTraceAndChangeNothing) {
  const TracedRun traced({Host("endings"), "return", "50"}, {{"RANKTAP_RING_MIB", "plenty"},
                                                             {"RANKTAP_FLUSH_MS", "-1"},
                                                             {"RANKTAP_EXIT_MS", "99999999999"},
                                                             {"RANKTAP_RINGMIB", "8"}});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  const Trace& trace = TheTrace(traced);
  EXPECT_EQ(trace.kernels.size(), 50u);
  EXPECT_THAT(trace.info.notes,
              testing::IsSupersetOf(
                  {HasSubstr("RANKTAP_RING_MIB=plenty"), HasSubstr("RANKTAP_FLUSH_MS=-1"),
                   HasSubstr("RANKTAP_EXIT_MS=99999999999"), HasSubstr("RANKTAP_RINGMIB")}));
}

TEST(BadEnvironmentTest, TheKillSwitchLeavesNoTrace) {
  const TracedRun traced({Host("endings"), "return", "50"}, {{"RANKTAP_DISABLE", "1"}});
  EXPECT_TRUE(traced.process().exited_with(0));
  EXPECT_EQ(traced.process().errors(),
            "ranktap: RANKTAP_DISABLE=1 is set: nothing will be traced\n");
  EXPECT_TRUE(traced.run().traces.empty());
}

}  // namespace
}  // namespace ranktap::agent_test
