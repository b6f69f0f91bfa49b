#include "collector/hang/wait_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "collector/hang/call_place.h"

namespace ranktap::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr const char* kC10d = "/site-packages/torch/distributed/distributed_c10d.py";

// What a rank does between looks.
struct Doing {
  std::vector<StackFrame> frames;
  std::string does = "sleeps";
  char state = 'S';
  uint64_t cpu_ns = 0, sleeps = 0, bytes = 0, faults = 0;  // a second
  pid_t tracer = 0;
  StackMotion motion = StackMotion::kUnknown;
  uint64_t queue_ns = 0;  // a second
  std::string cuda_call = "";
  uint64_t work_ended = 0;  // a second
};

Doing InCall(const std::string& function, uint32_t line) {
  return {.frames = {{kC10d, function, 3000}, {"/job/train.py", "main", line}},
          .does = "waits for a lock"};
}
// Spins in it, as CUDA does by default.
Doing InCuda(const std::string& call, uint32_t line) {
  return {.frames = {{"/job/train.py", "main", line}},
          .does = "runs",
          .state = 'R',
          .cpu_ns = kSecond,
          .cuda_call = call};
}
Doing At(uint32_t line, const std::string& function = "evaluate") {
  return {.frames = {{"/job/eval.py", function, line}, {"/job/train.py", "main", 9}}};
}

// Looks at its ranks once a second; its clock stands still while all are stopped, as HangWatch's.
class Job {
 public:
  explicit Job(const WaitLimits& limits = {.waits_after_ns = 20 * kSecond}) : rules(limits) {}

  void Look(const std::vector<Doing>& ranks) {
    if (!rules.AllStopped()) now += kSecond;
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      if (gone.contains(rank)) continue;
      const Doing& doing = ranks[rank];
      RankLook& look = looks[rank];
      look.rank = rank;
      look.pid = static_cast<pid_t>(100 + rank);
      look.state = doing.state;
      look.tracer = doing.tracer;
      look.cpu_ns += doing.cpu_ns;
      look.queue_ns += doing.queue_ns;
      look.sleeps += doing.sleeps;
      look.work.bytes += doing.bytes;
      look.work.faults += doing.faults;
      look.cuda_call_ns = look.cuda_call == doing.cuda_call ? look.cuda_call_ns + kSecond : 0;
      look.cuda_call = doing.cuda_call;
      look.work_ended += doing.work_ended;
      look.work.work_ended = look.work_ended;
      look.is_full = true;
      look.motion = doing.motion;
      look.stacks = {.process = look.pid,
                     .threads = {{.thread = look.pid, .does = doing.does, .frames = doing.frames}}};
      rules.Take(look, now);
    }
  }
  WaitVerdict After(int seconds, const std::vector<Doing>& ranks) {
    for (int i = 0; i < seconds; ++i) Look(ranks);
    return rules.Judge(now);
  }
  void End(uint32_t rank, int wait_status) {
    gone.insert(rank);
    rules.TakeEnded(
        {.rank = rank, .pid = static_cast<pid_t>(100 + rank), .end = {.wait_status = wait_status}});
  }

  WaitRules rules;
  uint64_t now = 0;
  std::map<uint32_t, RankLook> looks;
  std::set<uint32_t> gone;
};

TEST(WaitRules, ARankThatStandsElsewhereIsNamedWithItsLineOnceTheOthersHaveWaitedForT) {
  Job job;
  const std::vector<Doing> ranks = {InCall("all_reduce", 31), At(88), InCall("all_reduce", 31)};
  EXPECT_EQ(job.After(20, ranks).grade, WaitGrade::kNone);
  const WaitVerdict verdict = job.After(2, ranks);
  EXPECT_EQ(verdict.grade, WaitGrade::kHang);
  EXPECT_EQ(verdict.cause, WaitCause::kStuck);
  EXPECT_THAT(verdict.awaited, ElementsAre(1));
  EXPECT_EQ(verdict.sentence,
            "Rank 1 did not enter AllReduce (train.py:31); 2 of 3 wait since 21 s. "
            "Its main thread sleeps at eval.py:88 ← train.py:9.");
}

