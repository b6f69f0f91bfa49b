// Memory is refused to the agent, and to nobody else: the program ends as bare, the trace verifies,
// and one refusal costs no more than what was in hand. A refusal in a round of the sender is a
// reconnect as well. tests/workloads/hosts/refuse_memory.c decides which allocations fail;
// FAULT_SEED and FAULT_COUNT which numbers are tried.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>

#include "tests/fault_seed.h"
#include "tests/integration/agent/traced_run.h"
#include "tests/integration/hostile/differential_run.h"
#include "tests/integration/standin/simulated_run.h"

namespace ranktap::hostile_test {
namespace {

namespace fs = std::filesystem;
using standin_test::BuildPath;

constexpr double kPatienceS = 60;
// 1 and three times 60 of the program.
constexpr size_t kRanges = 181;

const Command& Program() {
  static const Command program = {BuildPath("workloads/hostile"), "work", "beside"};
  return program;
}

// What refuse_memory.so is told, and what it tells.
class Refusal {
 public:
  Refusal() {
    std::string pattern = testing::TempDir() + "/refused.XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~Refusal() { fs::remove_all(folder_); }
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;

  Variables For(const std::string& program, uint64_t first, uint64_t every) const {
    return {{"LD_PRELOAD", BuildPath("workloads/refuse_memory.so")},
            {"REFUSE_PROGRAM", program},
            {"REFUSE_FIRST", std::to_string(first)},
            {"REFUSE_EVERY", std::to_string(every)},
            {"REFUSE_REPORT", folder_ + "/report"}};
  }
  // What the agent asked for in the last run, and was refused.
  struct Counts {
    uint64_t asked = 0, refused = 0;
  };
  Counts Reported() const {
    Counts counts;
    std::ifstream(folder_ + "/report") >> counts.asked >> counts.refused;
    return counts;
  }

 private:
  std::string folder_;
};

// FAULT_COUNT of the numbers up to `all`.
std::set<uint64_t> SomeOf(uint64_t all) {
  std::mt19937 random(FaultSeed());
  std::set<uint64_t> numbers;
  const auto wanted = std::min<uint64_t>(all, static_cast<uint64_t>(FaultCount(24)));
  while (numbers.size() < wanted) {
    numbers.insert(std::uniform_int_distribution<uint64_t>(1, all)(random));
  }
  return numbers;
}

std::string Which(uint64_t number, uint64_t all) {
  return "FAULT_SEED=" + std::to_string(FaultSeed()) + ", allocation " + std::to_string(number) +
         " of " + std::to_string(all);
}

class RefusedMemoryTest : public testing::TestWithParam<const char*> {
 protected:
  static std::string level() { return GetParam(); }
  static size_t ranges() { return level() == "dormant" ? 0 : kRanges; }
  Variables Refusing(uint64_t first, uint64_t every) const {
    return refusal_.For("hostile", first, every);
  }

  Traced ExpectAsBare(const Seen& bare, const Variables& variables) {
    const Traced traced = Trace(Program(), level(), LoadedBy::kPreload, kPatienceS, variables);
    EXPECT_EQ(Differences(bare, traced.seen, 10), "");
    EXPECT_EQ(traced.problems, "");
    return traced;
  }

  Refusal refusal_;
};

TEST_P(RefusedMemoryTest, OneRefusalCostsNoMoreThanWhatWasInHandAndRecordingGoesOn) {
  const Seen bare = Watch(Program(), {}, kPatienceS);
  ASSERT_EQ(ExpectAsBare(bare, Refusing(0, 0)).ranges, ranges());
  const uint64_t all = refusal_.Reported().asked;
  ASSERT_GT(all, 10u);
  for (const uint64_t number : SomeOf(all)) {
    SCOPED_TRACE(Which(number, all));
    EXPECT_EQ(ExpectAsBare(bare, Refusing(number, 0)).ranges, ranges());
  }
}

TEST_P(RefusedMemoryTest, WhateverShareIsRefusedTheProgramEndsAsBare) {
  const Seen bare = Watch(Program(), {}, kPatienceS);
  for (const uint64_t every : {1, 2, 3, 7, 40}) {
    SCOPED_TRACE("every " + std::to_string(every));
    ExpectAsBare(bare, Refusing(1, every));
    EXPECT_GT(refusal_.Reported().refused, 0u);
  }
}

// From when it has begun.
TEST_P(RefusedMemoryTest, WithNoMemoryAfterTheStartItIsRecordedAllTheSame) {
  const Seen bare = Watch(Program(), {}, kPatienceS);
  ExpectAsBare(bare, Refusing(0, 0));
  const uint64_t all = refusal_.Reported().asked;
  const Traced traced = ExpectAsBare(bare, Refusing(all * 9 / 10, 1));
  EXPECT_EQ(traced.ranges, ranges());
}

// With a drain, and with kernels: what CUPTI has given is in hand.
TEST(RefusedMemoryWithCudaTest, OneRefusalCostsNoKernelAndNoRange) {
  const std::vector<std::string> program = {agent_test::Host("endings"), "exit", "50"};
  const standin_test::SimulatedRun bare(program, {});
  const Refusal refusal;
  const auto trace = [&](uint64_t number, uint64_t every) {
    agent_test::TracedRun traced(program, refusal.For("endings", number, every),
                                 {"--level", "kernels"});
    agent_test::ExpectSameToTheUser(bare, traced.process());
    EXPECT_EQ(traced.Problems(), "");
    const bool is_one = traced.run().traces.size() == 1;
    return is_one ? traced.run().traces[0].kernels.size() : 0;
  };
  const size_t kernels = trace(0, 0);
  const uint64_t all = refusal.Reported().asked;
  ASSERT_GT(kernels, 0u);
  for (const uint64_t number : SomeOf(all)) {
    SCOPED_TRACE(Which(number, all));
    EXPECT_EQ(trace(number, 0), kernels);
  }
  for (const uint64_t every : {1, 3, 7, 40}) {
    SCOPED_TRACE("every " + std::to_string(every));
    trace(1, every);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, RefusedMemoryTest,
                         testing::Values("dormant", "ranges", "kernels", "full"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace ranktap::hostile_test
