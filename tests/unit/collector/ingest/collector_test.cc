// A collector and fake agents over a real socket, from the first frame to the loaded trace.
#include "collector/ingest/collector.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include "collector/ingest/monotonic_clock.h"
#include "collector/trace/load/run_reader.h"
#include "collector/trace/load/trace_check.h"
#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/unit/collector/test_collector.h"

namespace ranktap::collector {
namespace {

using fakes::FakeAgent;
using proto::EntryKind;
using ::testing::HasSubstr;

// `count` kernels of 500 ns, 1 us apart, each with its launch; a range around each pair. Kernels
// are on CLOCK_REALTIME, as CUPTI's are.
void EmitWork(FakeAgent* agent, uint32_t thread, uint32_t drain, int count, uint64_t start = 1000) {
  const auto gemm = agent->InternText("_Z4gemmv");
  const auto shape = agent->InternShape({.grid = {4, 1, 1}, .block = {128, 1, 1}});
  const auto launch = agent->InternApi("cudaLaunchKernel", 211);
  const auto step = agent->InternText("step");
  const uint64_t realtime = RealtimeNs();
  for (int i = 0; i < count; ++i) {
    const uint64_t at = start + static_cast<uint64_t>(i) * 1000;
    agent->Emit(thread, proto::RangePushEvent{.time_ticks = at, .nvtx = {.name = step}});
    agent->Emit(thread, proto::ApiCallEvent{.start_ticks = at + 10,
                                            .end_ticks = at + 60,
                                            .correlation = static_cast<uint32_t>(i + 1),
                                            .api = launch});
    agent->Emit(thread, proto::RangePopEvent{.time_ticks = at + 100});
    agent->Emit(drain, proto::KernelEvent{.start_ns = realtime + at + 200,
                                          .end_ns = realtime + at + 700,
                                          .correlation = static_cast<uint32_t>(i + 1),
                                          .device = 0,
                                          .context = 1,
                                          .stream = 7,
                                          .name = gemm,
                                          .shape = shape});
  }
}

TEST(CollectorTest, EventsArriveInTheTraceWithTheirNames) {
  TestCollector collector;
  {
    FakeAgent agent({.rank = 3});
    agent.Join(collector.socket());
    const uint32_t thread = agent.AddWriter();
    const uint32_t drain = agent.AddWriter(proto::WriterKind::kDrain);
    EmitWork(&agent, thread, drain, 100);
    agent.Flush(32);
    agent.SayGoodbye();
    agent.AwaitAcks();
  }
  const RunInfo info = collector.Finish();
  ASSERT_EQ(info.traces.size(), 1u);
  EXPECT_EQ(info.traces[0].file, "rank-00003.trace");
  EXPECT_EQ(info.traces[0].status, TraceStatus::kClosed);

  const auto run = collector.Load();
  ASSERT_EQ(run.traces.size(), 1u);
  const Trace& trace = run.traces[0];
  EXPECT_TRUE(trace.damage.empty());
  EXPECT_TRUE(trace.closed);
  EXPECT_EQ(trace.info.rank, 3u);
  EXPECT_EQ(trace.events, 400u);
  ASSERT_EQ(trace.kernels.size(), 100u);
  ASSERT_EQ(trace.api_calls.size(), 100u);
  ASSERT_EQ(trace.ranges.size(), 100u);
  EXPECT_EQ(trace.dictionary.String(trace.kernels.name[0]), "_Z4gemmv");
  ASSERT_NE(trace.dictionary.Shape(trace.kernels.shape[5]), nullptr);
  EXPECT_EQ(trace.dictionary.Shape(trace.kernels.shape[5])->block[0], 128u);
  EXPECT_EQ(trace.dictionary.String(trace.ranges.name[99]), "step");
  EXPECT_EQ(trace.dictionary.Api(trace.api_calls.api[0]).name, "cudaLaunchKernel");
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(trace.kernels.launch[i], i);
    EXPECT_EQ(trace.ranges.end[i] - trace.ranges.start[i], 100);
    EXPECT_NEAR(trace.kernels.end[i] - trace.kernels.start[i], 500, 1);
    EXPECT_EQ(trace.ranges.unfinished.At(i), 0);
  }
}

TEST(CollectorTest, AKilledProcessLosesNothingThatReachedItsRings) {
  TestCollector collector;
  const int status = RunChild([&] {
    FakeAgent agent({.rank = 0});
    agent.Join(collector.socket());
    const uint32_t thread = agent.AddWriter();
    const uint32_t drain = agent.AddWriter(proto::WriterKind::kDrain);
    EmitWork(&agent, thread, drain, 1000);
    agent.Flush(100);
    // Never sent, with names that no frame has carried.
    EmitWork(&agent, thread, drain, 2000, 2'000'000);
    agent.Emit(thread, proto::RangePushEvent{.time_ticks = 9'000'000}, "only in the ring");
    agent.OpenCall(thread, agent.InternApi("cudaDeviceSynchronize", 165), 9'000'100, 77);
    // Counted, and never committed: death came in between.
    agent.slot(thread).produced.store(agent.slot(thread).produced.load() + 1);
    return ::kill(::getpid(), SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));

  const RunInfo info = collector.Finish();
  ASSERT_EQ(info.traces.size(), 1u);
  EXPECT_EQ(info.traces[0].status, TraceStatus::kDied);
  EXPECT_THAT(info.traces[0].detail, HasSubstr("SIGKILL"));

  const auto run = collector.Load();
  const Trace& trace = run.traces.at(0);
  EXPECT_EQ(trace.kernels.size(), 3000u);
  EXPECT_EQ(trace.api_calls.size(), 3000u);
  ASSERT_EQ(trace.ranges.size(), 3001u);
  EXPECT_EQ(trace.dictionary.String(trace.ranges.name[3000]), "only in the ring");
  EXPECT_EQ(trace.ranges.unfinished.At(3000), 1);
  ASSERT_EQ(trace.open_calls.size(), 1u);
  EXPECT_EQ(trace.dictionary.Api(trace.open_calls[0].api).name, "cudaDeviceSynchronize");
  EXPECT_TRUE(trace.after_death);
  for (const Writer& writer : trace.writers) {
    ASSERT_TRUE(writer.has_account);
    EXPECT_EQ(writer.account.produced(), writer.events + proto::Total(writer.lost));
  }
}

TEST(CollectorTest, AProcessThatLeavesLastWordsEndedInGoodOrder) {
  TestCollector collector;
  RunChild([&] {
    FakeAgent agent({.rank = 1});
    agent.Join(collector.socket());
    EmitWork(&agent, agent.AddWriter(), agent.AddWriter(), 10);
    agent.LeaveLastWords();
    return 3;
  });
  const RunInfo info = collector.Finish();
  ASSERT_EQ(info.traces.size(), 1u);
  EXPECT_EQ(info.traces[0].status, TraceStatus::kClosed);
  EXPECT_EQ(info.traces[0].detail, "exited with status 3");
  EXPECT_EQ(collector.Load().traces.at(0).kernels.size(), 10u);
}

TEST(CollectorTest, AForkedChildThatHoldsTheSocketDoesNotHideADeath) {
  TestCollector collector;
  int release[2];
  ASSERT_EQ(::pipe(release), 0);
  RunChild([&] {
    FakeAgent agent({.rank = 0});
    agent.Join(collector.socket());
    EmitWork(&agent, agent.AddWriter(), agent.AddWriter(), 10);
    if (::fork() == 0) {
      // Holds the socket until the test is over.
      ::close(release[1]);
      char byte;
      (void)!::read(release[0], &byte, 1);
      ::_exit(0);
    }
    return ::kill(::getpid(), SIGKILL);
  });
  const RunInfo info = collector.Finish();
  ::close(release[1]);
  ::close(release[0]);
  ASSERT_EQ(info.traces.size(), 1u);
  EXPECT_EQ(info.traces[0].status, TraceStatus::kDied);
  EXPECT_EQ(collector.Load().traces.at(0).kernels.size(), 10u);
}

TEST(CollectorTest, AProcessWithoutEventsLeavesNoFile) {
  TestCollector collector;
  RunChild([&] {
    FakeAgent agent({.rank = 0});
    agent.Join(collector.socket());
    agent.SendClock();
    agent.AwaitAcks();
    return 0;
  });
  EXPECT_TRUE(collector.Finish().traces.empty());
  EXPECT_TRUE(FindTraces(collector.run_path())->traces.empty());
}

TEST(CollectorTest, AfterAReconnectEveryEventIsThereOnce) {
  TestCollector collector;
  FakeAgent agent({.rank = 0});
  agent.Join(collector.socket());
  const uint32_t thread = agent.AddWriter();
  const uint32_t drain = agent.AddWriter();
  EmitWork(&agent, thread, drain, 500);
  agent.Flush(64);  // the acks are not waited for
  EmitWork(&agent, thread, drain, 500, 1'000'000);

  const v1::Welcome welcome = agent.Join(collector.socket());
  ASSERT_EQ(welcome.positions_size(), 2);
  EXPECT_EQ(welcome.positions(0).next_event(), 1500u) << "all that was sent has been read";
  agent.Rewind(welcome);
  agent.Flush(64);
  agent.SayGoodbye();
  agent.AwaitAcks();
  agent.Disconnect();
  collector.Finish();

  const auto run = collector.Load();
  ASSERT_EQ(run.traces.size(), 1u);
  EXPECT_EQ(run.traces[0].kernels.size(), 1000u);
  EXPECT_EQ(run.traces[0].ranges.size(), 1000u);
  EXPECT_TRUE(run.traces[0].damage.empty());
}

TEST(CollectorTest, EventsThatAreSentTwiceAreStoredOnce) {
  TestCollector collector;
  FakeAgent agent({.rank = 0});
  agent.Join(collector.socket());
  const uint32_t thread = agent.AddWriter();
  const uint32_t drain = agent.AddWriter();
  EmitWork(&agent, thread, drain, 100);
  agent.Flush();
  agent.AwaitAcks();
  agent.Join(collector.socket());
  agent.FlushWriter(thread, 0);
  agent.FlushWriter(drain, 0);
  agent.SayGoodbye();
  agent.AwaitAcks();
  agent.Disconnect();
  const RunInfo info = collector.Finish();
  EXPECT_EQ(info.refused.at("frames sent twice"), 2u);
  EXPECT_EQ(collector.Load().traces.at(0).events, 400u);
}

// A spool that the program took away: the agent knows what was in it.
TEST(CollectorTest, WhatAnAgentDeclaresLostIsNotMissing) {
  TestCollector collector;
  FakeAgent agent({.rank = 0});
  agent.Join(collector.socket());
  const uint32_t thread = agent.AddWriter();
  const uint32_t drain = agent.AddWriter();
  EmitWork(&agent, thread, drain, 100);
  agent.Flush();
  agent.AwaitAcks();
  EmitWork(&agent, thread, drain, 100, 1'000'000);
  v1::LostRange lost;
  lost.set_writer(thread);
  lost.set_first_event(300);
  lost.set_events(150);
  lost.set_loss(static_cast<uint32_t>(proto::Loss::kStore));
  agent.Join(collector.socket());
  agent.Send({.type = proto::FrameType::kLoss}, lost.SerializeAsString());
  agent.Send({.type = proto::FrameType::kLoss}, lost.SerializeAsString());  // twice is once
  agent.FlushWriter(thread, 450);
  agent.FlushWriter(drain, 100);
  agent.SayGoodbye();
  agent.AwaitAcks();
  agent.Disconnect();
  EXPECT_TRUE(collector.Finish().refused.contains("frames sent twice"));
  const auto run = collector.Load();
  ASSERT_EQ(run.traces.size(), 1u);
  EXPECT_TRUE(run.traces[0].damage.empty());
  EXPECT_EQ(run.traces[0].events, 800u - 150u);
  const Writer& writer = run.traces[0].writers.at(0);
  EXPECT_EQ(writer.declared[static_cast<size_t>(proto::Loss::kStore)], 150u);
  EXPECT_EQ(writer.next_event, 600u);
}

TEST(CollectorTest, WhatIsLostBeforeTheFirstEventIsDeclaredInTheFileThatComesWithIt) {
  TestCollector collector;
  FakeAgent agent({.rank = 0});
  const uint32_t thread = agent.AddWriter();
  EmitWork(&agent, thread, thread, 100);
  // As after a spool that only the program's user could read: the rings begin later.
  proto::Chunk& chunk = agent.chunk(agent.chunks_of(thread)[0]);
  chunk.first_event += 50;
  agent.slot(thread).produced += 50;
  agent.Join(collector.socket());
  agent.Disconnect();
  collector.Finish(100);
  const auto run = collector.Load();
  ASSERT_EQ(run.traces.size(), 1u);
  EXPECT_TRUE(run.traces[0].damage.empty());
  EXPECT_EQ(run.traces[0].events, 400u);
  EXPECT_EQ(proto::Total(run.traces[0].writers.at(0).declared), 50u);
  const Result<RunCheck> check = CheckRun(collector.run_path());
  ASSERT_TRUE(check.ok());
  for (const TraceCheck& trace : check->traces) EXPECT_TRUE(trace.problems.empty());
}

TEST(CollectorTest, TheFinalNameIsTheRankLearntLast) {
  TestCollector collector;
  FakeAgent agent;
  agent.Join(collector.socket());
  EmitWork(&agent, agent.AddWriter(), agent.AddWriter(), 1);
  agent.Flush();
  v1::Hello amendment;
  amendment.mutable_rank()->set_rank(12);
  amendment.mutable_rank()->set_origin("ncclCommInitRank");
  agent.Send({.type = proto::FrameType::kAmend}, amendment.SerializeAsString());
  agent.SayGoodbye();
  agent.AwaitAcks();
  agent.Disconnect();
  const RunInfo info = collector.Finish();
  ASSERT_EQ(info.traces.size(), 1u);
  EXPECT_EQ(info.traces[0].file, "rank-00012.trace");
  EXPECT_EQ(info.traces[0].rank_origin, "ncclCommInitRank");
}

TEST(CollectorTest, TwoProcessesOfOneRankGetAFileEach) {
  TestCollector collector;
  for (int i = 0; i < 2; ++i) {
    FakeAgent agent({.rank = 7});
    agent.Join(collector.socket());
    EmitWork(&agent, agent.AddWriter(), agent.AddWriter(), 1 + i);
    agent.Flush();
    agent.SayGoodbye();
    agent.AwaitAcks();
  }
  collector.Finish();
  const auto run = collector.Load();
  ASSERT_EQ(run.traces.size(), 2u);
  EXPECT_EQ(run.traces[0].info.file, "rank-00007.1.trace");
  EXPECT_EQ(run.traces[1].info.file, "rank-00007.trace");
}

TEST(CollectorTest, FilesArePrivateWhateverTheUmask) {
  const mode_t before = ::umask(0);
  TestCollector collector;
  FakeAgent agent({.rank = 0});
  agent.Join(collector.socket());
  EmitWork(&agent, agent.AddWriter(), agent.AddWriter(), 1);
  agent.Flush();
  agent.SayGoodbye();
  agent.AwaitAcks();
  agent.Disconnect();
  collector.Finish();
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(collector.run_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(collector.run_path())) {
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 2);
}

TEST(CollectorTest, ALevelReachesEveryAgentAndLaterOnesInTheirWelcome) {
  TestCollector collector;
  FakeAgent first({.rank = 0}), second({.rank = 1});
  EXPECT_EQ(first.Join(collector.socket()).level(), v1::LEVEL_KERNELS);
  v1::LevelChange change;
  change.set_level(v1::LEVEL_DORMANT);
  change.set_window(2);
  collector.collector().SetLevel(change);
  change.Clear();
  const auto frame = first.Receive();
  ASSERT_TRUE(frame);
  ASSERT_EQ(frame->header.type, proto::FrameType::kLevel);
  ASSERT_TRUE(change.ParseFromString(frame->payload));
  EXPECT_EQ(change.level(), v1::LEVEL_DORMANT);
  EXPECT_EQ(change.window(), 2u);
  EXPECT_EQ(second.Join(collector.socket()).level(), v1::LEVEL_DORMANT);
}

}  // namespace
}  // namespace ranktap::collector
