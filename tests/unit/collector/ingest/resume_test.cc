// One collector after another: what the first has stored is neither sent nor stored again, and what
// it had not is not lost.
#include <gmock/gmock.h>
#include <signal.h>

#include "collector/ingest/net/public_socket.h"
#include "collector/trace/load/run_reader.h"
#include "collector/trace/load/trace_check.h"
#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/unit/collector/test_collector.h"

namespace ranktap::collector {
namespace {

using ::testing::HasSubstr;

// A pipe that one process waits on and another lets it go by.
class Signal {
 public:
  Signal() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Signal() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void Give() { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }
  void Await() {
    char byte;
    EXPECT_EQ(::read(ends_[0], &byte, 1), 1);
  }

 private:
  int ends_[2];
};

class ResumeTest : public ::testing::Test {
 protected:
  std::unique_ptr<Collector> MakeCollector() {
    socket_.emplace(std::move(*PublicSocket::Create(path_, false)));
    ServerOptions options;
    options.collector_id = RandomId();
    options.collector_version = "test";
    options.limits.small_block_ages = 1;
    options.owner = ::geteuid();
    options.resumable = true;
    options.keep = keep_;
    return std::make_unique<Collector>(socket_->TakeListener(),
                                       std::move(*RunRegistry::Open(root(), {})), options);
  }
  std::string root() const { return directory_ / "runs"; }
  // A collector in a process of its own, to be killed; or to be ended in good order by `stop`.
  pid_t StartCollector(Signal* ready, Signal* stop) {
    return StartChild([&] {
      auto collector = MakeCollector();
      ready->Give();
      stop->Await();
      (void)collector->Finish(0, [](RunInfo*) {});
      return 0;
    });
  }
  // Sends 1,000 kernels to a first collector and waits for the acks, 500 more without waiting, and
  // to the next one what its welcome asks for.
  int Rank(Signal* sent, Signal* go_on) {
    fakes::FakeAgent agent({.rank = 5});
    (void)agent.Join(path_);
    const uint32_t writer = agent.AddWriter();
    const auto emit = [&](uint32_t count) {
      for (uint32_t i = 0; i < count; ++i, ++next_) {
        proto::KernelEvent kernel{};
        kernel.start_ns = 1000 * next_;
        kernel.end_ns = kernel.start_ns + 100;
        kernel.correlation = next_;
        kernel.name = agent.InternText("kernel " + std::to_string(next_ % 7));
        agent.Emit(writer, kernel);
      }
    };
    emit(1000);
    agent.Flush(100);
    agent.SendClock();
    agent.AwaitAcks();
    emit(500);
    agent.Flush(100);
    sent->Give();
    go_on->Await();
    agent.Disconnect();
    const v1::Welcome welcome = agent.Join(path_);
    if (welcome.positions_size() != 1 || welcome.positions(0).next_event() < 1000) return 2;
    agent.Rewind(welcome);
    emit(250);
    agent.Flush(100);
    agent.SendClock();
    agent.AwaitAcks();
    agent.LeaveLastWords();
    return 0;
  }
  void ExpectEveryKernelOnce() {
    std::vector<std::string> runs;
    const std::string user = root() + "/" + std::to_string(::geteuid());
    for (const auto& entry : std::filesystem::directory_iterator(user)) {
      runs.push_back(entry.path());
    }
    ASSERT_EQ(runs.size(), 1u);
    const Result<RunCheck> check = CheckRun(runs[0]);
    ASSERT_TRUE(check.ok()) << check.message();
    uint64_t events = 0, lost = 0;
    for (const TraceCheck& trace : check->traces) {
      events += trace.events;
      lost += trace.lost;
      for (const Damage& problem : trace.problems) ADD_FAILURE() << trace.path << problem.what;
    }
    EXPECT_TRUE(check->ok());
    EXPECT_EQ(check->traces.size(), keep_.any() ? 1u : 2u);
    EXPECT_EQ(events, 1750u);
    EXPECT_EQ(lost, 0u);
    const Result<collector::Run> run = LoadRun(runs[0]);
    ASSERT_TRUE(run.ok());
    std::vector<uint32_t> seen;
    for (const Trace& trace : run->traces) {
      for (size_t i = 0; i < trace.kernels.size(); ++i) {
        const uint32_t id = trace.kernels.correlation[i];
        seen.push_back(id);
        EXPECT_EQ(trace.dictionary.String(trace.kernels.name[i]),
                  "kernel " + std::to_string(id % 7));
      }
    }
    std::sort(seen.begin(), seen.end());
    for (uint32_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i);
  }
  void RunThrough(bool killed) {
    Signal ready, stop, sent, go_on;
    const pid_t first = StartCollector(&ready, &stop);
    ready.Await();
    const pid_t rank = StartChild([&] { return Rank(&sent, &go_on); });
    sent.Await();
    if (killed) {
      ASSERT_EQ(::kill(first, SIGKILL), 0);
    } else {
      stop.Give();
    }
    (void)WaitFor(first);
    auto second = MakeCollector();
    go_on.Give();
    EXPECT_EQ(WaitFor(rank), 0);
    (void)second->Finish(10'000'000'000, [](RunInfo*) {});
    ExpectEveryKernelOnce();
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_ / "sockets" + "/collector.sock";
  std::optional<PublicSocket> socket_;
  KeepLimits keep_;
  uint32_t next_ = 0;
};

TEST_F(ResumeTest, AfterACollectorWasKilledTheNextOneGoesOnByPosition) { RunThrough(true); }

TEST_F(ResumeTest, AfterACollectorEndedInOrderTheNextOneGoesOnByPosition) { RunThrough(false); }

TEST_F(ResumeTest, AKilledCollectorThatKeepsLosesNothingEitherAndTheNextOneJoinsTheFiles) {
  keep_ = {.ns = 3'600'000'000'000, .bytes = 1u << 30};
  RunThrough(true);
}

TEST_F(ResumeTest, WhatAKilledCollectorLeftIsClosedAndVerifies) {
  Signal ready, stop, sent, never;
  const pid_t first = StartCollector(&ready, &stop);
  ready.Await();
  const pid_t rank = StartChild([&] { return Rank(&sent, &never); });
  sent.Await();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  (void)WaitFor(first);
  ASSERT_EQ(::kill(rank, SIGKILL), 0);
  (void)WaitFor(rank);
  const Result<RunRegistry> registry = RunRegistry::Open(root(), {});
  ASSERT_TRUE(registry.ok()) << registry.message();
  ASSERT_EQ(registry->sealed().size(), 1u);
  const Result<TraceCheck> check = CheckTrace(registry->sealed()[0]);
  ASSERT_TRUE(check.ok()) << check.message();
  for (const Damage& problem : check->problems) ADD_FAILURE() << problem.what;
  EXPECT_TRUE(check->closed);
  EXPECT_GE(check->events, 1000u);
}

TEST_F(ResumeTest, ASecondCollectorOnTheSocketIsToldWhoHasIt) {
  Signal ready, stop;
  const pid_t first = StartCollector(&ready, &stop);
  ready.Await();
  const Result<PublicSocket> second = PublicSocket::Create(path_, false);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.message(), HasSubstr("pid " + std::to_string(first)));
  const Result<RunRegistry> registry = RunRegistry::Open(root(), {});
  ASSERT_FALSE(registry.ok());
  EXPECT_THAT(registry.message(), HasSubstr("another collector"));
  stop.Give();
  EXPECT_EQ(WaitFor(first), 0);
  EXPECT_TRUE(PublicSocket::Create(path_, false).ok());
}

TEST_F(ResumeTest, JobsBecomeRunsOfTheirOwn) {
  auto collector = MakeCollector();
  for (const char* const job : {"1001", "1002", "1001"}) {
    const int status = RunChild([&] {
      fakes::FakeAgent agent({.rank = 0});
      agent.hello.mutable_rank()->set_job(job);
      (void)agent.Join(path_);
      agent.Emit(agent.AddWriter(), proto::KernelEvent{});
      agent.Flush();
      agent.AwaitAcks();
      agent.LeaveLastWords();
      return 0;
    });
    EXPECT_EQ(status, 0);
  }
  (void)collector->Finish(10'000'000'000, [](RunInfo*) {});
  size_t runs = 0, traces = 0;
  const std::string user = root() + "/" + std::to_string(::geteuid());
  for (const auto& entry : std::filesystem::directory_iterator(user)) {
    ++runs;
    EXPECT_THAT(entry.path().filename().string(), HasSubstr("job-100"));
    const Result<RunCheck> check = CheckRun(entry.path());
    ASSERT_TRUE(check.ok());
    EXPECT_TRUE(check->ok());
    traces += check->traces.size();
  }
  EXPECT_EQ(runs, 2u);
  EXPECT_EQ(traces, 3u);
}

}  // namespace
}  // namespace ranktap::collector
