// Where the host waits for the device: the line of each wait, and what it costs.
#include <gtest/gtest.h>

#include "collector/report/report.h"
#include "collector/report/reports.h"
#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

constexpr uint32_t kTrainStack = 1, kNamelessStack = 2;

// Two kernels; the host waits 3 ms for the first, and the device has nothing for 2 ms then.
InsightProgram AProgramThatWaits() {
  InsightProgram program;
  program->AddKernel({.launched = 0, .start = 1 * kMs, .end = 4 * kMs});
  program->AddCall("cudaStreamSynchronize", 1 * kMs, 4 * kMs);
  program->AddKernel({.launched = 5 * kMs, .start = 6 * kMs, .end = 7 * kMs});
  return program;
}

// The only wait gets it.
void SetStack(InsightProgram* program, uint32_t stack) {
  Trace& trace = program->rank().trace();
  v1::Dictionary stacks;
  for (const uint32_t id : {kTrainStack, kNamelessStack}) {
    v1::Stack& added = *stacks.add_stacks();
    added.set_id(id);
    added.add_frames(0x1000 * id);
  }
  const std::string bytes = stacks.SerializeAsString();
  ASSERT_TRUE(trace.dictionary.Add(std::as_bytes(std::span(bytes))));
  trace.symbols.Add(0x1000, {.module = "train", .frames = {{"Train()", "/src/train.cu", 155}}});
  trace.symbols.Add(0x2000, {.module = "train", .frames = {{"+0x1f2c", "", 0}}});
  trace.api_calls.stack.PadTo(trace.api_calls.size());
  trace.api_calls.stack[1] = stack;
}

TEST(Syncs, SayTheLineOfANativeStackAndWhatItsWaitsCost) {
  InsightProgram program = AProgramThatWaits();
  SetStack(&program, kTrainStack);
  const Table table = TabulateSyncs(program.run(), {});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(table, 0, "call"), "cudaStreamSynchronize");
  EXPECT_EQ(CellAt<std::string>(table, 0, "line"), "Train() at train.cu:155");
  EXPECT_EQ(CellAt<int64_t>(table, 0, "total_ns"), 3 * kMs);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "idle_after_ns"), 2 * kMs);
}

TEST(Syncs, PreferTheLineOfThePythonStack) {
  InsightProgram program = AProgramThatWaits();
  SetStack(&program, kTrainStack);
  program->AddOperator("aten::item", 1 * kMs, 4 * kMs, "train.py(31): step");
  const Table table = TabulateSyncs(program.run(), {});
  EXPECT_EQ(CellAt<std::string>(table, 0, "line"), "train.py(31): step");
  EXPECT_EQ(CellAt<std::string>(table, 0, "operator"), "aten::item");
}

TEST(Syncs, HaveNoLineWhereTheStackHasNoNames) {
  InsightProgram program = AProgramThatWaits();
  SetStack(&program, kNamelessStack);
  EXPECT_EQ(CellAt<std::string>(TabulateSyncs(program.run(), {}), 0, "line"), "");
}

TEST(Syncs, AskForTheNamesOfStacks) { EXPECT_TRUE(FindReport("syncs")->needs_symbols); }

}  // namespace
}  // namespace ranktap::collector
