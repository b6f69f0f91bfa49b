// Time that no phase explains has a place: which passes it lies between, and what ran inside.
#include <gtest/gtest.h>

#include <string>

#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "collector/trace/operator_join.h"
#include "tests/unit/collector/report/steps/planted_program.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

// When the passes of a step of 40 ms begin, in ms; forward and backward take 1 each. A step ends
// with its optimizer, as our hooks see it.
struct Begins {
  int64_t forward, backward, optimizer;
};

// `work`: called for each step with its begin.
template <typename Work>
std::string SentenceOf(const Begins& begins, Work&& work) {
  Program program;
  for (int64_t at = 0; at < 10 * 40 * kMs; at += 40 * kMs) {
    program.AddStep(at, at + 40 * kMs);
    work(&program, at);
    const int64_t forward = at + begins.forward * kMs, backward = at + begins.backward * kMs;
    program.AddRange(proto::kModuleDomain, "Net", forward, forward + kMs);
    program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, backward, backward + kMs);
    program.AddRange(proto::kPhaseDomain, proto::kOptimizerPhase, at + begins.optimizer * kMs,
                     at + 40 * kMs);
  }
  NestOperators(&program.trace());
  return Judge(program.run()).sentence;
}

constexpr auto kNothing = [](Program*, int64_t) {};

TEST(PlantedPlaces, ALogLineAfterTheOptimizerIsThereWithItsRange) {
  EXPECT_EQ(SentenceOf({36, 37, 38},
                       [](Program* program, int64_t at) {
                         program->AddRange("", "write_log", at + kMs, at + 30 * kMs);
                       }),
            "Without a device all of each 40.00 ms step is the host's time: 36.00 ms (90.0 %) "
            "after the optimizer and before the next forward pass (in range write_log), 2.000 ms "
            "(5.0 %) in the optimizer, 1.000 ms (2.5 %) in the forward pass.");
}

TEST(PlantedPlaces, ARangeWithLittleOfTheTimeIsNotNamed) {
  const std::string sentence = SentenceOf({36, 37, 38}, [](Program* program, int64_t at) {
    program->AddRange("", "write_log", at + kMs, at + 15 * kMs);
  });
  EXPECT_NE(
      sentence.find("36.00 ms (90.0 %) after the optimizer and before the next forward pass,"),
      std::string::npos)
      << sentence;
}

TEST(PlantedPlaces, BetweenForwardAndBackwardAndBeforeTheOptimizerAreTold) {
  EXPECT_EQ(SentenceOf({0, 25, 39}, kNothing),
            "Without a device all of each 40.00 ms step is the host's time: 24.00 ms (60.0 %) "
            "between the forward and the backward pass, 13.00 ms (32.5 %) between the backward "
            "pass and the optimizer, 1.000 ms (2.5 %) in the forward pass.");
}

// Recorded in the fourth step alone: 20 of the 24 ms.
TEST(PlantedPlaces, AnOperatorInsideIsNamedByTheStepsThatHaveThem) {
  const std::string sentence = SentenceOf({0, 25, 39}, [](Program* program, int64_t at) {
    if (at != 120 * kMs) return;
    program->AddOperator("aten::item", at + 2 * kMs, at + 22 * kMs);
    program->AddOperator("aten::_local_scalar_dense", at + 2 * kMs, at + 22 * kMs);
  });
  EXPECT_NE(sentence.find("between the forward and the backward pass (in aten::item)"),
            std::string::npos)
      << sentence;
}

TEST(PlantedPlaces, AnIdleDevicesHostHasAPlace) {
  Program program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    program.AddRange(proto::kModuleDomain, "Net", at, at + kMs);
    program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at + 8 * kMs, at + 9 * kMs);
    program.AddKernel(at + 8 * kMs, at + 8 * kMs, at + 10 * kMs);
  }
  const std::string sentence = Judge(program.run()).sentence;
  EXPECT_NE(sentence.find("(host-bound), 87.5 % of it between the forward and the backward pass"),
            std::string::npos)
      << sentence;
}

// Ten requests of 2 ms, 8 ms of waiting after each.
TEST(PlantedPlaces, InferenceSpeaksOfCallsAndWhatPassesBetweenThem) {
  for (const bool trains : {false, true}) {
    Program program;
    for (int64_t at = 0; at < 100 * kMs; at += 10 * kMs) {
      program.AddRange(proto::kModuleDomain, "Net", at, at + 2 * kMs);
      if (!trains) continue;
      program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at + 2 * kMs, at + 4 * kMs);
    }
    const Table steps = TabulateSteps(program.run(), {});
    EXPECT_EQ(steps.title, trains ? "Training steps, by rank" : "Calls of the model, by rank");
    const std::string sentence = Judge(program.run()).sentence;
    EXPECT_EQ(sentence ==
                  "The model is called 10 times: a call takes 2.000 ms (p50), 2.000 ms (p99), "
                  "and 8.000 ms pass between two, 78.3 % of the time.",
              !trains)
        << sentence;
    ASSERT_EQ(steps.notes.size(), trains ? 1u : 2u);
    if (trains) continue;
    EXPECT_NE(steps.notes[1].find("a call takes 2.000 ms (p50), 2.000 ms (p99), and 8.000 ms pass"),
              std::string::npos)
        << steps.notes[1];
  }
}

// The first of ten lasts 25 ms.
// Each fifth call takes 20 ms on a prompt, the others 1 ms on a token; without a pause.
TEST(PlantedPlaces, CallsOfTwoLengthsAreToldApartWithTheirInputs) {
  const auto sentence_of = [](int64_t of_prompt) {
    Program program;
    int64_t at = 0;
    for (int call = 0; call < 25; ++call) {
      const bool is_prompt = call % 5 == 4;
      const int64_t length = is_prompt ? of_prompt : kMs;
      program.AddRange(proto::kModuleDomain, "Net", at, at + length);
      program.AddOperator("aten::addmm", at + 1, at + length / 2);
      const std::string_view shapes = is_prompt ? "[[512, 64], [64]]" : "[[1, 64], [64]]";
      program.trace().operators.shapes.push_back(program.trace().dictionary.AppendString(shapes));
      at += length;
    }
    return Judge(program.run()).sentence;
  };
  const std::string two = sentence_of(20 * kMs), one = sentence_of(2 * kMs);
  EXPECT_NE(two.find("25 times: 5 calls on [512, 64] take 20.00 ms (p50), the others on [1, 64] "
                     "1.000 ms (p50), 1.000 ms (p99), and"),
            std::string::npos)
      << two;
  EXPECT_NE(one.find("25 times: a call takes 1.000 ms (p50), 2.000 ms (p99)"), std::string::npos)
      << one;
}

TEST(PlantedPlaces, CallsOfTheWarmUpAreCountedButNotTimed) {
  Program program;
  program.AddRange(proto::kModuleDomain, "Net", 0, 25 * kMs);
  for (int64_t at = 30 * kMs; at < 120 * kMs; at += 10 * kMs) {
    program.AddRange(proto::kModuleDomain, "Net", at, at + 2 * kMs);
  }
  const std::string sentence = Judge(program.run()).sentence;
  EXPECT_TRUE(
      sentence.starts_with("The model is called 10 times: a call takes 2.000 ms (p50), "
                           "2.000 ms (p99), "))
      << sentence;
}

}  // namespace
}  // namespace ranktap::collector
