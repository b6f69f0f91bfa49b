// Peers that do not play by the rules: each is turned away and counted, and hurts nobody else.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <random>

#include "collector/ingest/net/handshake.h"
#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/unit/collector/test_collector.h"

namespace ranktap::collector {
namespace {

using fakes::FakeAgent;
using ::testing::HasSubstr;

void EmitRanges(FakeAgent* agent, uint32_t writer, int count) {
  const auto name = agent->InternText("step");
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<uint64_t>(1000 + i * 10);
    agent->Emit(writer, proto::RangePushEvent{.time_ticks = at, .nvtx = {.name = name}});
    agent->Emit(writer, proto::RangePopEvent{.time_ticks = at + 5});
  }
}

// An honest rank beside whatever the test does: it must come through whole.
class HostileClientTest : public ::testing::Test {
 protected:
  explicit HostileClientTest(ServerOptions options = {}) : collector_(options) {
    honest_.Join(collector_.socket());
    writer_ = honest_.AddWriter();
    EmitRanges(&honest_, writer_, 100);
    honest_.Flush();
  }
  // Ends the honest rank and returns the counts of what was refused.
  std::map<std::string, uint64_t> Finish() {
    EmitRanges(&honest_, writer_, 100);
    honest_.Flush();
    honest_.SayGoodbye();
    honest_.AwaitAcks();
    honest_.Disconnect();
    const RunInfo info = collector_.Finish(100);
    const auto run = collector_.Load();
    bool found = false;
    for (const Trace& trace : run.traces) {
      if (trace.info.rank != 0u) continue;
      found = true;
      EXPECT_EQ(trace.ranges.size(), 200u);
      EXPECT_TRUE(trace.damage.empty());
    }
    EXPECT_TRUE(found);
    return info.refused;
  }
  bool IsClosed(FakeAgent* agent) {
    while (const auto frame = agent->Receive()) {
    }
    return true;
  }

