// Programs whose calls are cut off in the middle: they run as bare, and every event is stored or
// declared lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/loss.h"
#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::Trace;
using proto::Loss;

// The only trace of a run that ended as bare and verifies.
const Trace& TheTrace(const TracedRun& traced, const std::vector<std::string>& command) {
  static const Trace kNothing;
  const SimulatedRun bare(command, {});
  ExpectSameToTheUser(bare, traced.process());
  EXPECT_EQ(traced.Problems(), "");
  EXPECT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  if (traced.run().traces.empty()) return kNothing;
  const Sums sums = SumWriters(traced.run().traces[0]);
  EXPECT_EQ(sums.produced, sums.stored + sums.lost);
  return traced.run().traces[0];
}

uint64_t LostTo(Loss loss, const Trace& trace) {
  uint64_t events = 0;
  for (const collector::Writer& writer : trace.writers) {
    events += writer.lost[static_cast<size_t>(loss)];
  }
  return events;
}

uint64_t RangesNamed(const std::string& name, const Trace& trace) {
  uint64_t ranges = 0;
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    ranges += trace.dictionary.String(trace.ranges.name[i]) == name ? 1 : 0;
  }
  return ranges;
}

class HandlerTest : public testing::TestWithParam<const char*> {};

TEST_P(HandlerTest, WhatHandlersEmitInTheMiddleOfAHookIsCountedExactly) {
  std::vector<std::string> command = {Host("interrupted"), "handlers", "5000"};
  if (*GetParam() != 0) command.push_back(GetParam());
  const TracedRun traced(command, {}, {"--level", "ranges"});
  const Trace& trace = TheTrace(traced, command);
  EXPECT_EQ(LostTo(Loss::kInterrupted, trace), 0u) << "a hook at work was taken for gone";
}

INSTANTIATE_TEST_SUITE_P(Stacks, HandlerTest, testing::Values("", "alternate"),
                         [](const auto& info) { return info.index == 0 ? "Own" : "Alternate"; });

TEST(InterruptionsTest, AJumpOutOfAHookCostsWhatWasInFlightAndNotTheThread) {
  constexpr uint64_t kJumps = 5000;
  const std::vector<std::string> command = {Host("interrupted"), "longjmp", std::to_string(kJumps)};
  const TracedRun traced(command, {}, {"--level", "ranges"});
  const Trace& trace = TheTrace(traced, command);
  EXPECT_GT(LostTo(Loss::kInterrupted, trace), 0u) << "no jump hit a hook: nothing is shown";
  EXPECT_LE(LostTo(Loss::kInterrupted, trace), kJumps);
  EXPECT_LE(LostTo(Loss::kNested, trace), kJumps);
  EXPECT_GT(RangesNamed("after the jumps", trace), 500u);
}

TEST(InterruptionsTest, CancellationInTheMiddleOfAHookEndsTheThreadAlone) {
  const std::vector<std::string> command = {Host("interrupted"), "cancel", "300"};
  const TracedRun traced(command, {}, {"--level", "ranges"});
  const Trace& trace = TheTrace(traced, command);
  EXPECT_THAT(traced.process().output(), testing::HasSubstr("cancelled=300"));
  EXPECT_GE(trace.writers.size(), 300u);
}

// Two processes write to one ring, without knowing: what they spoil is declared.
TEST(InterruptionsTest, AChildThatSharesTheMemorySpoilsNothingUndeclared) {
  const std::vector<std::string> command = {Host("interrupted"), "clone", "5"};
  const TracedRun traced(command, {}, {"--level", "ranges"});
  TheTrace(traced, command);
}

// The socket, and the spool that takes its place, go again and again.
TEST(InterruptionsTest, WhateverDescriptorsTheProgramClosesEachEventIsStoredOrDeclared) {
  std::vector<std::string> command = {Host("interrupted"), "descriptors", "3"};
  const TracedRun with_a_peace(command, {}, {"--level", "ranges"});
  TheTrace(with_a_peace, command);
  command.push_back("ends");
  const TracedRun in_between(command, {}, {"--level", "ranges"});
  TheTrace(in_between, command);
}

class ForkInHandlerTest : public testing::TestWithParam<const char*> {};

TEST_P(ForkInHandlerTest, TheChildGoesOnAsBareAndLeavesNothing) {
  const std::vector<std::string> command = {Host("interrupted"), GetParam(), "300"};
  const TracedRun traced(command, {}, {"--level", "ranges"});
  TheTrace(traced, command);
}

INSTANTIATE_TEST_SUITE_P(Ways, ForkInHandlerTest, testing::Values("fork", "_Fork", "raw"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace ranktap::agent_test
