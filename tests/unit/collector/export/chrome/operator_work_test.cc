// Device work of our own capture belongs to operators: a trace that the agent made of the buffers
// of a stand-in of CUPTI, with operators put around its launches. No device of NVIDIA's has
// delivered any of this.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "collector/import/open_run.h"
#include "collector/trace/operator_join.h"

namespace ranktap::collector {
namespace {

void AddOperator(uint16_t writer, int64_t start, int64_t end, Trace* trace) {
  Operators& ops = trace->operators;
  ops.start.push_back(start);
  ops.end.push_back(end);
  ops.name.push_back(trace->kernels.name[0]);
  ops.writer.push_back(writer);
  ops.kind.push_back(static_cast<uint8_t>(OperatorKind::kOperator));
}

// Two operators around each launch of a kernel, one in the other.
void AddOperators(Trace* trace) {
  const ApiCalls& calls = trace->api_calls;
  std::vector<bool> launches(calls.size());
  for (const uint32_t launch : trace->kernels.launch) {
    if (launch != kNone) launches[launch] = true;
  }
  for (size_t call = 0; call < calls.size(); ++call) {
    if (!launches[call]) continue;
    AddOperator(calls.writer[call], calls.start[call], calls.end[call] + 1, trace);
    AddOperator(calls.writer[call], calls.start[call], calls.end[call], trace);
  }
  NestOperators(trace);
  JoinOperators(trace);
}

TEST(OperatorWork, EachKernelOfACaptureIsOfTheInnermostOperatorAroundItsLaunch) {
  Result<collector::Run> run = OpenRun({RANKTAP_TEST_DATA "/../golden/inputs/standin-full"});
  ASSERT_TRUE(run);
  Trace& trace = run->traces[0];
  ASSERT_EQ(trace.operators.size(), 0u);
  AddOperators(&trace);
  size_t launched = 0;
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    const uint32_t launch = trace.kernels.launch[i];
    if (launch == kNone) {
      EXPECT_EQ(trace.kernels.op.At(i), 0u);
      continue;
    }
    ++launched;
    ASSERT_NE(trace.kernels.op.At(i), 0u);
    const uint32_t op = trace.kernels.op.At(i) - 1;
    EXPECT_EQ(trace.operators.writer[op], trace.api_calls.writer[launch]);
    EXPECT_EQ(trace.operators.start[op], trace.api_calls.start[launch]);
    EXPECT_EQ(trace.operators.end[op], trace.api_calls.end[launch]);
    EXPECT_NE(trace.operators.parent[op], kNone);
    // What Chrome's export calls both by.
    EXPECT_EQ(trace.kernels.external_id.At(i), trace.operators.external_id.At(op));
  }
  EXPECT_GT(launched, 20u);
}

}  // namespace
}  // namespace ranktap::collector