TEST(WaitRules, ARankThatChangesLinesIsWaitedForAndNoHangUntilHangAfter) {
  Job job({.waits_after_ns = 20 * kSecond, .hang_after_ns = 60 * kSecond});
  WaitVerdict verdict;
  for (uint32_t second = 0; second < 50; ++second) {
    Doing evaluates = At(30 + second % 3);
    evaluates.state = 'R';
    evaluates.cpu_ns = kSecond;
    verdict = job.After(1, {evaluates, InCall("all_reduce", 31)});
    EXPECT_NE(verdict.grade, WaitGrade::kHang);
  }
  EXPECT_EQ(verdict.grade, WaitGrade::kWaits);
  EXPECT_THAT(verdict.sentence,
              HasSubstr("for rank 0, which runs eval.py:31 ← train.py:9 (lines move, 100 % CPU)"));
  Doing still = At(31);
  still.bytes = 1;
  EXPECT_EQ(job.After(20, {still, InCall("all_reduce", 31)}).grade, WaitGrade::kHang);
}

TEST(WaitRules, ARankThatWritesAtOneLineMoves) {
  Job job;
  Doing saves = At(50, "save");
  saves.bytes = 4096;
  const WaitVerdict verdict = job.After(60, {saves, InCall("barrier", 12)});
  EXPECT_EQ(verdict.cause, WaitCause::kMoves);
  EXPECT_EQ(verdict.grade, WaitGrade::kWaits);
}

TEST(WaitRules, ARankThatSavesOnAMachineThatStoodStillForSecondsIsNotStuck) {
  Job job({.waits_after_ns = 5 * kSecond});
  Doing saves = At(50, "save");
  saves.bytes = 4096;
  EXPECT_EQ(job.After(12, {saves, InCall("barrier", 12)}).cause, WaitCause::kMoves);
  saves.bytes = 0;
  job.now += 2 * kSecond;
  EXPECT_EQ(job.After(1, {saves, InCall("barrier", 12)}).cause, WaitCause::kMoves);
  EXPECT_EQ(job.After(2, {saves, InCall("barrier", 12)}).cause, WaitCause::kStuck);
}

TEST(WaitRules, ALongComputationThatTakesMemoryMovesAndALoopThatTakesNoneDoesNot) {
  Doing computes = At(60);
  computes.state = 'R';
  computes.cpu_ns = kSecond;
  computes.faults = 10;
  computes.motion = StackMotion::kStays;
  Job job;
  EXPECT_EQ(job.After(60, {computes, InCall("barrier", 12)}).cause, WaitCause::kMoves);
  computes.faults = 0;
  Job other, loops;
  EXPECT_EQ(other.After(60, {computes, InCall("barrier", 12)}).cause, WaitCause::kStuck);
  computes.motion = StackMotion::kChanges;  // short operators: the same stack most of the time
  EXPECT_EQ(loops.After(60, {computes, InCall("barrier", 12)}).cause, WaitCause::kMoves);
  Job loaded;  // a machine on which it gets a fifth of a processor
  computes.cpu_ns = kSecond / 5;
  computes.queue_ns = kSecond - computes.cpu_ns;
  EXPECT_EQ(loaded.After(60, {computes, InCall("barrier", 12)}).cause, WaitCause::kMoves);
  computes.motion = StackMotion::kUnknown;  // others had the processor while it was looked at
  EXPECT_EQ(loaded.After(60, {computes, InCall("barrier", 12)}).cause, WaitCause::kMoves);
  computes.motion = StackMotion::kStays;
  EXPECT_EQ(loaded.After(25, {computes, InCall("barrier", 12)}).cause, WaitCause::kStuck);
  Job native;  // a loop in C with no Python around it
  computes.frames.clear();
  computes.motion = StackMotion::kUnknown;
  EXPECT_EQ(native.After(60, {computes, InCall("barrier", 12)}).cause, WaitCause::kStuck);
}

