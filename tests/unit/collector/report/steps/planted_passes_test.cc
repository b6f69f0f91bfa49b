// Which module, node, message or setting a host's time goes to; and what is no part of a step.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "collector/facts/steps.h"
#include "collector/report/insights/find_insights.h"
#include "collector/report/steps/verdict.h"
#include "collector/trace/operator_join.h"
#include "tests/unit/collector/report/steps/planted_program.h"

namespace ranktap::collector {
namespace {

void AddModule(std::string_view name, uint16_t depth, int64_t start, int64_t end,
               Program* program) {
  program->AddRange(proto::kModuleDomain, name, start, end);
  program->trace().ranges.depth.back() = depth;
}

// Ten steps of 40 ms. Net.1 has `own` of the forward's 20 ms itself, its child the rest.
std::string SentenceWithChild(int64_t own) {
  Program program;
  for (int64_t at = 0; at < 10 * 40 * kMs; at += 40 * kMs) {
    program.AddStep(at, at + 40 * kMs);
    AddModule("Net", 0, at, at + 20 * kMs, &program);
    AddModule("Net.1", 1, at, at + 20 * kMs, &program);
    AddModule("Net.1.fc", 2, at, at + (20 - own) * kMs, &program);
    program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at + 20 * kMs, at + 40 * kMs);
    program.AddOperator("autograd::engine::evaluate_function: SlowBackward", at + 21 * kMs,
                        at + 38 * kMs);
    program.AddOperator("autograd::engine::evaluate_function: AddmmBackward0", at + 38 * kMs,
                        at + 39 * kMs);
  }
  NestOperators(&program.trace());
  return Judge(program.run()).sentence;
}

TEST(PlantedPasses, ForwardAndBackwardNameWhatHasMostOfThem) {
  const std::string child = SentenceWithChild(2), itself = SentenceWithChild(15);
  EXPECT_NE(child.find("in the forward pass (most in Net.1.fc)"), std::string::npos) << child;
  EXPECT_NE(itself.find("in the forward pass (most in Net.1)"), std::string::npos) << itself;
  EXPECT_NE(itself.find("in the backward pass (most in SlowBackward)"), std::string::npos)
      << itself;
}

TEST(PlantedPasses, WhereNothingHasHalfNothingIsNamed) {
  const std::string sentence = SentenceWithChild(10);
  EXPECT_EQ(sentence.find("in the forward pass (most"), std::string::npos) << sentence;
}

// A step is 10 ms: forward 0 to 4, backward to 8. Before steps 3 and 6 ten forwards of 1 ms
// evaluate.
Program WithEvaluation(bool in_each_step) {
  Program program;
  int64_t now = 0;
  for (int64_t step = 0; step < 10; ++step) {
    const int64_t begin = now;
    for (int i = 0; i < 10 && (in_each_step || step == 3 || step == 6); ++i, now += kMs) {
      AddModule("Net", 0, now, now + kMs, &program);
    }
    AddModule("Net", 0, now, now + 4 * kMs, &program);
    program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, now + 4 * kMs, now + 8 * kMs);
    now += 10 * kMs;
    program.AddStep(begin, now);
  }
  return program;
}

TEST(PlantedPasses, EvaluationBetweenStepsIsInNoStep) {
  Program program = WithEvaluation(false);
  const StepList& steps = DetectSteps(program.trace());
  ASSERT_EQ(steps.list.size(), 10u);
  for (const Step& step : steps.list) EXPECT_EQ(step.length(), 10 * kMs);
  EXPECT_EQ(steps.evaluations, 20);
  EXPECT_EQ(steps.evaluation_ns, 20 * kMs);
}

TEST(PlantedPasses, ForwardsOfAnAgentThatPlaysInEachStepAreItsWork) {
  Program program = WithEvaluation(true);
  const StepList& steps = DetectSteps(program.trace());
  ASSERT_EQ(steps.list.size(), 10u);
  for (const Step& step : steps.list) EXPECT_EQ(step.length(), 20 * kMs);
  EXPECT_EQ(steps.evaluations, 0);
}