  TestCollector collector_;
  FakeAgent honest_{{.rank = 0}};
  uint32_t writer_ = 0;
};

TEST_F(HostileClientTest, AStrangerIsClosedAtItsFirstByte) {
  FakeAgent stranger;
  stranger.Connect(collector_.socket());
  stranger.SendRaw(std::as_bytes(std::span("GET / HTTP/1.1\r\n", 16)));
  EXPECT_TRUE(IsClosed(&stranger));
  EXPECT_EQ(Finish().at("bad frame"), 1u);
}

TEST_F(HostileClientTest, AFrameOfTheWrongLengthIsRefusedBeforeItsBytesCome) {
  FakeAgent client;
  client.Join(collector_.socket());
  proto::FrameHeader header = proto::MakeFrameHeader({.type = proto::FrameType::kEvents}, {});
  header.payload_bytes = 0xffffffff;
  header.header_crc = proto::Crc32c(
      std::as_bytes(std::span(&header, 1)).first(offsetof(proto::FrameHeader, header_crc)));
  client.SendRaw(std::as_bytes(std::span(&header, 1)));
  EXPECT_TRUE(IsClosed(&client));
  EXPECT_EQ(Finish().at("bad frame"), 1u);
}

TEST_F(HostileClientTest, RandomBytesAfterAHelloAreClosed) {
  std::mt19937_64 random(20260103);
  for (int round = 0; round < 200; ++round) {
    FakeAgent client;
    client.Join(collector_.socket());
    std::vector<std::byte> bytes(1 + random() % 4096);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    // Half of them look like a frame at first.
    if (round % 2 == 0 && bytes.size() >= 8) {
      std::memcpy(bytes.data(), &proto::kFrameMagic, sizeof(proto::kFrameMagic));
    }
    try {
      client.SendRaw(bytes);
      ::shutdown(client.socket(), SHUT_WR);
      EXPECT_TRUE(IsClosed(&client));
    } catch (const std::exception&) {
      // Closed while we were still sending.
    }
  }
  Finish();
}

TEST_F(HostileClientTest, EverySplitOfAConversationIsUnderstood) {
  FakeAgent client({.rank = 1});
  client.Join(collector_.socket());
  const uint32_t writer = client.AddWriter();
  EmitRanges(&client, writer, 1);
  // Byte by byte, each its own packet.
  std::string payload;
  {
    proto::EventEncoder encoder;
    struct {
      uint32_t IdOf(proto::EntryKind, proto::ArenaRef) { return 0; }
      uint32_t IdOfText(std::span<const std::byte>) { return 0; }
    } ids;
    const auto* first = reinterpret_cast<const proto::EventHeader*>(
        client.chunk(client.chunks_of(writer)[0]).data());
    ASSERT_TRUE(encoder.Add(first, first->bytes));
    encoder.Encode(ids, payload);
  }
  const auto bytes = std::as_bytes(std::span(payload));
  const proto::FrameHeader header = proto::MakeFrameHeader(
      {.type = proto::FrameType::kEvents, .writer = writer, .first_event = 0, .events = 1}, bytes);
  for (const std::byte& byte : std::as_bytes(std::span(&header, 1))) {
    client.SendRaw(std::span(&byte, 1));
  }
  for (const std::byte& byte : bytes) client.SendRaw(std::span(&byte, 1));
  while (true) {
    const auto frame = client.Receive();
    ASSERT_TRUE(frame);
    v1::Ack ack;
    if (frame->header.type == proto::FrameType::kAck && ack.ParseFromString(frame->payload) &&
        ack.frames() == 2) {
      break;
    }
  }
  EXPECT_TRUE(Finish().empty());
}

TEST_F(HostileClientTest, FramesThatAreNotAnAgentsToSendCloseTheConnection) {
  const proto::FrameType types[] = {proto::FrameType::kHello, proto::FrameType::kWelcome,
                                    proto::FrameType::kAck,   proto::FrameType::kLevel,
                                    proto::FrameType::kLoss,  proto::FrameType::kOpenCalls};
  for (const auto type : types) {
    FakeAgent client;
    client.Join(collector_.socket());
    client.Send({.type = type}, "");
    EXPECT_TRUE(IsClosed(&client)) << static_cast<int>(type);
  }
  EXPECT_EQ(Finish().at("frame not acceptable"), std::size(types));
}

TEST_F(HostileClientTest, ATypeOfANewerAgentIsSkipped) {
  FakeAgent client({.rank = 1});
  client.Join(collector_.socket());
  client.Send({.type = static_cast<proto::FrameType>(200)}, "from the future");
  client.AwaitAcks();
  EXPECT_TRUE(Finish().empty());
}

TEST_F(HostileClientTest, AHoleInTheMiddleOfAConnectionClosesIt) {
  FakeAgent client({.rank = 1});
  client.Join(collector_.socket());
  const uint32_t writer = client.AddWriter();
  EmitRanges(&client, writer, 10);
  client.FlushWriter(writer, 0);
  client.Send({.type = proto::FrameType::kEvents, .writer = writer, .first_event = 25, .events = 1},
              "");
  EXPECT_TRUE(IsClosed(&client));
  EXPECT_EQ(Finish().at("frame not acceptable"), 1u);
}

TEST_F(HostileClientTest, EventsOfNobodyAndEmptyFramesOfEventsAreRefused) {
  for (const proto::FrameFields& fields :
       {proto::FrameFields{.type = proto::FrameType::kEvents, .writer = 0, .events = 1},
        proto::FrameFields{.type = proto::FrameType::kEvents, .writer = 1, .events = 0},
        proto::FrameFields{.type = proto::FrameType::kClock, .writer = 0, .events = 1}}) {
    FakeAgent client;
    client.Join(collector_.socket());
    client.Send(fields, "");
    EXPECT_TRUE(IsClosed(&client));
  }
  EXPECT_EQ(Finish().at("frame not acceptable"), 3u);
}

TEST_F(HostileClientTest, ADictionaryFromHellIsRefused) {
  v1::Dictionary dictionary;
  dictionary.add_strings()->set_id(0xffffffff);
  FakeAgent client;
  client.Join(collector_.socket());
  client.Send({.type = proto::FrameType::kDictionary}, dictionary.SerializeAsString());
  EXPECT_TRUE(IsClosed(&client));
  Finish();
}

TEST_F(HostileClientTest, AmendmentsThatNeverEndAreRefused) {
  FakeAgent client;
  client.Join(collector_.socket());
  v1::Hello amendment;
  bool closed = false;
  for (int i = 0; i < 100 && !closed; ++i) {
    amendment.clear_notes();
    amendment.add_notes(std::to_string(i) + std::string(30'000, 'x'));
    try {
      client.Send({.type = proto::FrameType::kAmend}, amendment.SerializeAsString());
    } catch (const std::exception&) {
      closed = true;
    }
  }
  EXPECT_TRUE(closed || IsClosed(&client));
  Finish();
}

TEST_F(HostileClientTest, TextsOfAHelloNameNoFile) {
  FakeAgent client;
  client.hello.mutable_process()->set_executable("../../etc/passwd");
  client.hello.mutable_process()->set_host("/etc/x\n%n\0y");
  client.hello.mutable_rank()->set_rank(4'000'000'000);
  client.hello.mutable_rank()->set_job("../../../job");
  client.Join(collector_.socket());
  const uint32_t writer = client.AddWriter();
  EmitRanges(&client, writer, 1);
  client.Flush();
  client.SayGoodbye();
  client.AwaitAcks();
  client.Disconnect();
  Finish();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(collector_.run_path())) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("rank-00000.trace", "rank-4000000000.trace",
                                                     "run.json"));
}

TEST_F(HostileClientTest, AnUnknownProtocolIsRefusedInWords) {
  FakeAgent client;
  client.hello.set_protocol_min(7);
  client.hello.set_protocol_max(9);
  const v1::Welcome welcome = client.Join(collector_.socket());
  EXPECT_THAT(welcome.refused(), HasSubstr("protocol 7 to 9"));
  EXPECT_TRUE(IsClosed(&client));
  EXPECT_EQ(Finish().at("refused"), 1u);
}

TEST_F(HostileClientTest, AnUnknownRequiredFeatureIsRefusedInWords) {
  FakeAgent client;
  client.hello.set_required_features(1ull << 40);
  EXPECT_THAT(client.Join(collector_.socket()).refused(), HasSubstr("features"));
  Finish();
}

TEST_F(HostileClientTest, AHelloWithoutASessionIsNone) {
  FakeAgent client;
  client.hello.set_session("short");
  client.Connect(collector_.socket());
  client.SendHello();
  EXPECT_TRUE(IsClosed(&client));
  Finish();
}

TEST_F(HostileClientTest, RingsThatCouldShrinkAreNotTaken) {
  FakeAgent client({.rank = 1});
  client.Connect(collector_.socket());
  // An unsealed memfd, a pipe, and a file, each in place of the rings.
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  const int unsealed = ::memfd_create("unsealed", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(unsealed, 1 << 20), 0);
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  for (const int fd : {unsealed, pipe_ends[0], file}) {
    std::string why;
    const Segment segment{FileDescriptor(::dup(fd)), &why};
    EXPECT_FALSE(segment.valid());
    EXPECT_FALSE(why.empty());
    ::close(fd);
  }
  ::close(pipe_ends[1]);
  Finish();
}

TEST_F(HostileClientTest, AnotherProcessCannotTakeASession) {
  // The token is right and the user the same: the newest connection counts, and the old one goes.
  FakeAgent thief({.rank = 0});
  thief.hello.set_session(honest_.hello.session());
  honest_.AwaitAcks();
  const v1::Welcome welcome = thief.Join(collector_.socket());
  ASSERT_EQ(welcome.positions_size(), 1);
  EXPECT_EQ(welcome.positions(0).next_event(), 200u);
  EXPECT_TRUE(IsClosed(&honest_));
  // The true process comes back the same way.
  honest_.Rewind(honest_.Join(collector_.socket()));
  EXPECT_TRUE(IsClosed(&thief));
  Finish();
}

class SmallLimitsTest : public HostileClientTest {
 protected:
  static ServerOptions Small() {
    ServerOptions options;
    options.limits.connections = 4;
    options.limits.sessions = 3;
    options.limits.writers_per_session = 5;
    options.limits.hello_timeout_ns = 100'000'000;
    return options;
  }
  SmallLimitsTest() : HostileClientTest(Small()) {}
};

TEST_F(SmallLimitsTest, AClientThatSaysNothingIsClosedInTime) {
  FakeAgent client;
  client.Connect(collector_.socket());
  EXPECT_TRUE(IsClosed(&client));
  EXPECT_EQ(Finish().at("no hello in time"), 1u);
}

TEST_F(SmallLimitsTest, ConnectionsOverTheLimitAreClosed) {
  std::vector<std::unique_ptr<FakeAgent>> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<FakeAgent>());
    clients.back()->Join(collector_.socket());
  }
  FakeAgent third, fourth;
  third.Connect(collector_.socket());
  fourth.Connect(collector_.socket());
  EXPECT_TRUE(IsClosed(&fourth));
  EXPECT_GE(Finish().at("too many connections"), 1u);
}

