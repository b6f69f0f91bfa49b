// What is given back when a session is refused, or when its job is done.
#include <gmock/gmock.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <fstream>

#include "collector/file/trace_reader.h"
#include "collector/trace/load/trace_check.h"
#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/unit/collector/collector_process.h"
#include "tests/unit/collector/held_store.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;
using fakes::FakeAgent;

void EmitKernels(FakeAgent* agent, uint32_t writer, int count) {
  for (int i = 0; i < count; ++i) {
    proto::KernelEvent kernel{};
    kernel.start_ns = static_cast<uint64_t>(i) * 7919;
    agent->Emit(writer, kernel);
  }
}

TEST(RefusedSessionTest, ItsOpenBlockIsGivenBackToTheOthers) {
  const TemporaryDirectory directory;
  const std::string socket = directory / "sockets" + "/s";
  IngestLimits limits;
  limits.open_block_bytes = 64u << 10;
  const std::string root = directory / "runs", user = root + "/" + std::to_string(::geteuid());
  {
    HeldStore store(root, socket, limits);
    store.Hold();
    std::ofstream(user) << "in the place of a directory";
    FakeAgent refused;
    (void)refused.Join(socket);
    const uint32_t writer = refused.AddWriter();
    EmitKernels(&refused, writer, 6500);
    refused.Flush(20);  // 60 KB of frames
    for (int unread = 1; unread > 0;) ASSERT_EQ(::ioctl(refused.socket(), SIOCOUTQ, &unread), 0);
    store.GoOn();
    bool heard = false;
    while (const auto frame = refused.Receive()) {
      v1::Welcome welcome;
      if (frame->header.type != proto::FrameType::kWelcome) continue;
      ASSERT_TRUE(welcome.ParseFromString(frame->payload));
      heard = !welcome.refused().empty();
      EXPECT_GT(welcome.retry_after_ms(), 0u);
    }
    EXPECT_TRUE(heard);
    ASSERT_TRUE(fs::remove(user));
    // 55 KB: more than what would be left, if the other's block still counted.
    FakeAgent honest;
    (void)honest.Join(socket);
    EmitKernels(&honest, honest.AddWriter(), 5500);
    honest.Flush(20);
    honest.AwaitAcks();
  }
  size_t blocks = 0;
  for (const auto& entry : fs::recursive_directory_iterator(user)) {
    if (!entry.path().string().ends_with(".trace")) continue;
    Result<TraceReader> reader = TraceReader::Open(entry.path());
    ASSERT_TRUE(reader.ok()) << reader.message();
    blocks += reader->ListBlocks().size();
  }
  EXPECT_GT(blocks, 0u);
  EXPECT_LT(blocks, 10u);  // with checkpoints and index
}

TEST(FinishedJobTest, ManyJobsOfALivingProcessTakeNoDescriptorsAndNobodyIsRefusedForGood) {
  const TemporaryDirectory directory;
  constexpr rlim_t kDescriptors = 96;
  CollectorProcess::Setup setup;
  setup.limits = WithinDescriptors(kDescriptors);
  setup.first = [] {
    const rlimit limit{kDescriptors, kDescriptors};
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  };
  CollectorProcess collector(directory.path(), setup);
  const size_t before = collector.Descriptors();
  for (int job = 0; job < 60; ++job) {
    FakeAgent agent;
    agent.hello.mutable_rank()->set_job("job " + std::to_string(job));
    v1::Welcome welcome = agent.Join(collector.socket());
    for (int tries = 0; !welcome.refused().empty() && tries < 1000; ++tries) {
      ASSERT_GT(welcome.retry_after_ms(), 0u) << job << ": " << welcome.refused();
      agent.Disconnect();
      ::usleep(10'000);
      welcome = agent.Join(collector.socket());
    }
    ASSERT_EQ(welcome.refused(), "") << job;
    agent.Emit(agent.AddWriter(), proto::KernelEvent{});
    agent.Flush();
    agent.SayGoodbye();
  }
  size_t after = 0;
  for (int tries = 0; tries < 500; ++tries) {
    after = collector.Descriptors();
    if (after < before + 20) break;
    ::usleep(10'000);
  }
  EXPECT_LT(after, before + 20);
  EXPECT_EQ(collector.Stop(), 0);
}

// The file of a session that is not kept open is found again.
TEST(FinishedJobTest, AProcessThatComesBackAfterItsGoodbyeGoesOnByPosition) {
  const TemporaryDirectory directory;
  CollectorProcess collector(directory.path(), {});
  FakeAgent agent({.rank = 3});
  const uint32_t writer = agent.AddWriter();
  for (int turn = 0; turn < 3; ++turn) {
    const v1::Welcome welcome = agent.Join(collector.socket());
    ASSERT_EQ(welcome.positions_size(), turn == 0 ? 0 : 1);
    if (turn > 0) {
      EXPECT_EQ(welcome.positions(0).next_event(), 10u * turn);
    }
    agent.Rewind(welcome);
    EmitKernels(&agent, writer, 10);
    agent.Flush();
    agent.SayGoodbye();
    agent.AwaitAcks();
    agent.Disconnect();
    // Until its file is closed.
    const fs::path user = collector.root() + "/" + std::to_string(::geteuid());
    for (int tries = 0; tries < 1000; ++tries) {
      int closed = 0;
      for (const auto& entry : fs::recursive_directory_iterator(user)) {
        closed += entry.path().extension() == ".trace" ? 1 : 0;
      }
      if (closed > turn) break;
      ::usleep(1000);
    }
  }
  EXPECT_EQ(collector.Stop(), 0);
  const fs::path user = collector.root() + "/" + std::to_string(::geteuid());
  uint64_t events = 0;
  for (const auto& run : fs::directory_iterator(user)) {
    const Result<RunCheck> check = CheckRun(run.path());
    ASSERT_TRUE(check.ok()) << check.message();
    for (const TraceCheck& trace : check->traces) {
      events += trace.events;
      for (const Damage& problem : trace.problems) ADD_FAILURE() << trace.path << problem.what;
    }
  }
  EXPECT_EQ(events, 30u);
}

}  // namespace
}  // namespace ranktap::collector
