// A sentence rests on facts: where one of them is another, the sentence is another, or gone. Each
// case names a claim, the fact under it, and what is left of the sentence without it.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/roofline/roofline.h"
#include "collector/import/open_run.h"
#include "collector/report/framework/module_summary.h"
#include "collector/report/reports.h"
#include "collector/report/steps/throughput.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/report/claims/claim_programs.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

using Mutate = std::function<void(Run*)>;

struct Mutation {
  std::string name, vanishes;  // a part of the sentence
  Mutate mutate;
};

void ForEachTrace(Run* run, const std::function<void(Trace*)>& change) {
  for (Trace& trace : run->traces) {
    change(&trace);
    trace.memo.Reset();
  }
  run->memo.Reset();
}

void LoseEvents(Run* run) {
  ForEachTrace(run, [](Trace* trace) {
    trace->not_read = 1 + trace->events;
    trace->not_read_most = "events of category odd";
  });
}
void ForgetLaunches(Run* run) {
  ForEachTrace(run, [](Trace* trace) {
    for (uint32_t& launch : trace->kernels.launch) launch = kNone;
  });
}
void KeepOneRank(Run* run) {
  run->traces.resize(1);
  run->memo.Reset();
}
void ForgetRanges(Run* run) {
  ForEachTrace(run, [](Trace* trace) { trace->ranges = Ranges(); });
}

SyntheticJob JobWith(Lateness late) {
  return SyntheticJob({.ranks = 4, .layers = 1, .late = {late}});
}

// The part stands in the sentence of the run as it is, and no longer where the fact is changed.
void Expect(const std::function<SyntheticJob()>& job_of, const Mutation& mutation) {
  SyntheticJob job = job_of();
  const std::string before = Judge(job.run()).sentence;
  EXPECT_NE(before.find(mutation.vanishes), before.npos) << mutation.name << ": " << before;
  SyntheticJob changed = job_of();
  mutation.mutate(&changed.run());
  const std::string after = Judge(changed.run()).sentence;
  EXPECT_EQ(after.find(mutation.vanishes), after.npos) << mutation.name << ": " << after;
}