TEST(WaitRules, AStoppedRankADebuggedOneAndOneThatReadsATerminalAreToldApart) {
  Doing stopped = At(7), debugged = At(7), asks = At(7);
  stopped.state = 'T';
  debugged.tracer = 5;
  asks.does = "reads /dev/pts/3 (descriptor 0)";
  Job one, two, three;
  EXPECT_EQ(one.After(25, {InCall("barrier", 1), stopped}).cause, WaitCause::kStopped);
  const WaitVerdict held = two.After(25, {InCall("barrier", 1), debugged});
  EXPECT_EQ(held.cause, WaitCause::kDebugged);
  EXPECT_EQ(held.grade, WaitGrade::kWaits);
  const WaitVerdict asked = three.After(1000, {InCall("barrier", 1), asks});
  EXPECT_EQ(asked.cause, WaitCause::kAsksTerminal);
  EXPECT_EQ(asked.grade, WaitGrade::kWaits);
}

TEST(WaitRules, ARankThatEndedWhileOthersWaitIsTheCauseAlsoWithExitStatus0) {
  Job job;
  job.Look({InCall("barrier", 1), At(7)});
  job.Look({InCall("barrier", 1), At(7)});
  job.End(1, 0);
  WaitVerdict verdict = job.After(25, {InCall("barrier", 1)});
  EXPECT_EQ(verdict.grade, WaitGrade::kHang);
  EXPECT_EQ(verdict.sentence,
            "Rank 1 has ended, by exit status 0, and did not enter Barrier (train.py:1); "
            "1 of 2 waits since 26 s.");
  Job killed;
  killed.Look({InCall("barrier", 1), At(7)});
  killed.End(1, SIGKILL);
  EXPECT_THAT(killed.After(25, {InCall("barrier", 1)}).sentence, HasSubstr("signal 9 (SIGKILL)"));
}

TEST(WaitRules, ARankThatEndedWithoutAWordHasTheLastPlaceThatItWasSeenAt) {
  Job job;
  job.Look({InCall("barrier", 1), At(7)});
  job.rules.TakeEnded({.rank = 1,
                       .pid = 101,
                       .end = {.wait_status = SIGKILL, .was_out_of_memory = true},
                       .last_place = "train.py:7",
                       .last_age_ns = 400'000'000});
  job.gone.insert(1);
  EXPECT_EQ(job.After(25, {InCall("barrier", 1)}).sentence,
            "Rank 1 has ended, by signal 9 (SIGKILL) of the kernel, which was short of memory, and "
            "did not enter Barrier (train.py:1); 1 of 2 waits since 25 s. Its last stack, 0.4 s "
            "before it was seen to have ended, is at train.py:7.");
}

TEST(WaitRules, OfTwoRanksThatEndedBetweenTwoLooksTheFirstIsTheCause) {
  Job job;
  const Doing waits = InCall("barrier", 1);
  job.Look({waits, waits, waits});
  job.End(2, SIGTERM);
  job.End(0, 1 << 8);
  const WaitVerdict verdict = job.After(25, {waits, waits, waits});
  EXPECT_THAT(verdict.sentence,
              StartsWith("Rank 2 has ended, by signal 15 (SIGTERM): a scheduler, "
                         "kill, or a launcher for a reason of its own, and did "));
  EXPECT_THAT(verdict.awaited, ElementsAre(0, 2));
}

TEST(WaitRules, ARankThatWaitsForAChildThatHasEndedIsToldByThatEnd) {
  RankLook look;
  look.stacks = {
      .process = 7,
      .threads = {
          {.thread = 7, .does = "waits for a lock", .frames = {{"/job/train.py", "main", 31}}}}};
  const EndedChild quiet{.pid = 8, .end = {.wait_status = 0}, .age_ns = 12 * kSecond};
  const EndedChild killed{
      .pid = 9, .is_loaders = true, .end = {.wait_status = SIGKILL}, .age_ns = 13 * kSecond};
  const std::string main = "Its main thread waits for a lock at train.py:31";
  look.ended_children = {quiet};
  EXPECT_EQ(DescribePlace(look), main + "; its child process 8 ended 12 s ago, by exit status 0");
  look.ended_children = {quiet, killed, quiet};
  EXPECT_THAT(DescribePlace(look),
              StartsWith(main + "; its DataLoader worker 9 ended 13 s ago, by signal 9 (SIGKILL)"));
  look.ended_children = {quiet};
  look.workers.emplace_back();
  EXPECT_EQ(DescribePlace(look), main);
  look.ended_children = {{.pid = 10, .end = {.wait_status = 3 << 8}, .age_ns = kSecond}};
  look.stacks.threads[0].frames.insert(
      look.stacks.threads[0].frames.begin(),
      {"/site-packages/torch/utils/data/dataloader.py", "_try_get_data", 1300});
  EXPECT_THAT(DescribePlace(look),
              HasSubstr("; its DataLoader worker 10 ended 1.0 s ago, by exit status 3"));
}

