// What the agent does with a CUPTI that is not as it likes it: one that gives correlation ids only
// with API records on, in each version; one that gives times of another clock, ends by itself or
// gives nothing; and NVIDIA's own libraries, which need a driver and have none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::Trace;
using testing::HasSubstr;

// Of the only file in `folder` that is a libcupti.
std::optional<std::string> LibraryIn(const std::string& folder) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().filename().string().starts_with("libcupti.so")) return entry.path().string();
  }
  return std::nullopt;
}

std::string NameOf(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '.', '_');
  return name;
}

class CorrelationTest : public testing::TestWithParam<const char*> {};

// The first launches have no id yet: after them every kernel has its launch.
TEST_P(CorrelationTest, ApiRecordsAreSwitchedOnWhereIdsComeOnlyWithThem) {
  const std::string version = GetParam();
  const std::string folder = BuildPath(version == "13.0" ? "fakes" : "fakes/cupti-" + version);
  if (!LibraryIn(folder))
    GTEST_SKIP() << "no stand-in for CUPTI " << version << ": run scripts/setup";
  const TracedRun traced({Host("launches"), "2000", "4000"},
                         {{"LD_LIBRARY_PATH", folder + ":" + BuildPath("fakes")},
                          {"RANKTAP_STANDIN_CORRELATION", "api-kinds"}});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  ASSERT_EQ(trace.kernels.size(), 2000u);
  size_t without_id = 0;
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    if (trace.kernels.correlation[i] == 0) {
      ++without_id;
    } else {
      EXPECT_NE(trace.kernels.launch[i], collector::kNone);
    }
  }
  EXPECT_LT(without_id, 2000u);
  EXPECT_THAT(trace.hello.notes(), testing::Contains(HasSubstr("only with API records on")));
  EXPECT_EQ(traced.Problems(), "");
}

INSTANTIATE_TEST_SUITE_P(Cupti, CorrelationTest,
                         testing::Values("11.8", "12.0", "12.4", "12.8", "12.9", "13.0", "13.4",
                                         "13.5"),
                         NameOf);

std::string CuptiVersionIn(const Trace& trace) {
  for (const v1::Library& library : trace.hello.libraries()) {
    if (library.name() == "cupti") return library.version();
  }
  return {};
}

TEST(LateVersionTest, OneThatKnowsItsVersionOnceSubscribedIsAskedAgain) {
  const TracedRun usual({Host("launches"), "50"});
  const TracedRun late({Host("launches"), "50"}, {{"RANKTAP_STANDIN_LATE_VERSION", "1"}});
  ASSERT_EQ(usual.run().traces.size(), 1u) << usual.load_problem();
  ASSERT_EQ(late.run().traces.size(), 1u) << late.load_problem();
  const Trace& trace = late.run().traces[0];
  EXPECT_EQ(CuptiVersionIn(trace), CuptiVersionIn(usual.run().traces[0]));
  EXPECT_EQ(trace.kernels.size(), 50u);
  EXPECT_EQ(std::ranges::count(trace.kernels.launch, collector::kNone), 0);
  EXPECT_EQ(trace.hello.notes_size(), 0);
  EXPECT_EQ(late.Problems(), "");
}

// As the stand-in is from 13.3 on. 13.0's records end earlier, and its windows end otherwise.
TEST(LateVersionTest, OneOf133IsTakenForWhatItIs) {
  const TracedRun late({Host("launches"), "50"}, {{"RANKTAP_STANDIN_CUPTI_VERSION", "130401"}});
  ASSERT_EQ(late.run().traces.size(), 1u) << late.load_problem();
  EXPECT_EQ(CuptiVersionIn(late.run().traces[0]), "130401");
  EXPECT_EQ(late.run().traces[0].kernels.size(), 50u);
  EXPECT_EQ(late.run().traces[0].hello.notes_size(), 0);
  EXPECT_EQ(late.Problems(), "");
}

bool SaysThatFlushesGrow(const char* version) {
  const TracedRun traced({Host("launches"), "800", "300"},
                         {{"RANKTAP_STANDIN_CUPTI_VERSION", version},
                          {"RANKTAP_STANDIN_FLUSH_GROWS_US", "100"},
                          {"RANKTAP_FLUSH_MS", "10"}});
  if (traced.run().traces.size() != 1) throw std::runtime_error(traced.load_problem());
  EXPECT_EQ(traced.run().traces[0].kernels.size(), 800u);
  EXPECT_EQ(traced.Problems(), "");
  const auto& notes = traced.run().traces[0].hello.notes();
  return std::ranges::any_of(notes, [](const std::string& note) {
    return note.find("three times the CPU") != std::string::npos;
  });
}