TEST(Mutations, OfALateRank) {
  const auto job = [] { return JobWith({.rank = 2, .cause = Cause::kHost, .ns = 900'000}); };
  const std::string blames = "wait for rank 2";
  Expect(job, {"lost events", blames, &LoseEvents});
  Expect(job, {"no other rank", blames, &KeepOneRank});
  Expect(job, {"another number", blames, [](collector::Run* run) {
                 std::swap(run->traces[1].info.rank, run->traces[2].info.rank);
                 run->memo.Reset();
               }});
  Expect(job, {"all come at once", blames, [](collector::Run* run) {
                 ForEachTrace(run, [](Trace* trace) {
                   for (size_t i = 0; i < trace->kernels.size(); ++i) {
                     if (trace->lanes[trace->kernels.lane[i]].stream != 13) continue;
                     trace->kernels.start.Set(i, trace->kernels.end[i] - 80'000);
                   }
                 });
               }});
}

TEST(Mutations, OfDataLoading) {
  const auto job = [] { return SyntheticJob({.ranks = 1, .layers = 1, .data_ns = 5'000'000}); };
  const std::string loads = "loads data";
  Expect(job, {"lost events", loads, &LoseEvents});
  Expect(job, {"no ranges", loads, &ForgetRanges});
  Expect(job, {"no launches", loads, &ForgetLaunches});
}

TEST(Mutations, OfWhatCanBeWonBack) {
  const auto job = [] { return SyntheticJob({.ranks = 1, .layers = 1, .host_ns = 5'000'000}); };
  const std::string host = "because the host launches too late (host-bound)";
  Expect(job, {"no launches", host, &ForgetLaunches});
  Expect(job, {"longer kernels", "4.776 ms", [](collector::Run* run) {
                 ForEachTrace(run, [](Trace* trace) {
                   TimeColumn& end = trace->kernels.end;
                   for (size_t i = 0; i < end.size(); ++i) end.Set(i, end[i] + 20'000);
                 });
               }});
}

// A cell of a run as it is, and of one whose fact is another. Empty: nothing is said.
Cell FigureOf(const Table& table, const std::string& column) {
  return table.rows.at(0)[ColumnNamed(table, column)];
}
bool IsWithdrawn(const Cell& cell) { return std::holds_alternative<std::monostate>(cell); }

TEST(Mutations, OfATransfer) {
  const auto name_of = [](const Mutate& mutate) {
    SyntheticJob job({.ranks = 4, .layers = 1, .transfer_ns = 2'000'000});
    mutate(&job.run());
    std::string names;
    const Table table = TabulateWaterfall(job.run(), {});
    for (size_t row = 0; row < table.rows.size(); ++row) {
      names += CellAt<std::string>(table, row, "cause") + "; ";
    }
    return names;
  };
  EXPECT_NE(name_of([](collector::Run*) {}).find("exposed transfer"), std::string::npos);
  const std::string alone = name_of(&KeepOneRank);
  EXPECT_EQ(alone.find("exposed transfer"), std::string::npos) << alone;
  EXPECT_NE(alone.find("exposed communication"), std::string::npos) << alone;
}

// 4 of each 10 ms, or 8 where the kernels take as long; nothing where as many launches have no
// work.
TEST(Mutations, OfABusyDevice) {
  const auto busy = [](const std::function<void(InsightProgram*)>& mutate) {
    InsightProgram program = AKernelLaunched(6 * kMs);
    mutate(&program);
    return FigureOf(TabulateKeyFigures(program.run(), {}), "busy_percent");
  };
  EXPECT_EQ(busy([](InsightProgram*) {}), Cell(40.0));
  EXPECT_EQ(busy([](InsightProgram* program) {
              TimeColumn& start = (*program)->trace().kernels.start;
              for (size_t i = 0; i < start.size(); ++i) start.Set(i, start[i] - 4 * kMs);
            }),
            Cell(80.0));
  EXPECT_TRUE(IsWithdrawn(busy([](InsightProgram* program) {
    (*program)->trace().origin = TraceOrigin::kKineto;
    for (int64_t at = 0; at < 100 * kMs; at += 10 * kMs) {
      (*program)->AddCall("cudaLaunchKernel", 100 * kMs + at, 100 * kMs + at + kUs);
    }
  })));
}

// 2 x 8192^3 a step of 10 ms are 11.1 % of an H100's peak for 16 bits.
TEST(Mutations, OfFlopsAndTheirPeak) {
  const auto share = [](std::string_view shapes, size_t recorded, std::string_view device) {
    InsightProgram program = AProduct(shapes, recorded);
    program->trace().hello.mutable_devices(0)->set_name(std::string(device));
    return FigureOf(TabulateThroughput(program.run(), {}), "mfu_percent");
  };
  constexpr std::string_view kShapes = "[[8192, 8192], [8192, 8192]]",
                             kH100 = "NVIDIA H100 80GB HBM3";
  EXPECT_NEAR(std::get<double>(share(kShapes, 10, kH100)), 11.1, 0.05);
  EXPECT_NEAR(std::get<double>(share("[[16384, 8192], [8192, 8192]]", 10, kH100)), 22.2, 0.1);
  EXPECT_NEAR(std::get<double>(share(kShapes, 10, "NVIDIA A100-SXM4-80GB")), 35.2, 0.1);
  EXPECT_TRUE(IsWithdrawn(share(kShapes, 4, kH100))) << "most shapes are not recorded";
  EXPECT_TRUE(IsWithdrawn(share("[[131072, 8192], [8192, 8192]]", 10, kH100))) << "178 %";
  EXPECT_TRUE(IsWithdrawn(share(kShapes, 10, "Device of no data sheet")));
}

// Files that other tools wrote: nothing of what is claimed of them is left where the reader lost
// events, or nothing ran.
TEST(Mutations, OfFilesOfOtherTools) {
  for (const std::string path : {"/et/pair", "/et/gloo", "/kineto/torch-2.15/trace.json.gz",
                                 "/kineto/torch-2.1/trace.json.gz", "/et/linked.0.json.gz"}) {
    Result<collector::Run> run = OpenRun({RANKTAP_TEST_DATA + path});
    ASSERT_TRUE(run.ok()) << run.message();
    const Verdict claimed = Judge(*run);
    EXPECT_FALSE(claimed.refused) << claimed.sentence;
    LoseEvents(&*run);
    const Verdict lost = Judge(*run);
    EXPECT_TRUE(lost.refused) << lost.sentence;
    EXPECT_TRUE(lost.losses.empty());
    EXPECT_NE(TabulateDiff(*run, *run).title.find("What changed is undecided"), std::string::npos);
  }
}

// Nothing is left to check between these tables: they add up the same counts.
TEST(FlopsOfTables, RooflineModulesAndThroughputHaveTheFlopsOfTheOperators) {
  size_t compared = 0;
  for (const std::string path : {"/et/gloo", "/kineto/torch-2.15/trace.json.gz",
                                 "/kineto/torch-2.1/trace.json.gz", "/et/linked.0.json.gz"}) {
    const Result<collector::Run> run = OpenRun({RANKTAP_TEST_DATA + path});
    ASSERT_TRUE(run.ok()) << run.message();
    const Trace& trace = run->traces[0];
    int64_t operators = 0, points = 0, roots = 0;
    for (const FlopCount& count : CountFlops(trace, FlopRule::kCounter)) operators += count.flops;
    for (const RooflinePoint& point : MeasureRoofline(trace).points) points += point.flops;
    EXPECT_EQ(points, operators) << path;
    for (const ModuleRow& row : SummarizeModules(run->traces)) {
      const bool is_root = row.name.find('.') == row.name.npos;
      if (is_root) roots += row.forward_flops + row.backward_flops + row.recompute_flops;
    }
    const std::optional<Throughput> of = MeasureThroughput(*run, trace, {});
    if (of) {
      EXPECT_LE(roots, of->model_flops() + of->recompute_flops) << path;
    }
    compared += operators > 0 ? 1 : 0;
  }
  EXPECT_GE(compared, 3u);
}

}  // namespace
}  // namespace ranktap::collector
