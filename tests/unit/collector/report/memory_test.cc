// What a process has in RAM stands beside what its allocators told.
#include <gtest/gtest.h>

#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

TEST(Memory, TheProcesssOwnSizeStandsBesideWhatAllocatorsTold) {
  collector::Run run;
  Trace& trace = run.traces.emplace_back();
  Allocations& all = trace.allocations;
  all.start.push_back(5);
  all.end.push_back(5);
  all.writer.push_back(0);
  all.bytes.push_back(4096);
  trace.cost.set_resident_bytes(1'000'000);
  trace.cost.set_peak_resident_bytes(2'000'000);
  const Table table = TabulateMemory(run, {});
  ASSERT_EQ(table.rows.size(), 2u);
  const size_t row = RowWith<std::string>(table, "allocator", "the whole process (RSS)");
  EXPECT_EQ(CellAt<int64_t>(table, row, "peak_bytes"), 2'000'000);
  EXPECT_EQ(CellAt<int64_t>(table, row, "at_end_bytes"), 1'000'000);
  EXPECT_TRUE(
      std::holds_alternative<std::monostate>(table.rows[row][ColumnNamed(table, "allocations")]));
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_NE(table.notes[0].find("Not seen: other libraries' memory"), std::string::npos);
}

TEST(Memory, ASnapshotOfAProgramThatRanOutSaysSoFirst) {
  collector::Run run;
  Trace& trace = run.traces.emplace_back();
  trace.origin = TraceOrigin::kMemory;
  EXPECT_FALSE(Judge(run).sentence.starts_with("Out of memory"));
  trace.info.notes.emplace_back("out of memory: 1073741824 bytes were asked for");
  run.memo.Reset();
  EXPECT_TRUE(Judge(run).sentence.starts_with(
      "Out of memory: 1073741824 bytes were asked for. No verdict: "))
      << Judge(run).sentence;
}

// Four steps of 10 ms, of which `recorded` have an allocation.
void AddStepsWithMemory(int64_t recorded, InsightRank* rank) {
  rank->trace().origin = TraceOrigin::kCapture;
  Allocations& all = rank->trace().allocations;
  for (int64_t step = 0; step < 4; ++step) {
    rank->AddStep(step * 10 * kMs, (step + 1) * 10 * kMs);
    if (step >= recorded) continue;
    all.start.push_back(step * 10 * kMs + kMs);
    all.end.push_back(all.start[all.size() - 1]);
    all.writer.push_back(0);
    all.bytes.push_back(4096);
  }
}

TEST(Memory, EachTableSaysInHowManyStepsAllocationsAreRecorded) {
  InsightProgram program(2);
  AddStepsWithMemory(1, &program.rank(0));
  AddStepsWithMemory(2, &program.rank(1));
  for (const Table& table :
       {TabulateMemory(program.run(), {}), TabulateMemoryPeak(program.run(), {}),
        TabulateMemoryModules(program.run(), {}), TabulateMemorySteps(program.run(), {}),
        TabulateMemoryOverTime(program.run(), {})}) {
    EXPECT_EQ(
        std::ranges::count(table.notes, "allocations are recorded in 1 to 2 of 4 steps, by rank"),
        1)
        << table.title;
  }
}

TEST(Memory, NothingIsSaidOfStepsWhereAllAreRecorded) {
  InsightProgram program;
  AddStepsWithMemory(4, &program.rank());
  EXPECT_TRUE(TabulateMemoryPeak(program.run(), {}).notes.empty());
}

// Eight steps of 10 ms, each with an output of 1 MiB, which lives for so many steps.
InsightProgram AListOfOutputs(int64_t kept_for) {
  InsightProgram program;
  struct Change {
    int64_t at = 0, bytes = 0;
    uint64_t address = 0;
  };
  std::vector<Change> changes;
  for (int64_t step = 0; step < 8; ++step) {
    const int64_t at = step * 10 * kMs + kMs;
    program->AddStep(step * 10 * kMs, (step + 1) * 10 * kMs);
    Ranges& ranges = program->trace().ranges;
    ranges.payload[ranges.size() - 1] = static_cast<uint64_t>(step);
    program->AddOperator("aten::addmm", at, at + kMs, "train.py(12): step");
    const auto address = static_cast<uint64_t>(step + 1) << 24;
    changes.push_back({at + 1, 1 << 20, address});
    changes.push_back({at + kept_for * 10 * kMs - 1, -(1 << 20), address});
  }
  std::ranges::sort(changes, {}, &Change::at);
  Allocations& all = program->trace().allocations;
  for (const Change& change : changes) {
    if (change.at > 80 * kMs) break;
    all.start.push_back(change.at);
    all.end.push_back(change.at);
    all.writer.push_back(0);
    all.bytes.push_back(change.bytes);
    all.address.push_back(change.address);
  }
  return program;
}

TEST(MemoryGrowthRule, FiresOnOutputsThatAListKeepsAndNotOnThoseOfTheLastSteps) {
  InsightProgram kept = AListOfOutputs(100), replaced = AListOfOutputs(2);
  const Insight found = TheFinding(kept.run(), "memory-growth");
  EXPECT_EQ(found.finding,
            "Memory on the CPU grows with each step: steps 0 to 5 leave at least 1.0 MiB each, "
            "which the program still holds when step 7 ends.");
  EXPECT_EQ(found.where, "aten::addmm at train.py(12): step");
  EXPECT_FALSE(found.saving_ns);
  EXPECT_TRUE(IsSilent(replaced.run(), "memory-growth"));
}

TEST(MemoryGrowthRule, CannotTellOfFewerThanFiveStepsInARow) {
  InsightProgram program;
  AddStepsWithMemory(4, &program.rank());
  program->trace().allocations.address.PadTo(4);
  EXPECT_TRUE(IsUnchecked(program.run(), "memory-growth"));
}

}  // namespace
}  // namespace ranktap::collector
