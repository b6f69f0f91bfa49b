// Programs that use CUPTI themselves, as torch.profiler does: they get what they get without us,
// and our trace has a gap with its reason for each time, and everything outside of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::Gap;
using collector::Trace;
using testing::HasSubstr;

constexpr int kLaunches = 20, kSessions = 3;
// The program's pause is long beside the time after which we return.
constexpr const char* kPauseMs = "250";
const Environment kReturnSoon = {{"RANKTAP_RETURN_MS", "20"}};

std::vector<std::string> Program(const std::string& way) {
  return {Host("profiles_itself"), std::to_string(kLaunches), std::to_string(kSessions), kPauseMs,
          way};
}

std::vector<const Gap*> GapsForOthers(const Trace& trace) {
  std::vector<const Gap*> gaps;
  for (const Gap& gap : trace.gaps) {
    if (gap.reason == v1::Gap::REASON_OTHER_PROFILER) gaps.push_back(&gap);
  }
  return gaps;
}

// A session of the program is a range "session".
std::vector<std::pair<int64_t, int64_t>> SessionsOf(const Trace& trace) {
  std::vector<std::pair<int64_t, int64_t>> sessions;
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    if (trace.dictionary.String(trace.ranges.name[i]) == "session") {
      sessions.emplace_back(trace.ranges.start[i], trace.ranges.end[i]);
    }
  }
  return sessions;
}

// Correlation ids of the launches whose call lies outside of every gap, by the truth.
std::set<uint32_t> LaunchedOutside(const TracedRun& run, const Trace& trace) {
  std::set<uint32_t> outside;
  for (const Json& call : run.process().Truth(static_cast<int>(trace.info.pid), "api")) {
    if (call["nested"] ||
        call["name"].get<std::string>().find("LaunchKernel") == std::string::npos) {
      continue;
    }
    const auto enter = call["enter_raw_ns"].get<int64_t>(),
               exit = call["exit_raw_ns"].get<int64_t>();
    const bool in_gap = std::ranges::any_of(trace.gaps, [enter, exit](const Gap& gap) {
      return exit >= gap.start && (gap.open || enter <= gap.end);
    });
    if (!in_gap) outside.insert(call["correlation"].get<uint32_t>());
  }
  return outside;
}

// The way of loading ("" is that of `ranktap run`) and the way the program uses CUPTI.
class ClientTest : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(ClientTest, TheProgramsProfileIsWholeAndOursHasAGapForEachSessionAndAllTheRest) {
  const auto [loading, way] = GetParam();
  const SimulatedRun bare(Program(way), {});
  std::vector<std::string> options;
  if (loading[0] != '\0') options.emplace_back(loading);
  const TracedRun traced(Program(way), kReturnSoon, options);
  ASSERT_TRUE(bare.exited_with(0)) << bare.output();
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().output();
  EXPECT_EQ(traced.process().output(), bare.output());
  EXPECT_EQ(traced.process().errors(), bare.errors());

  EXPECT_EQ(traced.Problems(), "");
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  const std::vector<const Gap*> gaps = GapsForOthers(trace);
  const auto sessions = SessionsOf(trace);
  ASSERT_EQ(sessions.size(), size_t{kSessions});
  for (const auto& [start, end] : sessions) {
    const auto covers = [start, end](const Gap* gap) {
      return gap->start <= end && gap->end >= start;
    };
    EXPECT_EQ(std::ranges::count_if(gaps, covers), 1) << "gaps that this session lies in";
  }
  for (const Gap* gap : gaps) {
    EXPECT_FALSE(gap->open);
    EXPECT_THAT(gap->detail, testing::AnyOf(HasSubstr("the program called cupti"),
                                            HasSubstr("in use by another tool")));
  }
  std::set<uint32_t> kernels;
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    kernels.insert(trace.kernels.correlation[i]);
    // Of a client that came before us we have no callbacks while it is there.
    if (std::string(way) == "subscribed") continue;
    EXPECT_NE(trace.kernels.launch[i], collector::kNone);
  }
  const std::set<uint32_t> outside = LaunchedOutside(traced, trace);
  EXPECT_TRUE(std::ranges::includes(kernels, outside)) << "a launch outside of the gaps is missing";
  EXPECT_GE(outside.size(), size_t{kLaunches}) << "we never came back";
}