TEST(WaitRules, AMainThreadThatAnExceptionEndedIsToldByTheThreadThatItWaitsFor) {
  RankLook look;
  look.stacks = {
      .process = 7,
      .threads = {{.thread = 7,
                   .does = "waits for a lock",
                   .frames = {{"/usr/lib/python3.11/threading.py", "_shutdown", 1590}}},
                  {.thread = 8, .does = "sleeps", .frames = {{"/job/train.py", "report", 12}}}}};
  EXPECT_EQ(DescribePlace(look),
            "Its main thread has left the program, at its end or by an exception, and waits for a "
            "thread that sleeps at train.py:12");
}

TEST(WaitRules, OfRanksInDifferentCallsTheMinorityIsNamedAndOfTwoNeither) {
  Job job;
  const Doing reduce = InCall("all_reduce", 31);
  WaitVerdict verdict = job.After(25, {InCall("barrier", 40), reduce, reduce});
  EXPECT_EQ(verdict.cause, WaitCause::kOtherCall);
  EXPECT_THAT(verdict.awaited, ElementsAre(0));
  EXPECT_THAT(verdict.sentence, StartsWith("Rank 0 stands in Barrier (train.py:40), ranks 1, 2 "
                                           "stand in AllReduce (train.py:31), since 24 s"));
  Job two;
  verdict = two.After(25, {InCall("barrier", 40), reduce});
  EXPECT_THAT(verdict.sentence, HasSubstr("no side has a majority"));
}

TEST(WaitRules, AJobWhoseRanksComeBackFromTheirCollectivesWaitsForNobody) {
  Job job;
  Doing moves = InCall("all_reduce", 31);
  moves.sleeps = 4;
  EXPECT_EQ(job.After(100, {moves, moves}).grade, WaitGrade::kNone);
  EXPECT_EQ(job.After(100, {moves, At(5)}).grade, WaitGrade::kNone);
}

TEST(WaitRules, TIsFiveTimesWhatTheJobsUsualWaitsTookAndNothingIsSaidOfAYoungJob) {
  Job job(WaitLimits{});
  const std::vector<Doing> waits = {InCall("barrier", 1), At(7)};
  Doing passes = InCall("barrier", 1);
  passes.sleeps = 1;
  for (int i = 0; i < 10; ++i) {
    (void)job.After(10, waits);
    (void)job.After(1, {passes, At(7)});
  }
  EXPECT_EQ(job.After(45, waits).grade, WaitGrade::kNone);
  EXPECT_EQ(job.After(15, waits).grade, WaitGrade::kHang);
  Job young(WaitLimits{});
  EXPECT_EQ(young.After(100, waits).grade, WaitGrade::kNone);
  EXPECT_EQ(young.After(30, waits).grade, WaitGrade::kHang);
}

TEST(WaitRules, WhereTheJobHasRanksOnOtherMachinesAllMayWaitForOneOfThose) {
  Job job;
  job.rules.SetWorld(16);
  const WaitVerdict verdict = job.After(60, {InCall("barrier", 1), InCall("barrier", 1)});
  EXPECT_EQ(verdict.cause, WaitCause::kOtherNode);
  EXPECT_EQ(verdict.grade, WaitGrade::kWaits);
}

