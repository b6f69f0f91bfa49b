// The hostile hosts on the stand-in, bare and with the reference CUPTI client: they end as they
// should, the truth log survives them, and the client is told what happened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/integration/standin/simulated_run.h"

namespace ranktap::standin_test {
namespace {

using testing::HasSubstr;

Environment Probed(const std::string& kinds = "10", const Environment& more = {}) {
  Environment environment = {{"CUDA_INJECTION64_PATH", BuildPath("tests/libcupti_probe.so")},
                             {"PROBE_KINDS", kinds}};
  environment.insert(environment.end(), more.begin(), more.end());
  return environment;
}

std::string Host(const std::string& name) { return BuildPath("workloads/" + name); }

// The number behind "key=" in the host's "counts" line.
long Count(const SimulatedRun& run, const std::string& key) {
  size_t at = run.output().find(" " + key + "=");
  return at == std::string::npos ? -1 : std::stol(run.output().substr(at + key.size() + 2));
}

size_t DroppedOf(const SimulatedRun& run, int pid) {
  std::vector<Json> end = run.Told(pid, "end");
  return end.empty() ? SIZE_MAX : end[0]["dropped"].get<size_t>();
}

struct Ending {
  const char* how;
  int exit_status;  // -1: by a signal
  int signal;
};

class EndingTest : public testing::TestWithParam<Ending> {};

TEST_P(EndingTest, TheTruthHasEveryLaunchHoweverTheProcessEnds) {
  const Ending& ending = GetParam();
  SimulatedRun run({Host("endings"), ending.how, "50"}, {});
  if (ending.exit_status >= 0) {
    EXPECT_TRUE(run.exited_with(ending.exit_status)) << run.status();
  } else {
    EXPECT_TRUE(WIFSIGNALED(run.status()));
    EXPECT_EQ(WTERMSIG(run.status()), ending.signal);
  }
  EXPECT_EQ(Count(run, "launches"), 50);
  ASSERT_EQ(run.Processes().size(), 1u);
  EXPECT_EQ(run.Truth(run.Processes()[0], "kernel").size(), 50u);
}

INSTANTIATE_TEST_SUITE_P(Ways, EndingTest,
                         testing::Values(Ending{"return", 0, 0}, Ending{"exit", 3, 0},
                                         Ending{"_exit", 4, 0}, Ending{"quick_exit", 5, 0},
                                         Ending{"abort", -1, SIGABRT}, Ending{"segv", -1, SIGSEGV},
                                         Ending{"terminate", -1, SIGABRT},
                                         Ending{"kill", -1, SIGKILL}, Ending{"exec", 0, 0}),
                         [](const auto& info) {
                           std::string how = info.param.how;
                           return how == "_exit" ? std::string("exit_at_once") : how;
                         });

class ForkTest : public testing::TestWithParam<const char*> {};

TEST_P(ForkTest, ChildrenEndAndLeaveTheParentsTruthAlone) {
  SimulatedRun run({Host("forks"), GetParam(), "40", "8", "touch"}, Probed());
  ASSERT_TRUE(run.exited_with(0)) << run.output() << run.errors();
  EXPECT_EQ(Count(run, "failed"), 0);
  ASSERT_EQ(run.Processes().size(), 1u);
  int pid = run.Processes()[0];
  EXPECT_EQ(run.Truth(pid, "kernel").size(), static_cast<size_t>(Count(run, "launches")));
  EXPECT_EQ(run.Told(pid, "kernel").size(), static_cast<size_t>(Count(run, "launches")));
}

INSTANTIATE_TEST_SUITE_P(Ways, ForkTest, testing::Values("fork", "raw", "vfork", "spawn"),
                         [](const auto& info) { return std::string(info.param); });

TEST(HostsTest, ClosingEveryDescriptorDisturbsNobody) {
  SimulatedRun run({Host("closes_descriptors"), "100"}, {});
  ASSERT_TRUE(run.exited_with(0)) << run.output();
  EXPECT_EQ(run.Truth(run.Processes().at(0), "kernel").size(), 200u);
}

class ThrowTest : public testing::TestWithParam<const char*> {};

TEST_P(ThrowTest, TheProgramCatchesWhatItThrew) {
  SimulatedRun run({Host("throws"), GetParam(), "7"}, {});
  ASSERT_TRUE(run.exited_with(0)) << run.output() << run.errors();
  EXPECT_EQ(Count(run, "survived"), 7);
  EXPECT_EQ(run.Truth(run.Processes().at(0), "kernel").size(),
            static_cast<size_t>(Count(run, "launches")));
}

TEST(HostsTest, ACallLeftByAnExceptionIsOver) {
  SimulatedRun run({Host("throws"), "cupti", "3"}, {});
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  std::vector<Json> calls = run.Truth(run.Processes().at(0), "api");
  long left = std::count_if(calls.begin(), calls.end(),
                            [](const Json& call) { return call["status"] == -1; });
  EXPECT_EQ(left, 3);
  for (const Json& call : calls) {
    if (call["domain"] == "runtime") {
      EXPECT_FALSE(call["nested"]) << call;
    }
  }
}

TEST(HostsTest, CancelledThreadsLeaveTheClientWhole) {
  SimulatedRun run({Host("throws"), "cancel", "30"},
                   Probed("10", {{"PROBE_APIS", "1"}, {"PROBE_FLUSH", "1"}}));
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  int pid = run.Processes().at(0);
  EXPECT_EQ(run.Told(pid, "kernel").size(), run.Truth(pid, "kernel").size());
}

INSTANTIATE_TEST_SUITE_P(Ways, ThrowTest, testing::Values("ranges", "occupancy", "cupti", "cancel"),
                         [](const auto& info) { return std::string(info.param); });

TEST(HostsTest, SixtyFourThreadsLoseNothing) {
  SimulatedRun run({Host("threads"), "64", "64", "200", "0"}, Probed());
  ASSERT_TRUE(run.exited_with(0)) << run.output();
  int pid = run.Processes().at(0);
  EXPECT_EQ(run.Truth(pid, "kernel").size(), 64u * 200u);
  EXPECT_EQ(run.Told(pid, "kernel").size(), 64u * 200u);
  EXPECT_EQ(DroppedOf(run, pid), 0u);
}

TEST(HostsTest, ThousandsOfShortThreadsGiveTheirBuffersBack) {
  SimulatedRun run({Host("threads"), "50", "2000", "1", "0"}, Probed());
  ASSERT_TRUE(run.exited_with(0)) << run.output();
  EXPECT_EQ(run.Told(run.Processes().at(0), "kernel").size(), 2000u);
}

TEST(HostsTest, ABurstIsDeliveredWhole) {
  SimulatedRun run({Host("launches"), "30000", "0", "4"},
                   Probed("10", {{"RANKTAP_STANDIN_KERNEL_NS", "100"}, {"PROBE_FLUSH", "1"}}));
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  int pid = run.Processes().at(0);
  std::set<unsigned> correlations;
  for (const Json& kernel : run.Told(pid, "kernel")) {
    correlations.insert(kernel["correlation"].get<unsigned>());
  }
  EXPECT_EQ(correlations.size(), 30000u);
  EXPECT_EQ(DroppedOf(run, pid), 0u);
}

TEST(HostsTest, AProgramWithoutCudaStartsNothing) {
  SimulatedRun run({Host("plain"), "7"}, Probed());
  EXPECT_TRUE(run.exited_with(7));
  EXPECT_TRUE(run.Processes().empty());
}

TEST(HostsTest, NvtxAloneNeedsNoGpu) {
  SimulatedRun run({Host("nvtx_everything"), "3"}, {});
  ASSERT_TRUE(run.exited_with(0)) << run.output();
  EXPECT_EQ(Count(run, "push_pop"), 24);
  EXPECT_EQ(Count(run, "levels_wrong"), 0);
  EXPECT_TRUE(run.Processes().empty());
}

TEST(ScriptTest, WithoutDevicesTheProgramSaysSo) {
  SimulatedRun run({Host("launches"), "1"}, {{"RANKTAP_STANDIN_DEVICES", "0"}});
  EXPECT_TRUE(run.exited_with(1));
  EXPECT_THAT(run.errors(), HasSubstr("no CUDA-capable device"));
}

TEST(ScriptTest, TheWrapperRunsACommandOnTheStandin) {
  std::string wrapper = std::string(RANKTAP_SOURCE_DIR) + "/scripts/with-simulated-gpu";
  SimulatedRun run({wrapper, Host("launches"), "5"},
                   {{"RANKTAP_BUILD", BuildPath("")}, {"LD_LIBRARY_PATH", "/nowhere"}});
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  EXPECT_EQ(run.Truth(run.Processes().at(0), "kernel").size(), 5u);
}

TEST(ScriptTest, TheWrapperSaysWhatIsMissing) {
  std::string wrapper = std::string(RANKTAP_SOURCE_DIR) + "/scripts/with-simulated-gpu";
  SimulatedRun unbuilt({wrapper, "/bin/true"}, {{"RANKTAP_BUILD", "/nowhere"}});
  EXPECT_TRUE(unbuilt.exited_with(1));
  EXPECT_THAT(unbuilt.errors(), HasSubstr("/nowhere/fakes/libcuda.so.1 is missing"));
  SimulatedRun empty({wrapper}, {{"RANKTAP_BUILD", BuildPath("")}});
  EXPECT_TRUE(empty.exited_with(2));
}

TEST(ScriptTest, ATakenCuptiRefusesTheSubscriber) {
  SimulatedRun run({Host("launches"), "1"}, Probed("10", {{"RANKTAP_STANDIN_SUBSCRIBE", "owned"}}));
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  std::vector<Json> told = run.Told(run.Processes().at(0), "subscribe");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0]["status"], 39);
}