INSTANTIATE_TEST_SUITE_P(WaysOfLoading, ClientTest,
                         testing::Combine(testing::Values("", "--no-preload"),
                                          testing::Values("kinds", "lookup", "subscribe",
                                                          "finalize", "subscribed", "kineto",
                                                          "threads")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)[0] == '\0' ? "preload_"
                                                                                 : "environment_") +
                                  std::get<1>(info.param);
                         });

// One subscription for good, as PyTorch's: it is ours to the end, and the program's.
TEST(KinetoTest, BetweenItsSessionsAndAfterThemEverythingIsRecordedWithStacks) {
  const TracedRun traced(Program("kineto"), kReturnSoon, {"--stacks", "all"});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().output();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  const std::vector<const Gap*> gaps = GapsForOthers(trace);
  ASSERT_EQ(gaps.size(), size_t{kSessions});
  // Before the first session, between two, after the last.
  for (int i = 0; i <= kSessions; ++i) {
    const int64_t from = i == 0 ? INT64_MIN : gaps[i - 1]->end;
    const int64_t to = i == kSessions ? INT64_MAX : gaps[i]->start;
    int kernels = 0;
    for (size_t k = 0; k < trace.kernels.size(); ++k) {
      if (trace.kernels.start[k] < from || trace.kernels.start[k] > to) continue;
      ++kernels;
      ASSERT_NE(trace.kernels.launch[k], collector::kNone);
      EXPECT_NE(trace.api_calls.stack.At(trace.kernels.launch[k]), 0u);
    }
    EXPECT_EQ(kernels, kLaunches) << "time " << i;
  }
  EXPECT_EQ(traced.Problems(), "");
}

// A subscription that was there before our hooks cannot be shared, and does not keep us away.
TEST(KinetoTest, OneThatSubscribedBeforeUsLeavesUsKernelsAfterItsFirstSession) {
  const TracedRun traced(Program("early"), kReturnSoon);
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().output();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  EXPECT_EQ(trace.kernels.size(), size_t{kLaunches * kSessions});
  EXPECT_EQ(GapsForOthers(trace).size(), size_t{kSessions});
  EXPECT_THAT(trace.hello.notes(), testing::Contains(HasSubstr("without their launches")));
  EXPECT_EQ(traced.Problems(), "");
}

// What CUPTI makes of a clock that comes after activity differs by version and is not known of all.
// It never learns of the program's: neither profile suffers, whatever it would have made of it.
TEST(KinetoTest, TheProgramsClockSpoilsNeitherProfile) {
  for (const auto& [name, value] :
       Environment{{"RANKTAP_STANDIN_STALE_CLOCK", "3"}, {"RANKTAP_STANDIN_CLOCK_ZEROES", "1"}}) {
    SCOPED_TRACE(name);
    Environment environment = kReturnSoon;
    environment.emplace_back(name, value);
    const TracedRun traced(Program("kineto"), environment);
    EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().output();
    EXPECT_THAT(traced.process().output(), HasSubstr("untimely=0 "));
    ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
    const Trace& trace = traced.run().traces[0];
    EXPECT_EQ(trace.kernels.size(), size_t{kLaunches * (kSessions + 1)});
    EXPECT_EQ(std::ranges::count(trace.kernels.start, collector::kUntimed), 0);
    EXPECT_EQ(traced.Problems(), "");
  }
}

// Of such a kind we do not know where the times are: CUPTI gets the clock, and keeps it.
TEST(KinetoTest, WhereTheClockMustBePassedOnOurWorkAfterItIsUntimedAndSaid) {
  const TracedRun traced(Program("nvlink"), kReturnSoon);
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().output();
  EXPECT_THAT(traced.process().output(), HasSubstr("untimely=0 "));
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  EXPECT_EQ(trace.kernels.size(), size_t{kLaunches * (kSessions + 1)});
  EXPECT_EQ(std::ranges::count(trace.kernels.start, collector::kUntimed), kLaunches * kSessions);
  EXPECT_THAT(trace.hello.notes(), testing::Contains(HasSubstr("not of its clock")));
  EXPECT_EQ(traced.Problems(), "");
}

