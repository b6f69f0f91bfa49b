// What is told of losses and of a rank that died, on traces made by hand.
#include <gtest/gtest.h>

#include "collector/report/capture/rank_summary.h"
#include "collector/report/reports.h"
#include "ranktap/v1/dictionary.pb.h"
#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

Trace WithLosses(uint32_t writers) {
  Trace trace;
  trace.info.rank = 3;
  for (uint32_t id = 1; id <= writers; ++id) {
    Writer& writer = trace.writers.emplace_back();
    writer.id = id;
    writer.lost[static_cast<size_t>(proto::Loss::kRingFull)] = 10;
    if (id == 1) writer.declared[static_cast<size_t>(proto::Loss::kStore)] = 7;
  }
  trace.writers.emplace_back().id = writers + 1;  // lost nothing
  return trace;
}

TEST(Losses, ThousandsOfWritersMakeOneRowForEachReason) {
  collector::Run run;
  run.traces.push_back(WithLosses(3000));
  const Table table = TabulateLosses(run);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(CellAt<std::string>(table, 0, "reason"), "ring-full");
  EXPECT_EQ(CellAt<int64_t>(table, 0, "events"), 30'000);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "writers"), 3000);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "of_writers"), 3001);
  EXPECT_EQ(CellAt<std::string>(table, 1, "reason"), "store");
  EXPECT_EQ(CellAt<int64_t>(table, 1, "events"), 7);
  EXPECT_EQ(CellAt<int64_t>(table, 1, "writers"), 1);
}

TEST(Gaps, OneThatNobodySawTheEndOfHasNoDuration) {
  collector::Run run;
  Trace& trace = run.traces.emplace_back();
  trace.gaps.push_back({.start = 1'000, .end = 5'000});
  trace.gaps.push_back({.start = 7'000, .end = 8'000, .open = true});
  const Table table = TabulateGaps(run, {});
  EXPECT_EQ(CellAt<int64_t>(table, 0, "duration_ns"), 4'000);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(
      table.rows.at(1).at(ColumnNamed(table, "duration_ns"))));
  EXPECT_EQ(table.notes, std::vector<std::string>{"without a duration: to the end of the process"});
}

int64_t Missing(InsightProgram& program) {
  return SummarizeRank(program->trace()).launches_without_kernel;
}

