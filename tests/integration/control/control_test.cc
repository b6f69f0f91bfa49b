// `ranktap start`, `stop` and `status` against ranks that are at work on the stand-in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "collector/report/reports.h"
#include "collector/trace/load/trace_check.h"
#include "tests/integration/control/live_run.h"

namespace ranktap::control_test {
namespace {

using collector::Gap;
using collector::Trace;
using ::testing::HasSubstr;

int64_t RealtimeNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Capture as a whole, in the order in which it was off.
std::vector<Gap> GapsOfAll(const Trace& trace) {
  std::vector<Gap> gaps;
  for (const Gap& gap : trace.gaps) {
    if (gap.source.empty()) gaps.push_back(gap);
  }
  std::sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.start < b.start; });
  return gaps;
}

struct Window {
  int64_t begin = 0, end = 0;  // CLOCK_REALTIME
};
std::vector<Window> WindowsOf(const Trace& trace) {
  std::vector<Window> windows;
  const std::vector<Gap> gaps = GapsOfAll(trace);
  for (size_t i = 0; i + 1 < gaps.size(); ++i) {
    windows.push_back(
        {gaps[i].end + trace.realtime_offset_ns, gaps[i + 1].start + trace.realtime_offset_ns});
  }
  return windows;
}

int Subscriptions(const LiveRun& job, const Trace& trace, bool subscribed) {
  int count = 0;
  for (const Json& line : job.process().Truth(static_cast<int>(trace.info.pid), "subscription")) {
    count += line["subscribed"].get<bool>() == subscribed ? 1 : 0;
  }
  return count;
}

