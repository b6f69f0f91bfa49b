#include "collector/facts/flops/op_flops.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/unit/collector/facts/roofline/planted_operators.h"

namespace ranktap::collector {
namespace {

int64_t Flops(FlopRule rule, std::string_view name, std::string_view shapes,
              std::string_view values = "") {
  return CountOp(rule, name, shapes, values).value_or(FlopCount{.flops = -1}).flops;
}

constexpr std::string_view kConvolution =
    R"(["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"])";

TEST(OpFlopsTest, CountsTwoForEachMultiplyAddOfAMatrixProduct) {
  EXPECT_EQ(Flops(FlopRule::kCounter, "aten::mm", "[[3, 5], [5, 7]]"), 2 * 3 * 5 * 7);
  EXPECT_EQ(Flops(FlopRule::kCounter, "aten::addmm", "[[7], [3, 5], [5, 7]]"), 2 * 3 * 5 * 7);
  EXPECT_EQ(Flops(FlopRule::kCounter, "aten::bmm", "[[2, 3, 5], [2, 5, 7]]"), 2 * 2 * 3 * 5 * 7);
}

TEST(OpFlopsTest, DeepSpeedCountsTheAdditionOfAddmmAndElementwiseFunctions) {
  EXPECT_EQ(Flops(FlopRule::kDeepSpeed, "aten::addmm", "[[3, 7], [3, 5], [5, 7]]"),
            2 * 3 * 5 * 7 + 3 * 7);
  EXPECT_EQ(Flops(FlopRule::kDeepSpeed, "aten::gelu", "[[3, 7]]"), 21);
  EXPECT_EQ(Flops(FlopRule::kCounter, "aten::gelu", "[[3, 7]]"), -1);
}

TEST(OpFlopsTest, AConvolutionCountsAtTheOutputAndATransposedOneAtTheInput) {
  constexpr std::string_view kShapes = "[[2, 3, 9, 9], [8, 3, 3, 3], [8], [], [], [], [], [], []]";
  EXPECT_EQ(Flops(FlopRule::kCounter, "aten::convolution", kShapes, kConvolution),
            2 * 2 * (5 * 5) * (8 * 3 * 3 * 3));
  constexpr std::string_view kTransposed =
      R"(["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "1"])";
  EXPECT_EQ(Flops(FlopRule::kCounter, "aten::convolution",
                  "[[2, 3, 9, 9], [3, 8, 3, 3], [8], [], [], [], [], [], []]", kTransposed),
            2 * 2 * (9 * 9) * (3 * 8 * 3 * 3));
}

TEST(OpFlopsTest, AConvolutionsBackwardCountsOnlyTheGradientsThatAreWanted) {
  constexpr std::string_view kShapes = "[[2, 8, 5, 5], [2, 3, 9, 9], [8, 3, 3, 3]]";
  const auto values = [](std::string_view mask) {
    return R"(["", "", "", "[8]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", ")" +
           std::string(mask) + "\"]";
  };
  const int64_t each = 2 * 2 * (5 * 5) * (8 * 3 * 3 * 3);
  EXPECT_EQ(Flops(FlopRule::kCounter, "aten::convolution_backward", kShapes,
                  values("[False, True, True]")),
            each);
  EXPECT_EQ(Flops(FlopRule::kCounter, "aten::convolution_backward", kShapes,
                  values("[true, true, false]")),
            2 * each);
}

TEST(OpFlopsTest, WhatCannotBeReadCountsNothing) {
  for (const std::string_view shapes :
       {"", "[", "]", "[[]", "[[[3, 4]], 5]", "[[-3, 4], [4, -5]]", "null",
        "[[9999999999999999999]]", "[[4611686018427387904, 4], [4, 4611686018427387904]]"}) {
    for (const std::string_view values : {"", "[", R"(["", "[", "]", "", "[0]", "x", "1")"}) {
      for (const char* const name :
           {"aten::mm", "aten::convolution", "aten::conv2d", "aten::convolution_backward",
            "aten::linear", "aten::scaled_dot_product_attention", "aten::conv_transpose2d"}) {
        for (const FlopRule rule :
             {FlopRule::kProfiler, FlopRule::kCounter, FlopRule::kDeepSpeed}) {
          EXPECT_LE(Flops(rule, name, shapes, values), 0) << name << " " << shapes << " " << values;
        }
      }
    }
  }
}

// PyTorch before Concrete Inputs writes shapes alone.
TEST(OpFlopsTest, AConvolutionWithoutStridesCountsByTheGradientOfItsOutputOrNotAtAll) {
  static constexpr std::string_view kForward = "[[2, 3, 9, 9], [8, 3, 3, 3], []]";
  const auto count = [](std::initializer_list<std::string_view> backwards) {
    PlantedOperators planted("");
    planted.Operator("aten::convolution", kForward, "");
    for (const std::string_view shapes : backwards) {
      planted.Operator("aten::convolution_backward", shapes, "");
    }
    return CountFlops(planted.trace(), FlopRule::kCounter)[0].flops;
  };
  EXPECT_EQ(count({"[[2, 8, 5, 5], [2, 3, 9, 9], [8, 3, 3, 3]]"}),
            2 * 2 * (5 * 5) * (8 * 3 * 3 * 3));
  EXPECT_EQ(count({}), 0);
  // Of another layer, and of two strides.
  EXPECT_EQ(count({"[[2, 8, 5, 5], [2, 3, 9, 9], [8, 3, 5, 5]]"}), 0);
  EXPECT_EQ(count({"[[2, 8, 5, 5], [2, 3, 9, 9], [8, 3, 3, 3]]",
                   "[[2, 8, 9, 9], [2, 3, 9, 9], [8, 3, 3, 3]]"}),
            0);
}

TEST(OpFlopsTest, AnOperatorInsideOfACountedOneIsNotCountedAgain) {
  Trace trace;
  trace.writers.resize(1);
  const uint32_t shapes = trace.dictionary.AppendString("[[3, 5], [5, 7]]");
  Operators& ops = trace.operators;
  for (int i = 0; i < 2; ++i) {
    ops.start.push_back(i);
    ops.end.push_back(10 - i);
    ops.name.push_back(trace.dictionary.AppendString(i == 0 ? "aten::matmul" : "aten::mm"));
    ops.writer.push_back(0);
    ops.kind.push_back(0);
    ops.parent.push_back(i == 0 ? kNone : 0);
    ops.shapes.push_back(shapes);
  }
  const std::vector<FlopCount> by_deepspeed = CountFlops(trace, FlopRule::kDeepSpeed);
  EXPECT_EQ(by_deepspeed[0].flops, 210);
  EXPECT_EQ(by_deepspeed[1].flops, 0);
  EXPECT_EQ(CountFlops(trace, FlopRule::kCounter)[1].flops, 210);
}

}  // namespace
}  // namespace ranktap::collector