// The stand-in notes an attribute that changes in the middle of a session.
TEST(LateAttributeTest, OneThatTheProgramSetsWhileWeRecordWaitsForItsNextSession) {
  const SimulatedRun bare(Program("late"), {});
  const TracedRun traced(Program("late"), kReturnSoon);
  EXPECT_EQ(traced.process().output(), bare.output()) << "with the settings of each session";
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const int pid = static_cast<int>(traced.run().traces[0].info.pid);
  EXPECT_TRUE(traced.process().Truth(pid, "violation").empty());
  EXPECT_EQ(traced.Problems(), "");
}

TEST(SecondApiTest, AProgramThatUsesItHasCuptiForItselfFromThenOnAndTheGapSaysWhy) {
  const TracedRun traced(Program("second"), kReturnSoon);
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().output();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  const std::vector<const Gap*> gaps = GapsForOthers(trace);
  ASSERT_EQ(gaps.size(), size_t{kSessions + 1});
  EXPECT_TRUE(gaps.back()->open);
  EXPECT_THAT(gaps.back()->detail, HasSubstr("cuptiSubscribe_v2, and CUPTI has no way back"));
  EXPECT_EQ(trace.kernels.size(), size_t{kLaunches * kSessions}) << "none of the last launches";
  EXPECT_EQ(traced.Problems(), "");
}

// A client of the second API that lets others subscribe, in PyTorch's order of calls.
constexpr const char* kSecondApiVersions[] = {"13.4", "13.5"};

class SecondClientTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(Folder() + "/libcupti.so.13")) {
      GTEST_SKIP() << "no stand-in for CUPTI " << GetParam() << ": run scripts/setup";
    }
  }
  static std::string Folder() { return BuildPath(std::string("fakes/cupti-") + GetParam()); }
  static std::vector<std::string> Program(int launches, int sessions, const std::string& way) {
    return {Host("second_client"), std::to_string(launches), std::to_string(sessions), way};
  }
  static Environment OfVersion(const Environment& more = {}) {
    Environment environment = {{"LD_LIBRARY_PATH", Folder() + ":" + BuildPath("fakes")},
                               {"RANKTAP_STANDIN_HARDWARE_EVENTS", "0"}};
    environment.insert(environment.end(), more.begin(), more.end());
    return environment;
  }
  static void ExpectTheProgramsProfileIsWhole(const TracedRun& traced, const SimulatedRun& bare) {
    ASSERT_TRUE(bare.exited_with(0)) << bare.output() << bare.errors();
    EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
    EXPECT_EQ(traced.process().output(), bare.output());
    EXPECT_EQ(traced.Problems(), "");
    ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
    const int pid = static_cast<int>(traced.run().traces[0].info.pid);
    EXPECT_TRUE(traced.process().Truth(pid, "violation").empty());
  }
  static void ExpectOursIsWholeOutsideOfGaps(const TracedRun& traced) {
    const Trace& trace = traced.run().traces.at(0);
    const std::set<uint32_t> outside = LaunchedOutside(traced, trace);
    std::set<uint32_t> kernels;
    for (size_t i = 0; i < trace.kernels.size(); ++i) {
      kernels.insert(trace.kernels.correlation[i]);
      EXPECT_NE(trace.kernels.start[i], collector::kUntimed);
      if (outside.contains(trace.kernels.correlation[i])) {
        EXPECT_NE(trace.kernels.launch[i], collector::kNone);
      }
    }
    EXPECT_TRUE(std::ranges::includes(kernels, outside))
        << "a launch outside of the gaps is missing";
  }
};