TEST(WaitRules, ARankThatSpinsInACallOfCudasWhileNothingEndsOnItsDeviceWaits) {
  Job job;
  const std::vector<Doing> ranks = {InCuda("cudaStreamSynchronize", 31), At(88)};
  EXPECT_EQ(job.After(20, ranks).grade, WaitGrade::kNone);
  const WaitVerdict verdict = job.After(4, ranks);
  EXPECT_EQ(verdict.grade, WaitGrade::kHang);
  EXPECT_EQ(verdict.cause, WaitCause::kStuck);
  EXPECT_THAT(verdict.awaited, ElementsAre(1));
  EXPECT_THAT(verdict.sentence,
              StartsWith("Rank 1 keeps the others waiting; 1 of 2 waits for its device "
                         "(cudaStreamSynchronize at train.py:31) since "));
  EXPECT_THAT(verdict.sentence, HasSubstr("Its main thread sleeps at eval.py:88 ← train.py:9"));
}

TEST(WaitRules, ALongCallOfCudasIsNoWaitWhileWorkEndsOnTheDevice) {
  Job job;
  Doing works = InCuda("cudaStreamSynchronize", 31);
  works.work_ended = 1;
  EXPECT_EQ(job.After(60, {works, works}).cause, WaitCause::kNone);
  const WaitVerdict verdict = job.After(30, {works, InCuda("cudaStreamSynchronize", 40)});
  EXPECT_EQ(verdict.grade, WaitGrade::kWaits);
  EXPECT_EQ(verdict.cause, WaitCause::kMoves);
  EXPECT_THAT(verdict.awaited, ElementsAre(0));
}

TEST(WaitRules, ShortCallsOfCudasAreNoWait) {
  Job job;
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(job.After(1, {InCuda("cudaStreamSynchronize", 31), At(88)}).cause, WaitCause::kNone);
    (void)job.After(1, {InCuda("cudaLaunchKernel", 30), At(88)});
  }
}

TEST(WaitRules, WhereAllWaitForTheirDevicesNobodyIsNamed) {
  Job job;
  const std::vector<Doing> ranks = {InCuda("cudaStreamSynchronize", 31),
                                    InCuda("cudaDeviceSynchronize", 40),
                                    InCuda("cudaStreamSynchronize", 31)};
  EXPECT_EQ(job.After(18, ranks).grade, WaitGrade::kNone);
  const WaitVerdict verdict = job.After(6, ranks);
  EXPECT_EQ(verdict.grade, WaitGrade::kHang);
  EXPECT_EQ(verdict.cause, WaitCause::kDevices);
  EXPECT_TRUE(verdict.awaited.empty());
  EXPECT_THAT(verdict.sentence, StartsWith("All 3 ranks wait for their devices since "));
  EXPECT_THAT(verdict.sentence,
              HasSubstr(": rank 1 in cudaDeviceSynchronize at train.py:40, ranks 0, 2 in "
                        "cudaStreamSynchronize at train.py:31."));
}

// Stacks are read only of a job that is suspicious.
TEST(WaitRules, Of512RanksThatAllStopAtOnceNothingIsSaidNoStackIsReadAndNoTimePasses) {
  Job job({.waits_after_ns = 20 * kSecond});
  Doing works = At(7);
  works.state = 'R';
  works.cpu_ns = kSecond;
  Doing stopped = InCall("all_reduce", 31);
  stopped.state = 'T';
  EXPECT_EQ(job.After(5, std::vector<Doing>(512, works)).grade, WaitGrade::kNone);
  const uint64_t before = job.now;
  for (int second = 0; second < 600; ++second) {
    job.Look(std::vector<Doing>(512, stopped));
    EXPECT_TRUE(job.rules.AllStopped());
    EXPECT_FALSE(job.rules.IsSuspicious(job.now));
    EXPECT_EQ(job.rules.Judge(job.now).grade, WaitGrade::kNone);
  }
  EXPECT_EQ(job.now, before + kSecond);
  EXPECT_EQ(job.After(30, std::vector<Doing>(512, works)).grade, WaitGrade::kNone);
  EXPECT_FALSE(job.rules.AllStopped());
}

}  // namespace
}  // namespace ranktap::collector