TEST(ScriptTest, ALostRecordIsMissingFromTheRecordsButNotFromTheTruth) {
  SimulatedRun run({Host("launches"), "1000"},
                   Probed("10", {{"RANKTAP_STANDIN_DROP_EVERY", "10"}}));
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  int pid = run.Processes().at(0);
  EXPECT_EQ(run.Truth(pid, "kernel").size(), 1000u);
  EXPECT_EQ(run.Told(pid, "kernel").size(), 900u);
  EXPECT_EQ(DroppedOf(run, pid), 100u);
}

TEST(ScriptTest, AWrongDeviceClockIsWrongInTheRecordsAndRightInTheRawTimes) {
  SimulatedRun run({Host("launches"), "10"},
                   Probed("10", {{"RANKTAP_STANDIN_CLOCK_OFFSET_NS", "-3600000000000"}}));
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  int pid = run.Processes().at(0);
  Json process = run.Truth(pid, "process").at(0);
  for (const Json& kernel : run.Truth(pid, "kernel")) {
    int64_t device = kernel["start_ns"].get<int64_t>() - process["device_ns"].get<int64_t>();
    int64_t raw = kernel["start_raw_ns"].get<int64_t>() - process["raw_ns"].get<int64_t>();
    EXPECT_LT(std::abs(device - raw), 1'000'000) << kernel;
  }
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  EXPECT_LT(process["device_ns"].get<int64_t>() / 1'000'000'000, now.tv_sec - 3000);
}

TEST(ScriptTest, WhatIsNotModelledIsCountedInTheTruth) {
  SimulatedRun run({Host("launches"), "1"}, Probed("10,54", {{"RANKTAP_STANDIN_VERBOSE", "1"}}));
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  EXPECT_THAT(run.errors(), HasSubstr("not modelled"));
  EXPECT_EQ(run.Truth(run.Processes().at(0), "refused").size(), 1u);
}

TEST(ScriptTest, CallbacksFromInsideABufferRequestReachTheClient) {
  SimulatedRun bare({Host("launches"), "10"}, Probed("10", {{"PROBE_APIS", "1"}}));
  SimulatedRun run(
      {Host("launches"), "10"},
      Probed("10", {{"PROBE_APIS", "1"}, {"RANKTAP_STANDIN_REENTER_ON_REQUEST", "1"}}));
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  int pid = run.Processes().at(0);
  EXPECT_GT(run.Told(pid, "api").size(), bare.Told(bare.Processes().at(0), "api").size());
  EXPECT_EQ(run.Told(pid, "kernel").size(), 10u);
}

}  // namespace
}  // namespace ranktap::standin_test