TEST(GrowingFlushTest, IsNotedWhereTheVersionIsKnownForIt) {
  EXPECT_TRUE(SaysThatFlushesGrow("130001"));
  EXPECT_FALSE(SaysThatFlushesGrow("130401"));
}

// What a run with RANKTAP_HARDWARE_EVENTS notes.
std::string NotesOfHardwareEvents(Environment environment) {
  environment.push_back({"RANKTAP_HARDWARE_EVENTS", "1"});
  const TracedRun traced({Host("launches"), "200"}, environment);
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  if (traced.run().traces.size() != 1) return traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  EXPECT_EQ(trace.kernels.size(), 200u);
  const int pid = static_cast<int>(trace.info.pid);
  EXPECT_TRUE(traced.process().Truth(pid, "violation").empty()) << "asked for before any kind";
  EXPECT_EQ(traced.Problems(), "");
  std::string notes;
  for (const std::string& note : trace.hello.notes()) notes += note + "\n";
  return notes;
}

constexpr std::pair<const char*, const char*> kNewCupti = {"RANKTAP_STANDIN_CUPTI_VERSION",
                                                           "130401"};

TEST(HardwareEventsTest, AreAskedForBeforeAnyKindAndItIsSaid) {
  const std::string notes =
      NotesOfHardwareEvents({kNewCupti, {"RANKTAP_STANDIN_HARDWARE_EVENTS", "0"}});
  EXPECT_THAT(notes, HasSubstr("timed by the hardware event system"));
  EXPECT_THAT(notes, testing::Not(HasSubstr("no hardware event system")));
}

TEST(HardwareEventsTest, OnesThatCuptiOrThePlaceRefusesAreNotUsedForThatReason) {
  EXPECT_THAT(NotesOfHardwareEvents({}), HasSubstr("before 13.4 U1 corrupts the heap"));
  EXPECT_THAT(NotesOfHardwareEvents({kNewCupti}), HasSubstr("this device has none"));
  EXPECT_THAT(NotesOfHardwareEvents({kNewCupti, {"RANKTAP_STANDIN_HARDWARE_EVENTS", "45"}}),
              HasSubstr("under WSL"));
  EXPECT_THAT(NotesOfHardwareEvents({kNewCupti, {"CUDA_MPS_PIPE_DIRECTORY", "/tmp"}}),
              HasSubstr("under MPS"));
}

TEST(HardwareEventsTest, OnesThatCuptiGivesUpOnceThereIsADeviceAreSaid) {
  EXPECT_THAT(NotesOfHardwareEvents({kNewCupti,
                                     {"RANKTAP_STANDIN_HARDWARE_EVENTS", "0"},
                                     {"RANKTAP_STANDIN_HARDWARE_EVENTS_LATE", "43"}}),
              HasSubstr("no hardware event system: CUPTI does not do so on a MIG device"));
}

// In 20 ms or so: longer than any turn of the drain's, shorter than its patience at the end.
constexpr const char* kLateUs = "20000";

TEST(LateBuffersTest, WhatComesAfterTheLastFlushIsInTheTrace) {
  const TracedRun traced({Host("launches"), "50"}, {{"RANKTAP_STANDIN_LATE_US", kLateUs}});
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  EXPECT_EQ(traced.run().traces[0].kernels.size(), 50u);
  EXPECT_EQ(SumWriters(traced.run().traces[0]).lost, 0u);
  EXPECT_EQ(traced.Problems(), "");
}

TEST(LateBuffersTest, WhatNeverComesIsDeclaredThoughTheFlushHasSucceeded) {
  const TracedRun traced({Host("launches"), "50"}, {{"RANKTAP_STANDIN_LATE_US", "3600000000"}});
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  EXPECT_EQ(traced.run().traces[0].kernels.size(), 0u);
  EXPECT_EQ(SumWriters(traced.run().traces[0]).lost, 50u);
  EXPECT_EQ(traced.Problems(), "");
}