TEST(ControlTest, AWindowBeginsAndEndsOnAllRanksTogetherAndOutsideItNothingIsArmed) {
  LiveRun job(3, 500, {"--dormant"});
  ASSERT_TRUE(job.AwaitRanks(3));
  for (const auto& [rank, row] : job.Status()) EXPECT_EQ(row["level"], "dormant") << rank;

  // Both clocks are this machine's; 2 s are enough for all to hear of it, or the test still holds.
  const int64_t at = (RealtimeNs() / 1'000'000'000 + 2) * 1'000'000'000;
  const auto start = Ranktap(
      {"start", job.path(), "--at", std::to_string(at / 1'000'000'000), "--duration", "2s"});
  EXPECT_TRUE(start->exited_with(0)) << start->errors();
  EXPECT_THAT(start->output(), HasSubstr("window 1: kernels on 3 processes from "));
  EXPECT_THAT(start->output(), HasSubstr(" for 2.000 s"));
  EXPECT_EQ(start->errors(), "");
  ASSERT_TRUE(job.AwaitLevel("dormant")) << "the window ends by itself";
  job.End();
  EXPECT_EQ(job.process().errors().find("ranktap:"), std::string::npos);

  int64_t last_begin = 0, first_end = INT64_MAX, first_begin = INT64_MAX;
  ASSERT_EQ(job.run().traces.size(), 3u);
  for (const Trace& trace : job.run().traces) {
    const auto windows = WindowsOf(trace);
    ASSERT_EQ(windows.size(), 1u);
    // The clock of the trace is good to some microseconds; an order may be late, never early.
    constexpr int64_t kClocks = 1'000'000;
    EXPECT_GE(windows[0].begin, at - kClocks);
    EXPECT_GE(windows[0].end, at + 2'000'000'000 - kClocks);
    first_begin = std::min(first_begin, windows[0].begin);
    last_begin = std::max(last_begin, windows[0].begin);
    first_end = std::min(first_end, windows[0].end);
    EXPECT_THAT(GapsOfAll(trace)[0].detail, HasSubstr("window 1"));

    EXPECT_GT(trace.kernels.size(), 0u);
    EXPECT_EQ(Subscriptions(job, trace, true), 1);
    EXPECT_EQ(Subscriptions(job, trace, false), 1);
    const auto truth = job.process().Truth(static_cast<int>(trace.info.pid), "kernel");
    EXPECT_GT(truth.size(), trace.kernels.size()) << "the ranks worked outside the window too";
    for (size_t i = 0; i < trace.api_calls.size(); ++i) {
      const int64_t when = trace.api_calls.start[i] + trace.realtime_offset_ns;
      // The window's own begin is read once all is armed, by a thread that may not run at once.
      EXPECT_GE(when, at - kClocks);
    }
  }
  EXPECT_LT(last_begin, first_end) << "the ranks' windows overlap";
  const collector::Table windows = collector::TabulateWindows(job.run());
  ASSERT_EQ(windows.rows.size(), 1u);
  EXPECT_EQ(std::get<std::string>(windows.rows[0][0]), "window 1");
  EXPECT_EQ(std::get<int64_t>(windows.rows[0][1]), 3);
  EXPECT_EQ(std::get<int64_t>(windows.rows[0][3]), last_begin - first_begin);
  std::printf("3 ranks began within %.3f ms\n",
              static_cast<double>(last_begin - first_begin) / 1e6);
  const auto check = collector::CheckRun(job.path());
  ASSERT_TRUE(check.ok());
  EXPECT_TRUE(check->ok());
}

TEST(ControlTest, StartStopStartMakesTwoWindowsAndARankThatComesLateJoins) {
  LiveRun job(2, 500, {"--level", "ranges", "--dormant"});
  ASSERT_TRUE(job.AwaitRanks(2));
  for (int window = 1; window <= 2; ++window) {
    const auto start = Ranktap({"start", job.path()});
    EXPECT_THAT(start->output(),
                HasSubstr("window " + std::to_string(window) + ": ranges on 2 processes"));
    const auto rows = job.Status();
    EXPECT_EQ(rows.at(0)["level"], "ranges");
    EXPECT_EQ(rows.at(1)["window"], window);
    const auto stop = Ranktap({"stop", job.path()});
    EXPECT_THAT(stop->output(),
                HasSubstr("window " + std::to_string(window) + ": off on 2 processes"));
  }
  job.End();
  // Nothing was pushed inside the windows: there need not be a trace. Where there is one, it says
  // when capture was on.
  for (const Trace& trace : job.run().traces) EXPECT_EQ(WindowsOf(trace).size(), 2u);
}

// A profiler of the program's own that subscribes once and stays has the subscription with us.
TEST(ControlTest, WindowsGoOnBesideAClientThatKeepsItsSubscription) {
  LiveRun job(1, agent_test::Host("profiles_itself") + " 20 2 100 kineto @$STOP", {"--dormant"},
              {{"RANKTAP_RETURN_MS", "20"}});
  ASSERT_TRUE(job.AwaitRanks(1));
  constexpr int kWindows = 3;
  for (int window = 1; window <= kWindows; ++window) {
    ASSERT_TRUE(Ranktap({"start", job.path(), "--level", "kernels"})->exited_with(0));
    EXPECT_TRUE(job.AwaitLevel("kernels"));
    ASSERT_TRUE(Ranktap({"stop", job.path()})->exited_with(0));
    EXPECT_TRUE(job.AwaitLevel("dormant"));
  }
  job.End();
  EXPECT_TRUE(job.process().exited_with(0)) << job.process().output();
  ASSERT_EQ(job.run().traces.size(), 1u);
  const Trace& trace = job.run().traces[0];
  const std::vector<Window> windows = WindowsOf(trace);
  ASSERT_EQ(windows.size(), size_t{kWindows});
  size_t launched_before = 0;
  int64_t last_end = 0;
  for (const Window& window : windows) {
    size_t launched = 0, without = 0;
    for (size_t i = 0; i < trace.kernels.size(); ++i) {
      const int64_t start = trace.kernels.start[i] + trace.realtime_offset_ns;
      if (start <= last_end || start > window.end) continue;
      if (trace.kernels.launch[i] != collector::kNone) {
        launched += start >= window.begin ? 1 : 0;
      } else {
        EXPECT_EQ(launched, 0u) << "only what was launched before the window lacks its launch";
        ++without;
      }
    }
    EXPECT_GT(launched, without);
    launched_before += without;
    last_end = window.end;
  }
  EXPECT_EQ(std::ranges::count(trace.kernels.launch, collector::kNone),
            static_cast<ptrdiff_t>(launched_before))
      << "after the last window each has its launch";
  EXPECT_EQ(Subscriptions(job, trace, true), 1)
      << "the client's, from its first session to the end";
  EXPECT_EQ(Subscriptions(job, trace, false), 0);
}

// One of the second API's, which comes and goes while windows do.
TEST(ControlTest, WindowsGoOnBesideAClientOfTheSecondApiThatLetsOthersSubscribe) {
  const std::string fakes = standin_test::BuildPath("fakes");
  if (!std::filesystem::exists(fakes + "/cupti-13.5/libcupti.so.13")) {
    GTEST_SKIP() << "no stand-in for CUPTI 13.5: run scripts/setup";
  }
  LiveRun job(1, agent_test::Host("second_client") + " 4 @$STOP", {"--dormant"},
              {{"RANKTAP_SHARE_CUPTI", "1"}, {"LD_LIBRARY_PATH", fakes + "/cupti-13.5:" + fakes}});
  ASSERT_TRUE(job.AwaitRanks(1));
  constexpr int kWindows = 3;
  for (int window = 1; window <= kWindows; ++window) {
    ASSERT_TRUE(Ranktap({"start", job.path(), "--level", "kernels"})->exited_with(0));
    EXPECT_TRUE(job.AwaitLevel("kernels"));
    ASSERT_TRUE(Ranktap({"stop", job.path()})->exited_with(0));
    EXPECT_TRUE(job.AwaitLevel("dormant"));
  }
  job.End();
  EXPECT_TRUE(job.process().exited_with(0)) << job.process().output();
  ASSERT_EQ(job.run().traces.size(), 1u);
  const Trace& trace = job.run().traces[0];
  const std::vector<Window> windows = WindowsOf(trace);
  ASSERT_EQ(windows.size(), size_t{kWindows});
  for (const Window& window : windows) {
    const auto is_inside = [&](int64_t start) {
      return start + trace.realtime_offset_ns >= window.begin &&
             start + trace.realtime_offset_ns <= window.end;
    };
    EXPECT_TRUE(std::ranges::any_of(trace.kernels.start, is_inside));
  }
}

// Before 13.0 U1 the kernel kind stays on between windows: what it gives then is nobody's.
class KernelKindTest : public testing::TestWithParam<const char*> {};

TEST_P(KernelKindTest, TwoWindowsHoldTheirOwnKernelsAloneEachWithItsLaunch) {
  LiveRun job(1, 500, {"--dormant"}, {{"RANKTAP_STANDIN_CUPTI_VERSION", GetParam()}});
  ASSERT_TRUE(job.AwaitRanks(1));
  for (int window = 1; window <= 2; ++window) {
    (void)Ranktap({"start", job.path()});
    ASSERT_TRUE(job.AwaitLevel("kernels"));
    (void)Ranktap({"stop", job.path()});
    ASSERT_TRUE(job.AwaitLevel("dormant"));
  }
  job.End();
  ASSERT_EQ(job.run().traces.size(), 1u);
  const Trace& trace = job.run().traces[0];
  EXPECT_EQ(WindowsOf(trace).size(), 2u);
  EXPECT_GT(trace.kernels.size(), 10u);
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    EXPECT_NE(trace.kernels.launch[i], collector::kNone) << i;
  }
  const auto check = collector::CheckRun(job.path());
  ASSERT_TRUE(check.ok());
  EXPECT_TRUE(check->ok());
}

INSTANTIATE_TEST_SUITE_P(Cupti, KernelKindTest, testing::Values("27", "130000", "130001"));

// The program made its graph before the window; the stand-in tells nothing of such a graph as a
// whole, and of its nodes unless it is told to.
// A CUPTI that may record graphs as a whole.
const Environment kNewCupti = {{"RANKTAP_STANDIN_CUPTI_VERSION", "130500"}};

std::string NotesOfOldGraph(const char* level, const Environment& environment) {
  LiveRun job(1, agent_test::Host("graph_flood") + " 5 @$STOP", {"--dormant"}, environment);
  EXPECT_TRUE(job.AwaitRanks(1));
  (void)Ranktap({"start", job.path(), "--level", level, "--duration", "1s"});
  EXPECT_TRUE(job.AwaitLevel(level));
  EXPECT_TRUE(job.AwaitLevel("dormant"));
  job.End();
  std::string notes;
  for (const Trace& trace : job.run().traces) {
    EXPECT_EQ(WindowsOf(trace).size(), 1u);
    EXPECT_GT(trace.api_calls.size(), 0u);
    for (const std::string& note : trace.hello.notes()) notes += note + "\n";
  }
  return notes;
}

TEST(ControlTest, AWindowWithoutTheGraphsThatTheProgramMadeBeforeItSaysSo) {
  EXPECT_THAT(NotesOfOldGraph("kernels", kNewCupti), HasSubstr("launches of CUDA graphs"));
  EXPECT_EQ(NotesOfOldGraph("full", {}), "");
  EXPECT_THAT(NotesOfOldGraph("full", {{"RANKTAP_STANDIN_OLD_GRAPHS", "silent"}}),
              HasSubstr("launches of CUDA graphs"));
}

// The stand-in's CUPTI 13.0 does, beside whole graphs, as the real one beside an H100.
TEST(ControlTest, AWindowEndsNoProgramThatMadeItsGraphsBeforeItAndHasTheirNodes) {
  EXPECT_EQ(NotesOfOldGraph("kernels", {}), "");
}

// CUPTI cannot go back from whole graphs to their nodes.
TEST(ControlTest, AWindowAtFullAfterOneAtKernelsSaysThatItLacksTheNodesOfGraphs) {
  LiveRun job(1, 500, {"--dormant"}, kNewCupti);
  ASSERT_TRUE(job.AwaitRanks(1));
  for (const char* level : {"kernels", "full"}) {
    (void)Ranktap({"start", job.path(), "--level", level});
    ASSERT_TRUE(job.AwaitLevel(level));
    (void)Ranktap({"stop", job.path()});
    ASSERT_TRUE(job.AwaitLevel("dormant"));
  }
  job.End();
  ASSERT_EQ(job.run().traces.size(), 1u);
  const Trace& trace = job.run().traces[0];
  const std::vector<Window> windows = WindowsOf(trace);
  ASSERT_EQ(windows.size(), 2u);
  std::vector<Gap> lacking;
  std::ranges::copy_if(trace.gaps, std::back_inserter(lacking),
                       [](const Gap& gap) { return gap.source == "full"; });
  ASSERT_EQ(lacking.size(), 1u);
  EXPECT_THAT(lacking[0].detail, HasSubstr("graphs are recorded as a whole"));
  EXPECT_GE(lacking[0].end + trace.realtime_offset_ns, windows[1].begin);
  EXPECT_GE(lacking[0].start + trace.realtime_offset_ns, windows[0].end);
}

TEST(ControlTest, StartSaysWhichStepsOfTheWindowAnExplicitScheduleLeavesWithoutOperators) {
  struct Case {
    const char *schedule, *level, *said;
  };
  // Where schedule.py records the first step: wait + warmup + skip-first, without a wait where
  // skip-first-wait is set.
  const Case cases[] = {
      {"wait=5,warmup=2,active=1", "full",
       "run --schedule wait=5,warmup=2,active=1 records no operators in the window's first 7 "
       "steps; "
       "a window that ends before then has none\n"},
      {"wait=1", "full", "in the window's first step; a window"},
      {"skip_first=3,wait=9,skip-first-wait=1", "full", "in the window's first 3 steps;"},
      {"wait=5", "kernels",
       "run --schedule wait=5 names steps, but level kernels records no operators\n"},
      {"active=2,repeat=0", "full", ""},
      {"", "full", ""}};
  for (const Case& one : cases) {
    std::vector<std::string> options = {"--level", "full", "--dormant"};
    if (*one.schedule != '\0') options.insert(options.end(), {"--schedule", one.schedule});
    LiveRun job(2, 100, options);
    ASSERT_TRUE(job.AwaitRanks(2));
    const auto start = Ranktap({"start", job.path(), "--level", one.level});
    EXPECT_TRUE(start->exited_with(0)) << start->errors();
    EXPECT_THAT(start->output(), HasSubstr(one.said));
    const auto lines = std::count(start->output().begin(), start->output().end(), '\n');
    EXPECT_EQ(lines, *one.said == '\0' ? 1 : 2) << "once for both ranks: " << start->output();
    EXPECT_EQ(start->errors(), "");
  }
}

TEST(ControlTest, SignalsBeginAndEndAWindowAsTheVerbsDo) {
  LiveRun job(2, 500, {"--level", "ranges", "--dormant", "--window-signals"});
  ASSERT_TRUE(job.AwaitRanks(2));
  const std::string text = Ranktap({"status", job.path()})->output();
  const size_t at = text.rfind(", pid ");
  ASSERT_NE(at, std::string::npos) << text;
  const pid_t collector = std::stoi(text.substr(at + 6));
  for (int window = 1; window <= 2; ++window) {
    ASSERT_EQ(::kill(collector, SIGUSR1), 0);
    EXPECT_TRUE(job.AwaitLevel("ranges"));
    EXPECT_EQ(job.Status().at(1)["window"], window);
    ASSERT_EQ(::kill(collector, SIGUSR2), 0);
    EXPECT_TRUE(job.AwaitLevel("dormant"));
  }
  job.End();
  EXPECT_TRUE(job.process().exited_with(0)) << "SIGUSR1 and SIGUSR2 end the shell, had it got them";
}

// The ranks come when the window is known already, and the level at its end is that before it.
TEST(ControlTest, RunsOwnDelayAndDurationAreAWindowOnEveryRank) {
  LiveRun job(2, 500, {"--delay", "5s", "--duration", "3s"});
  ASSERT_TRUE(job.AwaitLevel("kernels"));
  ASSERT_TRUE(job.AwaitLevel("dormant"));
  job.End();
  ASSERT_EQ(job.run().traces.size(), 2u);
  for (const Trace& trace : job.run().traces) {
    EXPECT_GT(trace.kernels.size(), 0u);
    EXPECT_EQ(WindowsOf(trace).size(), 1u);
  }
  const collector::Table windows = collector::TabulateWindows(job.run());
  ASSERT_EQ(windows.rows.size(), 1u);
  EXPECT_EQ(std::get<int64_t>(windows.rows[0][1]), 2);
}

TEST(ControlTest, AWindowThatBeginsWhileARankLoadsCuptiIsCapturedThereToo) {
  const std::string gate = testing::TempDir() + "/gate." + std::to_string(::getpid());
  LiveRun job(1, 500, {"--dormant"},
              {{"RANKTAP_CUPTI", agent_test::BuildPath("fakes/gated/libgated_cupti.so")},
               {"RANKTAP_STANDIN_GATE", gate}});
  ASSERT_TRUE(job.AwaitRanks(1));
  EXPECT_TRUE(Ranktap({"start", job.path()})->exited_with(0));
  ASSERT_TRUE(job.AwaitLevel("kernels"));
  std::ofstream(gate) << "open";
  EXPECT_TRUE(WaitUntil([&] { return job.Status().at(0)["events"].get<int64_t>() > 100; }));
  job.End();
  ::unlink(gate.c_str());
  ASSERT_EQ(job.run().traces.size(), 1u);
  EXPECT_GT(job.run().traces[0].kernels.size(), 0u);
}

TEST(ControlTest, ARankThatDiesBeforeTheWindowIsNamedAndTheOthersBegin) {
  LiveRun job(3, 500, {"--dormant"});
  ASSERT_TRUE(job.AwaitRanks(3));
  std::unique_ptr<SimulatedRun> start;
  std::jthread starter([&] { start = Ranktap({"start", job.path(), "--delay", "3s"}); });
  // Told, and not begun.
  ASSERT_TRUE(WaitUntil([&] {
    const auto rows = job.Status();
    return rows.contains(1) && rows.at(1)["window"] == 1;
  }));
  EXPECT_EQ(kill(std::stoi(job.Status().at(1)["pid"].get<std::string>()), SIGKILL), 0);
  starter.join();
  EXPECT_TRUE(start->exited_with(0));
  EXPECT_THAT(start->output(), HasSubstr("kernels on 2 processes"));
  EXPECT_THAT(start->errors(), HasSubstr("rank 1 ended before the window was confirmed"));
  ASSERT_TRUE(job.AwaitLevel("kernels"));
  ASSERT_TRUE(WaitUntil([&] { return job.Status().at(0)["events"] > 0; }));
  job.End();
  EXPECT_NE(job.TraceOf(0), nullptr);
  EXPECT_EQ(job.TraceOf(1), nullptr) << "it recorded nothing, so it is no rank of the run";
}

TEST(ControlTest, StatusCountsWhatComesAndWhatItCosts) {
  LiveRun job(1, 2000, {});
  ASSERT_TRUE(WaitUntil([&] {
    const auto rows = job.Status();
    return rows.contains(0) && rows.at(0)["events_per_second"] > 0 &&
           rows.at(0)["callbacks_percent"].is_number() && rows.at(0)["callbacks_percent"] > 0;
  }));
  const Json row = job.Status().at(0);
  EXPECT_EQ(row["state"], "connected");
  EXPECT_EQ(row["level"], "kernels");
  EXPECT_EQ(row["lost"], 0);
  EXPECT_GT(row["bytes"], 0);
  EXPECT_LT(row["callbacks_percent"], 100);
  const auto text = Ranktap({"status", job.path()});
  EXPECT_THAT(text->output(), HasSubstr("run"));
  EXPECT_THAT(text->output(), HasSubstr("collector "));
}

TEST(ControlTest, AnUnknownJobIsRefusedAndThoseThatAreThereAreNamed) {
  LiveRun job(1, 100, {"--dormant"});
  ASSERT_TRUE(job.AwaitRanks(1));
  for (const char* verb : {"start", "stop", "status"}) {
    const auto refused = Ranktap({verb, "no-such-job"});
    EXPECT_TRUE(refused->exited_with(1));
    EXPECT_THAT(refused->errors(), HasSubstr("no process of 'no-such-job' is connected here; "
                                             "there are: run"));
  }
}

TEST(ControlTest, WrongUsageIsStatusTwoAndSaysWhatToWrite) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"start", "--level", "dormant"}, "no level 'dormant' to start at"},
      {{"start", "--duration", "soon"}, "--duration 'soon' is not a time; write 10"},
      {{"start", "--duration", "0"}, "--duration 0 captures nothing"},
      {{"start", "--at", "5"}, "--at '5' is not a future time"},
      {{"start", "--at", "9", "--delay", "1"}, "--delay excludes --at"},
      {{"start", "--no-such"}, "--no-such"},
      {{"stop", "--level", "full"}, "--level"},
      {{"status", "--format", "html"}, "no format 'html'"},
      {{"run", "--dormant", "--delay", "1", "--", "true"}, "--dormant waits for `ranktap start`"}};
  for (const auto& [arguments, message] : cases) {
    const auto wrong = Ranktap(arguments);
    EXPECT_TRUE(wrong->exited_with(2)) << message;
    EXPECT_THAT(wrong->errors(), HasSubstr(message));
  }
  const auto nobody = Ranktap({"status", "--socket", "/nonexistent/socket"});
  EXPECT_TRUE(nobody->exited_with(1));
  EXPECT_THAT(nobody->errors(), HasSubstr("/nonexistent/socket: no collector answers there"));
}

}  // namespace
}  // namespace ranktap::control_test
