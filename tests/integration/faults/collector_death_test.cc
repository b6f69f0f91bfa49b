// `ranktap collect` killed again and again while a program works: every event is stored once, and
// every file opens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "collector/trace/load/run_reader.h"
#include "tests/fault_seed.h"
#include "tests/integration/agent/standing_collector.h"
#include "tests/integration/agent/traced_run.h"

namespace ranktap::faults_test {
namespace {

namespace fs = std::filesystem;
using agent_test::Environment;
using agent_test::Host;
using agent_test::SimulatedRun;
using agent_test::SumWriters;

class CollectorDeathTest : public testing::Test, public agent_test::StandingCollector {
 protected:
  struct Stored {
    uint64_t kernels = 0, ranges = 0, launches = 0, events = 0, produced = 0;
    size_t files = 0;
  };
  // Of all runs; each must verify, and none may lack anything.
  Stored Count() const {
    Stored stored;
    for (const std::string& path : Runs()) {
      const auto check = collector::CheckRun(path);
      EXPECT_TRUE(check.ok()) << check.message();
      if (!check.ok()) continue;
      EXPECT_THAT(check->problems, testing::IsEmpty());
      for (const auto& trace : check->traces) {
        for (const auto& problem : trace.problems) ADD_FAILURE() << trace.path << problem.what;
        EXPECT_EQ(trace.lost, 0u) << trace.path;
      }
      const auto run = collector::LoadRun(path);
      EXPECT_TRUE(run.ok()) << run.message();
      if (!run.ok()) continue;
      for (const auto& trace : run->traces) {
        ++stored.files;
        stored.events += SumWriters(trace).stored;
        stored.produced += SumWriters(trace).produced;
        stored.kernels += trace.kernels.size();
        stored.launches += trace.api_calls.size();
        for (size_t i = 0; i < trace.ranges.size(); ++i) {
          stored.ranges += trace.ranges.unfinished.At(i) == 0 ? 1 : 0;
        }
      }
    }
    return stored;
  }
  // What the collectors have said on stderr.
  std::string Complaints() const {
    std::ifstream log(folder_ + "/collector.err");
    return {std::istreambuf_iterator<char>(log), {}};
  }
};

TEST_F(CollectorDeathTest, HoweverOftenItIsKilledEveryEventIsStoredOnce) {
  const int kills = FaultCount(200);
  const uint32_t seed = FaultSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string stop = folder_ + "/stop";
  std::thread killer([&] {
    for (int i = 0; i < kills; ++i) {
      const std::set<std::string> before = Growing();
      const auto stores_something = [&] {
        const std::set<std::string> now = Growing();
        return std::any_of(now.begin(), now.end(),
                           [&](const auto& path) { return !before.contains(path); });
      };
      const pid_t collector = StartCollector();
      EXPECT_TRUE(WaitUntil(stores_something)) << "collector " << i;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
      EXPECT_TRUE(WIFSIGNALED(End(collector, SIGKILL))) << "collector " << i << " had ended";
    }
    std::fclose(std::fopen(stop.c_str(), "w"));
  });
  const SimulatedRun traced({Host("launches"), "@" + stop, "2000"}, Joined());
  killer.join();
  EXPECT_TRUE(traced.exited_with(0)) << traced.errors();
  uint64_t launches = 0;
  ASSERT_EQ(std::sscanf(traced.output().c_str(), "counts launches=%lu", &launches), 1);
  // Whatever is still in a spool comes in with the last collector.
  const pid_t last = StartCollector();
  EXPECT_TRUE(WaitUntil([&] { return Spools().empty() && !Runs().empty(); }));
  EXPECT_EQ(End(last, SIGTERM), 0);
  const Stored stored = Count();
  EXPECT_EQ(stored.kernels, launches);
  std::printf("%d collectors killed (seed %u): %lu kernels in %zu files, each once\n", kills, seed,
              stored.kernels, stored.files);
}

// A node full of ranks: each kill or end meets 64 of them, all of which come back at once.
TEST_F(CollectorDeathTest, SixtyFourRanksOutliveACollectorThatIsRestartedEveryTwoSeconds) {
  constexpr int kRanks = 64;
  const int restarts = FaultCount(5);
  const std::string stop = folder_ + "/stop";
  pid_t last = -1;
  std::thread restarter([&] {
    for (int i = 0; i < restarts; ++i) {
      const pid_t collector = StartCollector();
      std::this_thread::sleep_for(std::chrono::seconds(2));
      End(collector, i % 2 == 0 ? SIGKILL : SIGTERM);
    }
    // The ranks end when each has found the last collector: 64 that end at once without one share
    // two cores for the half second that each may take to fill its spool, and lose the rest.
    const std::set<std::string> before = Growing();
    last = StartCollector();
    EXPECT_TRUE(WaitUntil([&] {
      const std::set<std::string> now = Growing();
      return std::count_if(now.begin(), now.end(),
                           [&](const auto& path) { return !before.contains(path); }) >= kRanks;
    }));
    std::fclose(std::fopen(stop.c_str(), "w"));
  });
  Environment environment = Joined();
  environment.emplace_back("RANKTAP_RING_MIB", "8");
  const SimulatedRun traced({"/bin/sh", "-c",
                             "for rank in $(seq " + std::to_string(kRanks) + "); do " +
                                 Host("launches") + " @" + stop + " 200 & done; wait"},
                            environment);
  restarter.join();
  uint64_t launches = 0;
  int ended = 0;
  std::istringstream lines(traced.output());
  for (std::string line; std::getline(lines, line);) {
    uint64_t of_rank = 0, failed = 0;
    ASSERT_EQ(
        std::sscanf(line.c_str(), "counts launches=%lu ranges=1 failed=%lu", &of_rank, &failed), 2)
        << line;
    EXPECT_EQ(failed, 0u);
    launches += of_rank;
    ++ended;
  }
  EXPECT_EQ(ended, kRanks) << traced.errors();
  EXPECT_TRUE(WaitUntil([&] { return Spools().empty(); }));
  EXPECT_EQ(End(last, SIGTERM), 0);
  const Stored stored = Count();
  EXPECT_EQ(stored.kernels, launches);
  EXPECT_EQ(stored.launches, launches + kRanks) << "each made one stream besides";
  std::printf("%d restarts under %d ranks: %lu kernels in %zu files, each once\n", restarts, kRanks,
              stored.kernels, stored.files);
}

// A connected collector that is stopped: the program goes on into its spool. "lives": the collector
// reads again while it does; "exit", "kill": after its end; "later": another collector comes.
class DeafCollectorTest : public CollectorDeathTest,
                          public testing::WithParamInterface<const char*> {
 protected:
  // The program's command: until `stop` is there, and then by itself or by a kill.
  std::vector<std::string> Ending(const std::string& stop) const {
    if (GetParam() != std::string("kill")) return {Host("launches"), "@" + stop, "4000"};
    return {"/bin/sh", "-c",
            Host("launches") + " @" + folder_ + "/never 4000 & while ! [ -e " + stop +
                " ]; do sleep 0.1; done; kill -KILL $!"};
  }
  bool HasSpooled() const {
    std::error_code gone;
    return !Spools().empty() && fs::file_size(Spools()[0], gone) > 65536 && !gone;
  }
};

TEST_P(DeafCollectorTest, WhatItDoesNotReadIsInTheSpoolAndStoredOnce) {
  const std::string ends = GetParam(), stop = folder_ + "/stop";
  pid_t collector = StartCollector();
  std::thread deafness([&] {
    EXPECT_TRUE(WaitUntil([&] { return !Growing().empty(); }));
    kill(collector, SIGSTOP);
    EXPECT_TRUE(WaitUntil([&] { return HasSpooled(); }));
    if (ends == "lives") {
      kill(collector, SIGCONT);
      EXPECT_TRUE(WaitUntil([&] { return Spools().empty(); }));
    }
    std::fclose(std::fopen(stop.c_str(), "w"));
  });
  // Half of these rings hold some seconds of this rate.
  Environment environment = Joined();
  environment.emplace_back("RANKTAP_RING_MIB", "4");
  const SimulatedRun traced(Ending(stop), environment);
  deafness.join();
  if (ends == "later") {
    EXPECT_TRUE(WIFSIGNALED(End(collector, SIGKILL)));
    collector = StartCollector();
  } else {
    kill(collector, SIGCONT);
  }
  EXPECT_TRUE(WaitUntil([&] { return Spools().empty() && Growing().empty(); }));
  EXPECT_EQ(End(collector, SIGTERM), 0);
  const Stored stored = Count();
  EXPECT_EQ(stored.events, stored.produced);
  std::printf("%s: %lu events stored of %lu, in %zu files\n", ends.c_str(), stored.events,
              stored.produced, stored.files);
  if (ends == "kill") return;
  uint64_t launches = 0;
  ASSERT_EQ(std::sscanf(traced.output().c_str(), "counts launches=%lu", &launches), 1);
  EXPECT_EQ(stored.kernels, launches);
}

INSTANTIATE_TEST_SUITE_P(Ways, DeafCollectorTest, testing::Values("lives", "exit", "kill", "later"),
                         [](const auto& info) { return std::string(info.param); });

class OrphanTest : public CollectorDeathTest, public testing::WithParamInterface<const char*> {};

// No collector at all while the program ran and ended; one comes later.
TEST_P(OrphanTest, TheSpoolOfAnEndedProcessIsTakenInByTheNextCollector) {
  const bool killed = std::string(GetParam()) == "kill";
  // Killed when it has been alone for longer than an outage that may pass.
  const std::vector<std::string> command =
      killed ? std::vector<std::string>{"/usr/bin/timeout", "-s",     "KILL", "4",
                                        Host("launches"),   "100000", "1000"}
             : std::vector<std::string>{Host("endings"), "exit", "300"};
  const SimulatedRun alone(command, Joined());
  ASSERT_EQ(Spools().size(), 1u);
  const pid_t collector = StartCollector();
  EXPECT_TRUE(WaitUntil([&] { return Spools().empty(); }));
  EXPECT_EQ(End(collector, SIGTERM), 0);
  ASSERT_EQ(Runs().size(), 1u);
  const auto run = collector::LoadRun(Runs()[0]);
  ASSERT_TRUE(run.ok()) << run.message();
  ASSERT_EQ(run->traces.size(), 1u);
  const collector::Trace& trace = run->traces[0];
  EXPECT_TRUE(trace.closed);
  const Stored stored = Count();
  if (!killed) {
    EXPECT_EQ(stored.kernels, 300u);
    EXPECT_EQ(stored.ranges, 300u);
    EXPECT_EQ(trace.ending.how(), v1::Ending::HOW_GOODBYE);
  } else {
    EXPECT_GT(stored.kernels, 0u);
    EXPECT_EQ(trace.ending.how(), v1::Ending::HOW_ABANDONED);
    EXPECT_THAT(trace.ending.detail(), testing::HasSubstr("spool"));
  }
}

INSTANTIATE_TEST_SUITE_P(Endings, OrphanTest, testing::Values("exit", "kill"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(CollectorDeathTest, ASpoolThatIsNoneIsLeftWithAReason) {
  fs::create_directory(folder_ + "/spool");
  fs::permissions(folder_ + "/spool", fs::perms::owner_all);
  const std::string path = folder_ + "/spool/" + std::string(32, 'a') + "-0.spool";
  FILE* const file = std::fopen(path.c_str(), "w");
  std::fputs("this is not a frame", file);
  std::fclose(file);
  const pid_t collector = StartCollector();
  EXPECT_TRUE(WaitUntil([&] { return Complaints().find("aaaa-0.spool") != std::string::npos; }));
  EXPECT_THAT(Complaints(), testing::HasSubstr("no frame at offset 0"));
  EXPECT_EQ(End(collector, SIGTERM), 0);
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(CollectorDeathTest, ASpoolOfAnotherCollectorsJobIsLeftUntilSomebodyAsksForIt) {
  Environment elsewhere = Joined();
  for (auto& [name, value] : elsewhere) {
    if (name == "RANKTAP_SOCKET") value += "-of-another";
  }
  const SimulatedRun other({Host("endings"), "exit", "300"}, elsewhere);
  const std::vector<std::string> left = Spools();
  ASSERT_EQ(left.size(), 1u);
  const SimulatedRun ours({Host("endings"), "exit", "200"}, Joined());
  pid_t collector = StartCollector();
  EXPECT_TRUE(WaitUntil(
      [&] { return Spools() == left && Complaints().find("--all-spools") != std::string::npos; }));
  EXPECT_THAT(Complaints(),
              testing::HasSubstr("its collector is that at " + folder_ + "/socket-of-another"));
  EXPECT_EQ(End(collector, SIGTERM), 0);
  EXPECT_EQ(Count().kernels, 200u);
  collector = StartCollector({"--all-spools"});
  EXPECT_TRUE(WaitUntil([&] { return Spools().empty(); }));
  EXPECT_EQ(End(collector, SIGTERM), 0);
  EXPECT_EQ(Count().kernels, 500u);
}

}  // namespace
}  // namespace ranktap::faults_test