TEST_P(SecondClientTest, WhereWeShareBothGetEveryRecordOfAThousandSessionsAfterOneShortGap) {
  constexpr int kFew = 4, kMany = 1000;
  const auto program = Program(kFew, kMany, "several");
  const SimulatedRun bare(program, OfVersion());
  const TracedRun traced(program, OfVersion({{"RANKTAP_SHARE_CUPTI", "1"}}));
  ExpectTheProgramsProfileIsWhole(traced, bare);
  ExpectOursIsWholeOutsideOfGaps(traced);
  const Trace& trace = traced.run().traces.at(0);
  const std::vector<const Gap*> gaps = GapsForOthers(trace);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_FALSE(gaps[0]->open);
  EXPECT_THAT(gaps[0]->detail, HasSubstr("cuptiSubscribe_v2"));
  EXPECT_GE(trace.kernels.size(), size_t{kFew * kMany}) << "we came back late";
}

TEST_P(SecondClientTest, ItsRecordsShapeItsHardwareEventsAndItsErrorsStayItsOwn) {
  constexpr int kFew = 4, kSome = 5;
  for (const char* way : {"reshaped", "events", "classic"}) {
    SCOPED_TRACE(way);
    const auto program = Program(kFew, kSome, way);
    const SimulatedRun bare(program, OfVersion());
    const TracedRun traced(program, OfVersion({{"RANKTAP_SHARE_CUPTI", "1"}}));
    ExpectTheProgramsProfileIsWhole(traced, bare);
    ExpectOursIsWholeOutsideOfGaps(traced);
    for (const Gap* gap : GapsForOthers(traced.run().traces.at(0))) EXPECT_FALSE(gap->open);
  }
}

TEST_P(SecondClientTest, OneThatLetsNobodyElseInHasCuptiForItselfAndTheGapSaysWhy) {
  const auto program = Program(4, 5, "alone");
  const SimulatedRun bare(program, OfVersion());
  const TracedRun traced(program, OfVersion({{"RANKTAP_SHARE_CUPTI", "1"}}));
  ExpectTheProgramsProfileIsWhole(traced, bare);
  ExpectOursIsWholeOutsideOfGaps(traced);
  const std::vector<const Gap*> gaps = GapsForOthers(traced.run().traces.at(0));
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_TRUE(gaps[0]->open);
  EXPECT_THAT(gaps[0]->detail, HasSubstr("until it lets others subscribe"));
}

TEST_P(SecondClientTest, WithoutTheOptionItHasCuptiForItself) {
  const auto program = Program(4, 5, "several");
  const SimulatedRun bare(program, OfVersion());
  const TracedRun traced(program, OfVersion());
  ExpectTheProgramsProfileIsWhole(traced, bare);
  ExpectOursIsWholeOutsideOfGaps(traced);
  const std::vector<const Gap*> gaps = GapsForOthers(traced.run().traces.at(0));
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_TRUE(gaps[0]->open);
  EXPECT_THAT(gaps[0]->detail, HasSubstr("no way back from its second API"));
}

INSTANTIATE_TEST_SUITE_P(Cupti, SecondClientTest, testing::ValuesIn(kSecondApiVersions),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST(DriverOnlyTest, AThreadThatWasInsideACallWhenWeStoodBackIsHeardAgainAndItsPollsAreCounted) {
  constexpr size_t kQuick = 20;
  const TracedRun traced(
      {Host("driver_only"), std::to_string(kQuick)},
      {{"RANKTAP_RETURN_MS", "20"}, {"RANKTAP_STANDIN_KERNELS", "slow=500000000,quick=1000000"}});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  const std::vector<const Gap*> gaps = GapsForOthers(trace);
  ASSERT_EQ(gaps.size(), 1u);
  size_t launched_after = 0;
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    if (trace.kernels.start[i] < gaps[0]->end) continue;
    launched_after += trace.kernels.launch[i] != collector::kNone ? 1 : 0;
  }
  EXPECT_EQ(launched_after, kQuick);
  EXPECT_GT(trace.cost.polls(), 0u);
  EXPECT_THAT(traced.process().output(),
              HasSubstr("polls=" + std::to_string(trace.cost.polls()) + "\n"));
  EXPECT_EQ(traced.Problems(), "");
}

}  // namespace
}  // namespace ranktap::agent_test
