// A sentence rests on facts: where one of them is another, the sentence is another, or gone. Each
// case names a claim, the fact under it, and what is left of the sentence without it.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "collector/import/open_run.h"
#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/report/insights/insight_program.h"
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
                     trace->kernels.start[i] = trace->kernels.end[i] - 80'000;
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
                   for (int64_t& end : trace->kernels.end) end += 20'000;
                 });
               }});
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

}  // namespace
}  // namespace ranktap::collector
