// A spool that comes to harm: what only it had is declared lost to every collector, until one of
// them has acknowledged it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "agent/core/agent_state.h"
#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/segment.h"
#include "agent/core/writer.h"
#include "agent/transport/messages.h"
#include "agent/transport/sender.h"
#include "collector/file/file_descriptor.h"
#include "ranktap/v1/control.pb.h"
#include "tests/fault_seed.h"

namespace ranktap {
namespace {

namespace fs = std::filesystem;
using proto::FrameType;

constexpr uint64_t kEvents = 3'000;  // as many as a new ring takes

// What came over one connection.
struct Received {
  uint64_t covered = 0;  // events stored or declared lost, from the first on, without a hole
  uint64_t lost = 0;
  bool in_order = true;
};

// A collector that takes what comes and acknowledges when told to.
class ForgetfulCollector {
 public:
  explicit ForgetfulCollector(const std::string& path)
      : listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_.get(), 4), 0);
  }

  // One connection, until its events reach `until`; the collector has those below `has`.
  Received Serve(agent::Sender& sender, uint64_t has, uint64_t until, bool acknowledges) {
    bytes_.clear();
    sender.TryConnect();
    connection_ =
        collector::FileDescriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK));
    EXPECT_GE(connection_.get(), 0);
    v1::Welcome welcome;
    welcome.set_protocol(agent::kProtocolMax);
    if (has > 0) {
      v1::Position* position = welcome.add_positions();
      position->set_writer(writer);
      position->set_next_event(has);
    }
    Send(FrameType::kWelcome, welcome.SerializeAsString());
    Received received{.covered = has};
    uint64_t frames = 0;
    constexpr int kRounds = 1000;
    for (int i = 0; i < kRounds && received.covered < until; ++i) {
      sender.RunOnce();
      Take(&received, &frames);
    }
    if (acknowledges) {
      v1::Ack ack;
      ack.set_frames(frames);
      Send(FrameType::kAck, ack.SerializeAsString());
      sender.RunOnce();
    }
    connection_.Reset();
    sender.RunOnce();
    return received;
  }

  uint32_t writer = 0;

 private:
  void Send(FrameType type, const std::string& payload) {
    const auto body = std::as_bytes(std::span(payload));
    const proto::FrameHeader header = proto::MakeFrameHeader({.type = type}, body);
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes += payload;
    EXPECT_EQ(send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  void Take(Received* received, uint64_t* frames) {
    char buffer[64 << 10];
    ssize_t more;
    while ((more = recv(connection_.get(), buffer, sizeof(buffer), 0)) > 0) {
      bytes_.append(buffer, static_cast<size_t>(more));
    }
    std::span<const std::byte> rest = std::as_bytes(std::span(bytes_));
    while (true) {
      const proto::FrameView frame = proto::DecodeFrame(rest);
      if (frame.status != proto::FrameStatus::kComplete) break;
      rest = rest.subspan(frame.consumed);
      ++*frames;
      uint64_t first = frame.header.first_event, events = frame.header.events;
      if (v1::LostRange lost; frame.header.type == FrameType::kLoss) {
        EXPECT_TRUE(
            lost.ParseFromArray(frame.payload.data(), static_cast<int>(frame.payload.size())));
        first = lost.first_event();
        events = lost.events();
        received->lost += events;
      }
      if (events == 0) continue;
      received->in_order &= first == received->covered;
      received->covered = first + events;
    }
    bytes_.erase(0, bytes_.size() - rest.size());
  }

  collector::FileDescriptor listener_, connection_;
  std::string bytes_;
};

TEST(LostSpoolTest, WhatOnlyTheSpoolHadIsDeclaredUntilACollectorHasAcknowledgedIt) {
  std::string pattern = testing::TempDir() + "/lost_spool.XXXXXX";
  const fs::path scratch = mkdtemp(pattern.data());
  const std::array<uint8_t, 16> session = {4, 2};
  static auto* const segment = new agent::Segment;  // never destroyed, as in a program
  ASSERT_TRUE(segment->Create(16 << 20, session.data()));
  ASSERT_TRUE(agent::ThreadStates::Create(*segment));
  ASSERT_TRUE(agent::MapCapturePage());
  agent::ChooseHostClock();
  static auto* const arena = new agent::Arena;
  arena->Attach(*segment, new std::atomic<uint64_t>[agent::Arena::kTableSlots]());
  const std::string hello = agent::EncodeHello({.session = session,
                                                .process = agent::ReadProcessInfo({}),
                                                .rank = {},
                                                .loaded_by = proto::LoadedBy::kPreload,
                                                .level = proto::Level::kRanges,
                                                .host_clock = agent::g_host_clock,
                                                .segment_bytes = segment->bytes(),
                                                .notes = {}});
  static auto* const sender =
      new agent::Sender(*segment, *arena,
                        {.socket_path = scratch / "socket",
                         .hello = hello,
                         .spool = {.directory = scratch / "spool",
                                   .session = std::string(session.begin(), session.end()),
                                   .limit_bytes = 16 << 20},
                         .on_level = [](const agent::LevelOrder&) {},
                         .on_beat = [] {},
                         .add_cost = [](agent::CostFields&) {}});
  ForgetfulCollector collector(scratch / "socket");
  agent::ThreadState* const thread = agent::ThreadState::Current();
  ASSERT_NE(thread, nullptr);
  collector.writer = thread->writer();
  uint64_t emitted = 0;
  std::mt19937_64 random(FaultSeed());
  const auto emit = [&](uint64_t events) {
    for (uint64_t i = 0; i < events; ++i, ++emitted) {
      if (i % 1000 == 0) segment->Grow();
      // Values that do not pack: frames of some size.
      thread->Emit(proto::RangeEndEvent{.time_ticks = agent::NowTicks(), .range = random()});
    }
  };
  // Nobody listens to a path that is not there, and so it spools.
  const fs::path socket = scratch / "socket", aside = scratch / "aside";
  fs::rename(socket, aside);
  emit(kEvents);
  fs::path file;
  for (int i = 0; i < 1000 && file.empty(); ++i) {
    sender->RunOnce();
    if (!fs::exists(scratch / "spool")) continue;
    for (const auto& entry : fs::directory_iterator(scratch / "spool")) file = entry.path();
  }
  ASSERT_FALSE(file.empty());
  const uint64_t in_file = fs::file_size(file);
  ASSERT_GT(in_file, 8 * kEvents);
  fs::rename(aside, socket);

  fs::resize_file(file, in_file / 2);
  for (const char* time : {"first", "second"}) {
    SCOPED_TRACE(time);
    emit(1);
    const Received torn = collector.Serve(*sender, 0, emitted, /*acknowledges=*/false);
    EXPECT_EQ(torn.covered, emitted);
    EXPECT_TRUE(torn.in_order);
    EXPECT_GT(torn.lost, 0u);
    EXPECT_LT(torn.lost, kEvents);
  }

  // Taken away, and with it every descriptor of the agent's.
  fs::remove(file);
  syscall(SYS_close_range, 512, ~0u, 0);
  for (const char* time : {"first", "second"}) {
    SCOPED_TRACE(time);
    emit(1);
    const Received gone = collector.Serve(*sender, 0, emitted, /*acknowledges=*/false);
    EXPECT_EQ(gone.covered, emitted);
    EXPECT_TRUE(gone.in_order);
    EXPECT_GE(gone.lost, kEvents);
  }

  emit(1);
  const Received last = collector.Serve(*sender, 0, emitted, /*acknowledges=*/true);
  EXPECT_GE(last.lost, kEvents);
  EXPECT_EQ(last.covered, emitted);
  const uint64_t has = emitted;
  emit(1);
  const Received later = collector.Serve(*sender, has, emitted, /*acknowledges=*/false);
  EXPECT_EQ(later.lost, 0u);
  EXPECT_EQ(later.covered, emitted);
  fs::remove_all(scratch);
}

}  // namespace
}  // namespace ranktap
