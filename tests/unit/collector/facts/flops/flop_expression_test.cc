#include "collector/facts/flops/flop_expression.h"

#include <gtest/gtest.h>

#include <string>

namespace ranktap::collector {
namespace {

std::optional<int64_t> Of(std::string_view expression) {
  return EvaluateFlops(expression, OpInputs("[[3, 5], [], [5, 7]]", R"(["", "2", ""])"));
}

TEST(FlopExpressionTest, NamesDimensionsAndElementsOfInputs) {
  EXPECT_EQ(Of("2*in0[0]*in0[1]*in2[-1]"), 2 * 3 * 5 * 7);
  EXPECT_EQ(Of("numel(in0) + numel( in2 ) / 5"), 15 + 7);
  EXPECT_EQ(Of("2 * (in0[0] - 1) * 1e3"), 4000);
}

TEST(FlopExpressionTest, AnInputThatIsNotThereMakesNoCount) {
  for (const char* const missing :
       {"in1[0]", "in3[0]", "in0[2]", "in0[-3]", "numel(in1)", "0 - in0[0]", "in0[0]/0"}) {
    EXPECT_EQ(Of(missing), std::nullopt) << missing;
    EXPECT_EQ(WhatIsWrong(missing), std::nullopt) << missing;
  }
}

TEST(FlopExpressionTest, SaysWhereAnExpressionEndsToBeOne) {
  for (const char* const wrong : {"", "in0", "in0[", "in0[x]", "numel", "numel(3)", "2 +", "(2",
                                  "2)", "x", "2 in0[0]", "in-1[0]"}) {
    EXPECT_TRUE(WhatIsWrong(wrong)) << wrong;
    EXPECT_EQ(Of(wrong), std::nullopt) << wrong;
  }
  EXPECT_TRUE(WhatIsWrong("2*in0[0]*y")->find("from 'y' on") != std::string::npos);
  EXPECT_TRUE(WhatIsWrong(std::string(100'000, '(')));
}

}  // namespace
}  // namespace ranktap::collector