// It frees what comes to it: a buffer of ours would end the program (free(): invalid pointer).
TEST(LateBuffersTest, TheProgramsClientGetsNoBufferOfOurs) {
  const TracedRun traced({Host("profiles_itself"), "20", "3", "250", "kinds"},
                         {{"RANKTAP_RETURN_MS", "20"}, {"RANKTAP_STANDIN_LATE_US", kLateUs}});
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().output();
  EXPECT_THAT(traced.process().output(), HasSubstr("own_kernels=60 "));
  EXPECT_THAT(traced.process().output(), HasSubstr("strangers=0 "));
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  EXPECT_EQ(traced.run().traces[0].kernels.size(), 80u);
  EXPECT_EQ(SumWriters(traced.run().traces[0]).lost, 0u);
  EXPECT_EQ(traced.Problems(), "");
}

size_t UntimedKernels(const Trace& trace) {
  return static_cast<size_t>(std::ranges::count(trace.kernels.start, collector::kUntimed));
}

TEST(DoubtfulCuptiTest, WorkWithATimeOfAnotherClockIsUntimedAndSaid) {
  const TracedRun traced({Host("launches"), "200"}, {{"RANKTAP_STANDIN_TICK_TIMES_EVERY", "2"}});
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  EXPECT_EQ(trace.kernels.size(), 200u);
  EXPECT_GT(UntimedKernels(trace), 50u);
  EXPECT_LT(UntimedKernels(trace), 150u);
  constexpr int64_t kHourNs = 3'600'000'000'000;
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    if (trace.kernels.start[i] == collector::kUntimed) continue;
    EXPECT_LT(std::abs(trace.kernels.start[i] - trace.first_ns), kHourNs);
  }
  EXPECT_THAT(trace.hello.notes(), testing::Contains(HasSubstr("not of its clock")));
  EXPECT_EQ(traced.Problems(), "");
}

TEST(DoubtfulCuptiTest, ACuptiThatEndsByItselfLeavesAGapWithItsMessage) {
  const TracedRun traced({Host("launches"), "2000", "4000"},
                         {{"RANKTAP_STANDIN_FATAL_AFTER", "500"}});
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  const auto says_why = [](const collector::Gap& gap) {
    return gap.reason == v1::Gap::REASON_ERROR && gap.open &&
           gap.detail.find("told to break down") != std::string::npos;
  };
  EXPECT_EQ(std::ranges::count_if(trace.gaps, says_why), 1);
  EXPECT_THAT(trace.hello.notes(), testing::Contains(HasSubstr("CUPTI has ended by itself")));
  EXPECT_EQ(traced.Problems(), "");
}

// 12 s: the agent's patience is 10.
TEST(DoubtfulCuptiTest, LaunchesThatNoRecordComesForAreNoted) {
  const TracedRun traced({Host("launches"), "1200", "100"}, {{"RANKTAP_STANDIN_LOSE_EVERY", "1"}});
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  EXPECT_THAT(traced.run().traces[0].hello.notes(),
              testing::Contains(HasSubstr("no kernel for 10 s")));
}

// Each takes its time on the drain's thread, and the program does not wait for it.
TEST(DoubtfulCuptiTest, SlowCallsIntoCuptiCostNoKernel) {
  const TracedRun traced({Host("launches"), "600", "300"},
                         {{"RANKTAP_STANDIN_HANG_IN",
                           "cuptiActivityFlushAll:300,cuptiActivityEnable:10,cuptiSubscribe:50"}});
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  EXPECT_EQ(trace.kernels.size(), 600u);
  EXPECT_EQ(std::ranges::count(trace.kernels.launch, collector::kNone), 0);
  EXPECT_EQ(traced.Problems(), "");
}

// CUPTI's buffers on the device had run out: all but the times is there.
TEST(DoubtfulCuptiTest, WorkThatCuptiCouldNotTimeCountsAsUntimed) {
  const TracedRun traced({Host("launches"), "200"}, {{"RANKTAP_STANDIN_ZERO_TIMES_EVERY", "2"}});
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  EXPECT_EQ(trace.kernels.size(), 200u);
  EXPECT_GT(UntimedKernels(trace), 50u);
  EXPECT_LT(UntimedKernels(trace), 150u);
  EXPECT_EQ(std::ranges::count(trace.kernels.launch, collector::kNone), 0);
  EXPECT_EQ(traced.Problems(), "");
}

// 8 s: the flush hangs from the first second on, and the agent's patience is 5.
TEST(DoubtfulCuptiTest, ACallIntoCuptiThatHangsIsNotedByNameAndTheProgramGoesOn) {
  const TracedRun traced({Host("launches"), "800", "100"},
                         {{"RANKTAP_STANDIN_HANG_IN", "cuptiActivityFlushAll:20000"}});
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  EXPECT_THAT(traced.run().traces[0].hello.notes(),
              testing::Contains(HasSubstr("CUPTI hangs in cuptiActivityFlushAll")));
  EXPECT_EQ(traced.Problems(), "");
}