TEST(Launches, ThoseThatTheEndOfAWindowCutOffAreNotMissing) {
  InsightProgram program;
  program->AddCall("cudaLaunchKernel", 500, 600);  // lost: a later one has its kernel
  program->AddKernel({.launched = 1'000, .start = 1'500, .end = 2'000});
  program->AddCall("cudaLaunchKernel", 2'000, 2'100);
  program->AddCall("cudaLaunchKernel", 2'200, 2'300);
  program->trace().gaps.push_back({.start = 3'000, .end = 9'000, .reason = v1::Gap::REASON_LEVEL});
  EXPECT_EQ(Missing(program), 1);
}

TEST(Launches, AWindowWithoutAnyKernelHasAllMissing) {
  InsightProgram program;
  program->AddCall("cudaLaunchKernel", 500, 600);
  program->AddCall("cudaLaunchKernel", 2'000, 2'100);
  program->trace().gaps.push_back({.start = 3'000, .end = 9'000, .reason = v1::Gap::REASON_LEVEL});
  EXPECT_EQ(Missing(program), 2);
}

TEST(Launches, OfGraphsWhoseIdsAreWrongNoneIsMissing) {
  for (const auto& [version, missing] : {std::pair("130000", 0), std::pair("130101", 1)}) {
    InsightProgram program;
    v1::Library& cupti = *program->trace().hello.add_libraries();
    cupti.set_name("cupti");
    cupti.set_version(version);
    program->trace().gaps.push_back(
        {.start = 1'000, .end = 2'000, .reason = v1::Gap::REASON_LEVEL, .source = "cupti"});
    program->AddCall("cudaGraphLaunch", 3'000, 3'100);
    program->AddKernel({.launched = 4'000, .start = 4'500, .end = 5'000});
    EXPECT_EQ(Missing(program), missing) << version;
  }
}

TEST(Losses, EachWriterHasItsRowsOnRequest) {
  collector::Run run;
  run.traces.push_back(WithLosses(3));
  EXPECT_EQ(TabulateLossesByWriter(run).rows.size(), 4u);
}

// A rank killed inside a call, in a range, after an all-reduce that was announced and one that ran.
Trace DeadRank() {
  Trace trace;
  v1::Dictionary names;
  for (const char* const text : {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)",
                                 "forward", "ncclAllGather", "gemm"}) {
    v1::Text& entry = *names.add_strings();
    entry.set_id(static_cast<uint32_t>(names.strings_size()));
    entry.set_text(text);
  }
  v1::Text& domain = *names.add_nvtx_domains();
  domain.set_id(1);
  domain.set_text("NCCL");
  const std::string bytes = names.SerializeAsString();
  EXPECT_TRUE(trace.dictionary.Add(std::as_bytes(std::span(bytes))));
  trace.info.rank = 2;
  trace.info.status = TraceStatus::kDied;
  trace.info.detail = "killed by signal 9 (SIGKILL)";
  const auto kernel = [&](int64_t start, uint32_t name) {
    trace.kernels.start.push_back(start);
    trace.kernels.end.push_back(start + 5);
    trace.kernels.correlation.push_back(0);
    trace.kernels.lane.push_back(0);
    trace.kernels.launch.push_back(kNone);
    trace.kernels.name.push_back(name);
    trace.kernels.shape.push_back(0);
  };
  trace.lanes.emplace_back();
  kernel(100, 1);
  kernel(200, 4);
  const auto range = [&](int64_t start, uint32_t name, uint16_t in_domain, bool unfinished) {
    trace.ranges.start.push_back(start);
    trace.ranges.end.push_back(start + 1);
    trace.ranges.name.push_back(name);
    trace.ranges.domain.push_back(in_domain);
    trace.ranges.writer.push_back(0);
    trace.ranges.depth.push_back(0);
    trace.ranges.kind.push_back(0);
    trace.ranges.unfinished.push_back(unfinished ? 1 : 0);
  };
  range(90, 2, 0, true);
  range(300, 3, 1, false);
  return trace;
}

TEST(Ranks, ADeadRankIsNamedWithTheLastThingsItDid) {
  collector::Run run;
  run.traces.push_back(DeadRank());
  const Table table = TabulateRanks(run);
  EXPECT_EQ(CellAt<std::string>(table, 0, "last_collective"), "ncclAllGather");
  EXPECT_EQ(CellAt<std::string>(table, 0, "open_range"), "forward");
  EXPECT_EQ(CellAt<std::string>(table, 0, "last_range"), "ncclAllGather");
  EXPECT_EQ(CellAt<int64_t>(table, 0, "unfinished_ranges"), 1);
  ASSERT_FALSE(table.notes.empty());
  EXPECT_EQ(table.notes[0],
            "rank 2 died: killed by signal 9 (SIGKILL); in the range forward; last collective "
            "ncclAllGather; ranges that never ended: 1");
}

TEST(Ranks, WithoutNcclsOwnRangesTheLastCollectiveIsItsKernel) {
  collector::Run run;
  run.traces.push_back(DeadRank());
  run.traces[0].ranges.domain.Truncate(1);
  run.traces[0].ranges.domain.push_back(0);
  const RankRow row = SummarizeRank(run.traces[0]);
  EXPECT_TRUE(row.last_collective.starts_with("ncclDevKernel_AllReduce_Sum_f32_RING_LL"))
      << row.last_collective;
}

TEST(Ranks, ARankThatEndedInOrderHasNoLastWords) {
  collector::Run run;
  run.traces.push_back(DeadRank());
  run.traces[0].info.status = TraceStatus::kClosed;
  for (const std::string& note : TabulateRanks(run).notes) {
    EXPECT_EQ(note.find("last collective"), std::string::npos) << note;
  }
}

}  // namespace
}  // namespace ranktap::collector