// Twelve tokens of 1 ms, and the program's end a second later.
Program WithTokens() {
  Program program;
  for (int64_t at = 0; at < 12 * kMs; at += kMs) AddModule("Model", 0, at, at + kMs, &program);
  program.trace().last_ns = 1012 * kMs;
  return program;
}

TEST(PlantedPasses, TokensAreStepsHoweverLongTheProgramTakesToEnd) {
  Program program = WithTokens();
  EXPECT_EQ(DetectSteps(program.trace()).list.size(), 12u);
}

TEST(PlantedPasses, ForwardsInASmallPartOfWhatTheProgramDoesAreNoSteps) {
  Program program = WithTokens();
  program.AddRange("", "the rest of the work", 12 * kMs, 1012 * kMs);
  EXPECT_TRUE(DetectSteps(program.trace()).list.empty());
}

// Rank 0 computes for 25 ms of each step, for which rank 1 waits in gloo:recv; its message of the
// next step comes while it computes.
TEST(PlantedPasses, AReceiveIsAWaitForItsPeerButNotWhileTheHostComputes) {
  Program first, second;
  first.trace().info.rank = 0;
  second.trace().info.rank = 1;
  for (int64_t at = 0; at < 10 * 30 * kMs; at += 30 * kMs) {
    first.AddStep(at, at + 30 * kMs);
    AddModule("Stage", 0, at, at + 25 * kMs, &first);
    second.AddStep(at, at + 30 * kMs);
    second.AddRange(proto::kLabelDomain, "gloo:recv", at, at + 28 * kMs);
    AddModule("Stage", 0, at + 26 * kMs, at + 30 * kMs, &second);
  }
  first.run().traces.push_back(std::move(second.trace()));
  const std::string sentence = Judge(first.run()).sentence;
  EXPECT_TRUE(sentence.ends_with(
      " Rank 1 waits 26.00 ms of each 30.00 ms step (86.7 %) to receive from rank 0, which spends "
      "25.00 ms of it in the forward pass."))
      << sentence;
}

// Three stages. In each step of 30 ms rank 2 waits 24 ms for the message that it asked rank 1 for.
Program ThreeStages(std::string_view kind, std::string_view call, std::string_view values) {
  Program program;
  Run& run = program.run();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Program stage;
    stage.trace().info.rank = rank;
    stage.trace().process_groups.push_back(
        {.name = "0", .description = {}, .backend = "gloo", .size = 3, .ranks = {0, 1, 2}});
    for (int64_t at = 0; at < 10 * 30 * kMs; at += 30 * kMs) {
      stage.AddStep(at, at + 30 * kMs);
      AddModule("Stage", 0, at + (rank == 2 ? 25 * kMs : 0), at + 30 * kMs, &stage);
      if (rank != 2) continue;
      stage.AddOperator(call, at, at + kMs);
      stage.AddOperator(kind, at + kMs / 2, at + 24 * kMs);
    }
    Operators& ops = stage.trace().operators;
    const uint32_t text = stage.trace().dictionary.AppendString(values);
    for (size_t i = 0; i < ops.size(); ++i) {
      ops.values.push_back(i % 2 == 0 ? text : 0);
      if (i % 2 == 1) ops.parent[i] = static_cast<uint32_t>(i) - 1;
    }
    if (rank == 0) run.traces.clear();
    run.traces.push_back(std::move(stage.trace()));
  }
  return program;
}

TEST(PlantedPasses, AmongSeveralRanksThePeerIsTheOneThatTheCallNames) {
  constexpr std::string_view kValues = R"(["", "", "1", "0"])";
  const auto sentence = [](std::string_view kind, std::string_view call, std::string_view values) {
    Program program = ThreeStages(kind, call, values);
    return Judge(program.run()).sentence;
  };
  const std::string received = sentence("gloo:recv", "c10d::recv_", kValues),
                    sent = sentence("gloo:send", "c10d::send", kValues),
                    unknown = sentence("gloo:recv", "c10d::recv_", R"(["", "", "", ""])");
  EXPECT_NE(received.find(" Rank 2 waits 23.50 ms of each 30.00 ms step (78.3 %) to receive from "
                          "rank 1, which spends 30.00 ms of it in the forward pass."),
            std::string::npos)
      << received;
  EXPECT_NE(sent.find(" to send to rank 1, which spends"), std::string::npos) << sent;
  EXPECT_NE(unknown.find(" to receive from another rank."), std::string::npos) << unknown;
}

