// `--keep` and `ranktap dump` with ranks that are at work on the stand-in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/utsname.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "collector/file/read_run_info.h"
#include "collector/trace/load/run_reader.h"
#include "collector/trace/load/trace_check.h"
#include "tests/integration/control/live_run.h"

namespace ranktap::control_test {
namespace {

namespace fs = std::filesystem;
using agent_test::Host;
using ::testing::HasSubstr;

void ExpectAddsUp(const std::string& path) {
  const auto check = collector::CheckRun(path);
  ASSERT_TRUE(check.ok()) << check.message();
  for (const std::string& problem : check->problems) ADD_FAILURE() << problem;
  for (const auto& trace : check->traces) {
    EXPECT_EQ(trace.lost, 0u) << trace.path;
    for (const auto& problem : trace.problems) ADD_FAILURE() << trace.path << ": " << problem.what;
  }
}

std::vector<std::string> DumpsOf(const std::string& run) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string path = entry.path();
    if (entry.path().filename().string().starts_with("dump-") && fs::exists(path + "/run.json")) {
      found.push_back(path);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool HasDropped(const std::string& run) {
  const auto check = collector::CheckRun(run);
  return check.ok() && std::ranges::any_of(check->traces, [](const auto& trace) {
           return trace.dropped_events > 0;
         });
}

// Linux tells how a process ended that is not the asker's child.
bool TellsEnds() {
  utsname kernel{};
  int major = 0, minor = 0;
  return ::uname(&kernel) == 0 && std::sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 15));
}

TEST(KeepRunTest, ARankThatExitsWithAnotherStatusThan0WhileOthersGoOnMakesADump) {
  if (!TellsEnds()) GTEST_SKIP() << "Linux older than 6.15 does not tell how a process ended";
  LiveRun job(2,
              "sh -c \"if [ $RANK = 1 ]; then exec " + Host("endings") +
                  " exit @$STOP.exit; fi; exec " + Host("launches") + " @$STOP 500\"",
              {"--keep", "2s", "--on", "exit"}, {});
  ASSERT_TRUE(job.AwaitRanks(2));
  ASSERT_TRUE(WaitUntil([&] { return HasDropped(job.path()); }));
  const auto status = Ranktap({"status", job.path()});
  EXPECT_THAT(status->output(), HasSubstr("run: --keep holds the last ")) << status->errors();
  std::ofstream(fs::path(job.path()).parent_path() / "stop.exit") << "now";
  ASSERT_TRUE(WaitUntil([&] { return DumpsOf(job.path()).size() == 1; }));
  const std::string dump = DumpsOf(job.path())[0];
  const auto info = collector::ReadRunInfo(dump);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->metadata.at("dump"), "rank 1 exited with status 3");
  EXPECT_EQ(info->traces.size(), 2u);
  ExpectAddsUp(dump);
  job.End();
}

TEST(KeepRunTest, ADumpHoldsTheLastSecondsOfAllRanksAndARankThatIsKilledMakesAnother) {
  LiveRun job(2, 500, {"--keep", "2s", "--on", "signal"});
  ASSERT_TRUE(job.AwaitRanks(2));
  ASSERT_TRUE(WaitUntil([&] { return HasDropped(job.path()); }));

  const auto dump = Ranktap({"dump", job.path(), "--after", "100ms"});
  ASSERT_TRUE(dump->exited_with(0)) << dump->errors();
  EXPECT_THAT(dump->output(), HasSubstr(" of 2 processes, "));
  std::vector<std::string> dumps = DumpsOf(job.path());
  ASSERT_EQ(dumps.size(), 1u);
  ExpectAddsUp(dumps[0]);
  auto run = collector::LoadRun(dumps[0]);
  ASSERT_TRUE(run.ok()) << run.message();
  ASSERT_EQ(run->traces.size(), 2u);
  for (const collector::Trace& trace : run->traces) {
    ASSERT_GT(trace.kernels.size(), 500u);
    const int64_t first = trace.kernels.start[0];
    const int64_t last = trace.kernels.end[trace.kernels.size() - 1];
    EXPECT_GT(last - first, 1'000'000'000);
    EXPECT_LT(last - first, 10'000'000'000);
    EXPECT_FALSE(trace.dictionary.String(trace.kernels.name[0]).empty());
  }
  for (const char* const format : {"chrome", "perfetto", "sqlite"}) {
    const auto exported =
        Ranktap({"export", dumps[0], "--format", format, "-o", job.path() + ".out"});
    EXPECT_TRUE(exported->exited_with(0)) << format << ": " << exported->errors();
    fs::remove_all(job.path() + ".out");
  }
  const auto report = Ranktap({"report", dumps[0], "kernels"});
  EXPECT_TRUE(report->exited_with(0)) << report->errors();

  const pid_t killed = job.Status().at(1)["pid"].is_string()
                           ? std::stoi(job.Status().at(1)["pid"].get<std::string>())
                           : job.Status().at(1)["pid"].get<pid_t>();
  ASSERT_EQ(::kill(killed, SIGKILL), 0);
  ASSERT_TRUE(WaitUntil([&] { return DumpsOf(job.path()).size() == 2; }))
      << "Linux 6.15 tells how a process ended, and so does its parent's zombie";
  dumps = DumpsOf(job.path());
  const auto info = collector::ReadRunInfo(dumps[1]);
  ASSERT_TRUE(info.ok());
  EXPECT_THAT(info->metadata.at("dump"), HasSubstr("rank 1 killed by signal 9 (SIGKILL)"));
  ExpectAddsUp(dumps[1]);
  job.End();
  ExpectAddsUp(job.path());
  EXPECT_EQ(job.run().traces.size(), 2u) << "one file of each rank";
  ASSERT_NE(job.TraceOf(1), nullptr);
  EXPECT_EQ(job.TraceOf(1)->info.status, collector::TraceStatus::kDied);
}

}  // namespace
}  // namespace ranktap::control_test