TEST_F(SmallLimitsTest, SessionsOverTheLimitAreRefusedInWords) {
  FakeAgent a, b, c;
  a.Join(collector_.socket());
  b.Join(collector_.socket());
  EXPECT_THAT(c.Join(collector_.socket()).refused(), HasSubstr("too many sessions"));
  Finish();
}

TEST_F(SmallLimitsTest, WritersOverTheLimitCloseTheConnection) {
  FakeAgent client({.rank = 1});
  client.Join(collector_.socket());
  for (int i = 0; i < 6; ++i) EmitRanges(&client, client.AddWriter(), 1);
  try {
    client.Flush();
  } catch (const std::exception&) {
  }
  EXPECT_TRUE(IsClosed(&client));
  Finish();
}

TEST_F(HostileClientTest, APeerThatNeverReadsIsCutOffAndServedNoMore) {
  FakeAgent deaf;
  deaf.Join(collector_.socket());
  const int small = 2304;
  (void)::setsockopt(deaf.socket(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
  for (int i = 0; i < 5000; ++i) {
    v1::LevelChange change;
    change.set_level(i % 2 == 0 ? v1::LEVEL_DORMANT : v1::LEVEL_KERNELS);
    change.set_reason(std::string(200, 'r'));
    collector_.collector().SetLevel(change);
    // The honest one reads them all.
    for (int seen = 0; i % 50 == 49 && seen < 50;) {
      const auto frame = honest_.Receive();
      ASSERT_TRUE(frame);
      seen += frame->header.type == proto::FrameType::kLevel ? 1 : 0;
    }
  }
  Finish();
}

}  // namespace
}  // namespace ranktap::collector
