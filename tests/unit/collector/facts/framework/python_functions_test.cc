// The timeline of Python functions, of operators whose stacks are planted.
#include "collector/facts/framework/python_functions.h"

#include <gtest/gtest.h>

#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kForward = "net.py(7): forward;train.py(31): step;train.py(40): main";
constexpr std::string_view kLoss = "train.py(32): step;train.py(40): main";
constexpr std::string_view kMainFunction = "train.py(41): main";

InsightProgram ACapture() {
  InsightProgram program;
  program->trace().origin = TraceOrigin::kCapture;
  return program;
}

TEST(PythonFunctions, LastFromTheirFirstOperatorToTheirLastWithTheirCallersAround) {
  InsightProgram program = ACapture();
  program->AddOperator("aten::linear", 10, 20, kForward);
  program->AddOperator("aten::relu", 25, 30, kForward);
  program->AddOperator("aten::mse_loss", 40, 50, kLoss);
  program->AddOperator("aten::add_", 60, 70, kMainFunction);
  const std::vector<PythonFunction> found = PythonFunctions(program.run().traces[0]);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "train.py: main");
  EXPECT_EQ(std::pair(found[0].start, found[0].end), std::pair(int64_t{10}, int64_t{70}));
  EXPECT_EQ(found[0].line, 40u);
  EXPECT_EQ(found[0].parent, kNone);
  EXPECT_EQ(found[1].name, "train.py: step");
  EXPECT_EQ(std::pair(found[1].start, found[1].end), std::pair(int64_t{10}, int64_t{50}));
  EXPECT_EQ(found[1].parent, 0u);
  EXPECT_EQ(found[2].name, "net.py: forward");
  EXPECT_EQ(std::pair(found[2].start, found[2].end), std::pair(int64_t{10}, int64_t{30}));
  EXPECT_EQ(found[2].parent, 1u);
}

TEST(PythonFunctions, NeverOutlastWhatBeginsAfterThem) {
  InsightProgram program = ACapture();
  program->AddOperator("custom::op", 10, 90, kForward);
  program->AddOperator("aten::mul", 20, 30, kMainFunction);  // inside of it
  for (const PythonFunction& function : PythonFunctions(program.run().traces[0])) {
    EXPECT_EQ(function.end, function.name == "train.py: main" ? 90 : 20) << function.name;
  }
}

TEST(PythonFunctions, DoNotGoOnOverStepsWithoutOperators) {
  InsightProgram program = ACapture();
  for (int64_t step = 0; step < 3; ++step) {
    program->AddStep(step * 10 * kMs, (step + 1) * 10 * kMs);
    if (step == 1) continue;
    program->AddOperator("aten::linear", step * 10 * kMs + 1, step * 10 * kMs + 2, kMainFunction);
  }
  const std::vector<PythonFunction> found = PythonFunctions(program.run().traces[0]);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].end, 2);
  EXPECT_EQ(found[1].start, 20 * kMs + 1);
}

TEST(PythonFunctions, OfAFileOfTorchProfilersAreItsOwnCalls) {
  InsightProgram program;
  program->trace().origin = TraceOrigin::kKineto;
  program->AddOperator("aten::linear", 10, 20, kForward);
  EXPECT_TRUE(PythonFunctions(program.run().traces[0]).empty());
}

}  // namespace
}  // namespace ranktap::collector
