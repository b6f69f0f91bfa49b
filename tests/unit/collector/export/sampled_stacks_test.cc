#include "collector/export/sampled_stacks.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/collector/facts/samples/sampled_trace.h"

namespace ranktap::collector {
namespace {

constexpr auto kNs = static_cast<size_t>(StackWeight::kSampled);
constexpr auto kCpu = static_cast<size_t>(StackWeight::kSampledCpu);
constexpr auto kLooks = static_cast<size_t>(StackWeight::kCount);

// "rank 0;main thread;main:97 @40 in step 3: 100 ns, 50 on a CPU, 2 looks"
std::vector<std::string> Texts(const WeightedStacks& stacks) {
  std::vector<std::string> texts;
  for (const auto& [key, weights] : stacks.stacks()) {
    std::string text;
    for (const uint32_t index : key.frames) {
      const WeightedFrame& frame = stacks.frames()[index];
      text += (text.empty() ? "" : ";") + frame.function;
      if (frame.line != 0) text += fmt::format(":{}", frame.line);
    }
    if (key.labels.thread != 0) text += fmt::format(" @{}", key.labels.thread);
    if (key.labels.step) text += fmt::format(" in step {}", *key.labels.step);
    texts.push_back(fmt::format("{}: {} ns, {} on a CPU, {} looks", text, weights[kNs],
                                weights[kCpu], weights[kLooks]));
  }
  return texts;
}

TEST(SampledStacksTest, EachThreadHangsBelowItsNameAndOnlyTheWindowCounts) {
  SampledTrace sampled;
  sampled.AddSamples("[40,4,1,4,0,100,80]\n[40,1,2,2,100,200,0]\n[41,0,2,1,0,50,0]\n");
  WeightedStacks stacks;
  ExportOptions options;
  options.from = 50;
  options.to = 150;
  AddSampledStacks(sampled.trace(), options, stacks.IndexOf({"rank 0", ""}), &stacks);
  EXPECT_THAT(Texts(stacks), ::testing::UnorderedElementsAre(
                                 "rank 0;main thread;main:98: 50 ns, 40 on a CPU, 2 looks",
                                 "rank 0;main thread;main:97: 50 ns, 0 on a CPU, 1 looks"));
}

TEST(SampledStacksTest, ASampleThatReachesIntoTheNextStepIsDividedWhereStepsAreLabelled) {
  SampledTrace sampled;
  v1::Dictionary names;
  v1::Text* const text = names.add_strings();
  text->set_id(9);
  text->set_text("train_step");
  const std::string bytes = names.SerializeAsString();
  ASSERT_TRUE(sampled.trace().dictionary.Add(std::as_bytes(std::span(bytes))));
  Ranges& ranges = sampled.trace().ranges;
  for (int64_t at = 0; at < 1000; at += 100) {
    ranges.start.push_back(at);
    ranges.end.push_back(at + 100);
    ranges.name.push_back(9);
    ranges.domain.push_back(0);
    ranges.writer.push_back(0);
    ranges.depth.push_back(0);
    ranges.kind.push_back(static_cast<uint8_t>(RangeKind::kPushPop));
  }
  sampled.trace().last_ns = 1000;
  sampled.AddSamples("[40,4,1,4,50,250,200]\n");
  WeightedStacks stacks(WeightedStacks::Labels::kOfSamples);
  AddSampledStacks(sampled.trace(), {}, stacks.IndexOf({"rank 0", ""}), &stacks);
  const std::string main = "rank 0;main thread;main:98 @40 in step ";
  EXPECT_THAT(Texts(stacks),
              ::testing::UnorderedElementsAre(main + "0: 50 ns, 50 on a CPU, 1 looks",
                                              main + "1: 100 ns, 100 on a CPU, 2 looks",
                                              main + "2: 50 ns, 50 on a CPU, 1 looks"));
}

}  // namespace
}  // namespace ranktap::collector