TEST(DoubtfulCuptiTest, ACuptiThatIsLinkedIntoAnotherLibraryIsSaid) {
  const TracedRun traced({Host("launches"), "20"}, {{"LD_PRELOAD", Host("static_cupti.so")}});
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  EXPECT_EQ(traced.run().traces[0].kernels.size(), 20u);
  EXPECT_THAT(traced.run().traces[0].hello.notes(),
              testing::Contains(HasSubstr("static_cupti.so: its client and we")));
  const TracedRun without({Host("launches"), "20"});
  ASSERT_EQ(without.run().traces.size(), 1u) << without.load_problem();
  EXPECT_THAT(without.run().traces[0].hello.notes(),
              testing::Not(testing::Contains(HasSubstr("linked into"))));
}

class RealLibraryTest : public testing::TestWithParam<const char*> {};

TEST_P(RealLibraryTest, WithoutADriverItIsGivenUpWithAReasonAndRangesGoOn) {
  const std::string version = GetParam();
  const auto library = LibraryIn(std::string(RANKTAP_CACHE) + "/cupti-" + version + "/lib");
  if (!library) GTEST_SKIP() << "CUPTI " << version << " is not there: run scripts/setup";
  const std::vector<std::string> command = {Host("launches"), "20"};
  const TracedRun traced(command, {{"RANKTAP_CUPTI", *library}});
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  EXPECT_THAT(traced.process().output(), HasSubstr("launches=20 ranges=1 failed=0"));
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  EXPECT_EQ(trace.ranges.size(), 1u);
  EXPECT_EQ(trace.kernels.size(), 0u);
  EXPECT_THAT(trace.hello.notes(), testing::Contains(HasSubstr("no kernels: ")));
  EXPECT_EQ(traced.Problems(), "");
}

INSTANTIATE_TEST_SUITE_P(Cupti, RealLibraryTest,
                         testing::Values("11.8", "12.0", "12.4", "12.8", "12.9", "13.2", "13.4",
                                         "13.5"),
                         NameOf);

// NVIDIA's 13.2 under a driver that it does not like: whatever is called ends the process.
class DeadlyCuptiTest : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(DeadlyCuptiTest, TheProgramEndsAsBareAndItIsSaidWhy) {
  const auto library = LibraryIn(std::string(RANKTAP_CACHE) + "/cupti-13.2/lib");
  if (!library) GTEST_SKIP() << "CUPTI 13.2 is not there: run scripts/setup";
  // 6 s: the process that tries it dies in one or two.
  const std::vector<std::string> command = {Host("launches"), "600", "100"};
  const TracedRun traced(command, {{"RANKTAP_CUPTI", *library}}, GetParam());
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  EXPECT_THAT(traced.process().output(), HasSubstr("launches=600 ranges=1 failed=0"));
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  EXPECT_EQ(trace.ranges.size(), 1u);
  EXPECT_EQ(trace.kernels.size(), 0u);
  EXPECT_THAT(trace.hello.notes(),
              testing::Contains(HasSubstr("does not start here and would end the program")));
  EXPECT_EQ(traced.Problems(), "");
}

INSTANTIATE_TEST_SUITE_P(Ways, DeadlyCuptiTest,
                         testing::Values(std::vector<std::string>{},
                                         std::vector<std::string>{"--no-preload"},
                                         std::vector<std::string>{"--level", "full"}));

// The stand-in with 13.2's exports starts: it is armed once a process has come out alive.
TEST(TriedCuptiTest, OneThatStartsIsUsedFromTheAnswerOn) {
  const TracedRun traced({Host("launches"), "3000", "500"},
                         {{"RANKTAP_CUPTI", BuildPath("fakes/on-trial/libcupti_on_trial.so")}});
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  EXPECT_GT(trace.kernels.size(), 100u);
  EXPECT_EQ(std::ranges::count(trace.kernels.launch, collector::kNone), 0);
  EXPECT_THAT(trace.hello.notes(), testing::Not(testing::Contains(HasSubstr("no kernels"))));
  const auto waits = [](const collector::Gap& gap) {
    return !gap.open && gap.detail.find("tried in another process") != std::string::npos;
  };
  EXPECT_EQ(std::ranges::count_if(trace.gaps, waits), 1);
  EXPECT_EQ(traced.Problems(), "");
}

}  // namespace
}  // namespace ranktap::agent_test
