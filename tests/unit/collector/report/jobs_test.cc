// Jobs that lie in one directory are told apart.
#include "collector/report/jobs.h"

#include <gtest/gtest.h>

#include "collector/report/cells.h"
#include "collector/report/steps/verdict.h"

namespace ranktap::collector {
namespace {

struct Start {
  std::string script, job;
  std::optional<uint32_t> rank;
  uint32_t world_size = 0, pid = 0, parent = 1;
  uint64_t from = 0, until = 0;
};

void Add(collector::Run* run, const Start& start) {
  Trace& trace = run->traces.emplace_back();
  trace.info.rank = start.rank;
  if (start.rank) trace.info.world_size = start.world_size;
  trace.first_ns = static_cast<int64_t>(start.from);
  trace.last_ns = static_cast<int64_t>(start.until);
  trace.closed = true;
  v1::Process& process = *trace.hello.mutable_process();
  process.set_pid(start.pid);
  process.set_start_ticks(start.pid);
  process.set_parent_pid(start.parent);
  process.set_start_realtime_ns(start.from);
  process.add_command_line("/usr/bin/python3");
  process.add_command_line("-u");
  process.add_command_line("/home/me/" + start.script);
  trace.hello.mutable_rank()->set_job(start.job);
}

TEST(Jobs, TwoScriptsInOneDirectoryGetNoCommonVerdict) {
  collector::Run run;
  Add(&run, {.script = "train.py", .job = "none", .rank = 0, .world_size = 2, .pid = 10});
  Add(&run, {.script = "train.py", .job = "none", .rank = 1, .world_size = 2, .pid = 11});
  Add(&run, {.script = "eval.py", .job = "none", .rank = 0, .world_size = 1, .pid = 12, .from = 5});
  EXPECT_EQ(Judge(run).sentence,
            "No verdict: 2 jobs are in this run: 1: train.py, 2 ranks; 2: eval.py, 1 rank; --job 1 "
            "asks about one of them.");
  ASSERT_TRUE(KeepJob(2, &run));
  ASSERT_EQ(run.traces.size(), 1u);
  EXPECT_EQ(run.traces[0].hello.process().pid(), 12u);
  EXPECT_EQ(DescribeJobs(run), "");
}

TEST(Jobs, OneScriptStartedAgainIsAnotherJob) {
  collector::Run run;
  for (const uint64_t from : {0u, 100u}) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      Add(&run, {.script = "train.py",
                 .rank = rank,
                 .world_size = 2,
                 .pid = 10 + rank + static_cast<uint32_t>(from),
                 .from = from,
                 .until = from + 50});
    }
  }
  const std::vector<Job> jobs = FindJobs(run);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].traces, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(jobs[1].traces, (std::vector<uint32_t>{2, 3}));
}

TEST(Jobs, OneJobOfALauncherMayRunSeveralScriptsAndStartThemAgain) {
  collector::Run run;
  Add(&run, {.script = "actor.py", .job = "4711", .rank = 0, .world_size = 2, .pid = 10});
  Add(&run, {.script = "learner.py", .job = "4711", .rank = 1, .world_size = 2, .pid = 11});
  Add(&run,
      {.script = "actor.py", .job = "4711", .rank = 0, .world_size = 2, .pid = 12, .from = 9});
  EXPECT_EQ(DescribeJobs(run), "");
}

TEST(Jobs, WhatAProcessStartsIsOfItsJobAndACompilerIsNone) {
  collector::Run run;
  Add(&run, {.script = "train.py", .rank = 0, .world_size = 1, .pid = 10});
  Add(&run,
      {.script = "worker.py", .rank = 0, .world_size = 1, .pid = 11, .parent = 10, .from = 3});
  Add(&run, {.script = "ninja.py", .pid = 12});
  const std::vector<Job> jobs = FindJobs(run);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].traces, (std::vector<uint32_t>{0, 1}));
}

TEST(Jobs, AProcessWithoutARankHasItsScriptsName) {
  collector::Run run;
  Add(&run, {.script = "train.py", .pid = 10});
  EXPECT_EQ(RankName(run.traces[0]), "train.py (process 10)");
}

}  // namespace
}  // namespace ranktap::collector