const Insight* Found(const Insights& insights, std::string_view rule) {
  for (const Insight& insight : insights.list) {
    if (insight.rule == rule) return &insight;
  }
  return nullptr;
}

Program WithSettings(std::string_view row) {
  Program program = WithEvaluation(false);
  program.AddMark(proto::kOperatorDomain, proto::kSettingsMark, 0, row);
  return program;
}

TEST(PlantedSettings, AnomalyModeAndTooManyThreadsAreInsights) {
  Program bad = WithSettings("[32,2,1]"), good = WithSettings("[2,2,0]");
  const Insights found = FindInsights(bad.run(), AllInsightRules());
  const Insight* const threads = Found(found, "too-many-threads");
  ASSERT_NE(threads, nullptr);
  EXPECT_EQ(threads->finding, "PyTorch computes with 32 threads on 2 CPUs.");
  EXPECT_NE(Found(found, "anomaly-mode"), nullptr);
  const Insights none = FindInsights(good.run(), AllInsightRules());
  EXPECT_EQ(Found(none, "too-many-threads"), nullptr);
  EXPECT_EQ(Found(none, "anomaly-mode"), nullptr);
}

// 5 of each step's 10 ms.
TEST(PlantedSettings, ProductsOfDoublesAreAnInsightAndOfFloatsAreNot) {
  for (const std::string type : {"double", "float"}) {
    Program program;
    for (int64_t at = 0; at < 100 * kMs; at += 10 * kMs) {
      program.AddStep(at, at + 10 * kMs);
      AddModule("Net", 0, at, at + 10 * kMs, &program);
      program.AddOperator("aten::addmm", at, at + 5 * kMs);
      Operators& ops = program.trace().operators;
      ops.types.PadTo(ops.size());
      ops.types[ops.size() - 1] =
          program.trace().dictionary.AppendString(fmt::format(R"(["{0}", "{0}", "{0}"])", type));
    }
    NestOperators(&program.trace());
    const Insights found = FindInsights(program.run(), AllInsightRules());
    const Insight* const insight = Found(found, "double-products");
    ASSERT_EQ(insight != nullptr, type == "double");
    if (insight == nullptr) continue;
    EXPECT_EQ(insight->finding,
              "Products of 64-bit floats take 5.000 ms of each 10.00 ms step (50.0 %).");
  }
}

TEST(PlantedSettings, AGuardThatFailsIsSaidWithItsPlace) {
  Program program;
  for (int64_t at = 0; at < 100 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    AddModule("Net", 0, at, at + 10 * kMs, &program);
    program.AddOperator("aten::mul", at, at + kMs);
    program.AddRange(proto::kPhaseDomain, proto::kCompilationPhase, at + kMs, at + 9 * kMs);
  }
  program.AddMark(proto::kOperatorDomain, proto::kRecompilationsMark, 100 * kMs,
                  R"(["/a/net.py(3): forward","self.level == 1",4])"
                  "\n"
                  R"(["/a/net.py(3): forward","self.level == 2",5])");
  const Insights found = FindInsights(program.run(), AllInsightRules());
  const Insight* const insight = Found(found, "recompilation");
  ASSERT_NE(insight, nullptr);
  EXPECT_EQ(insight->lost_ns, 8 * kMs);
  EXPECT_NE(insight->finding.find("Dynamo compiled net.py(3): forward again 9 times, because a "
                                  "guard failed: self.level == "),
            std::string::npos)
      << insight->finding;
}

}  // namespace
}  // namespace ranktap::collector
