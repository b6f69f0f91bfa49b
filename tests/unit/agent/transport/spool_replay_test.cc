// What a collector gets of a spool that was filled before it came.
#include "agent/transport/spool_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ranktap::agent {
namespace {

using proto::FrameType;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kWriter = 7;

// "events 0+10": type, first event and number; of other frames the payload.
class Collected final : public FrameSink {
 public:
  void Put(const proto::FrameFields& fields, std::span<const std::byte> payload) override {
    const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
    got.push_back(fields.type == FrameType::kEvents
                      ? "events " + std::to_string(fields.first_event) + "+" +
                            std::to_string(fields.events)
                      : text);
  }
  Stored Commit() override { return Stored::kOnAck; }
  bool IsBehind() const override { return got.size() >= most; }

  std::vector<std::string> got;
  size_t most = 100;
};

std::string Lost(uint64_t first, uint64_t events) {
  std::string bytes;
  AppendLostRange(
      {.writer = kWriter, .first_event = first, .events = events, .loss = proto::Loss::kStore},
      bytes);
  return bytes;
}

class SpoolReplayTest : public ::testing::Test {
 protected:
  SpoolReplayTest() {
    std::string path = ::testing::TempDir() + "spool_replay_XXXXXX";
    directory_ = mkdtemp(path.data());
    spool_.emplace(FileSpool::Setup{
        .directory = directory_, .session = std::string(16, 's'), .limit_bytes = 16 << 20});
    EXPECT_TRUE(spool_->Open("hello"));
  }
  ~SpoolReplayTest() override { std::filesystem::remove_all(directory_); }

  void Spool(uint64_t first, uint32_t events, size_t bytes = 8) {
    const std::string payload(bytes, 'x');
    replay_.NoteBatch(kWriter, first);
    spool_->Put({.type = FrameType::kEvents,
                 .writer = kWriter,
                 .first_event = first,
                 .events = events,
                 .lost = {}},
                std::as_bytes(std::span(payload)));
    ASSERT_EQ(spool_->Commit(), FrameSink::Stored::kNow);
    replay_.NoteStored(kWriter, first + events);
  }
  void Greet(uint64_t has_until) {
    Welcome welcome;
    if (has_until > 0) welcome.positions = {{kWriter, has_until}};
    replay_.Begin(welcome);
  }

  std::filesystem::path directory_;
  std::optional<FileSpool> spool_;
  SpoolReplay replay_;
  Collected collector_;
};

TEST_F(SpoolReplayTest, GivesACollectorTheFramesButNotTheHelloThatItHas) {
  Spool(0, 10);
  Spool(10, 5);
  Greet(/*has_until=*/0);
  EXPECT_TRUE(replay_.Run(*spool_, collector_));
  EXPECT_THAT(collector_.got, ElementsAre("events 0+10", "events 10+5"));
}

TEST_F(SpoolReplayTest, LeavesOutWhatTheCollectorHasStored) {
  Spool(0, 10);
  Spool(10, 5);
  Greet(/*has_until=*/10);
  EXPECT_TRUE(replay_.Run(*spool_, collector_));
  EXPECT_THAT(collector_.got, ElementsAre("events 10+5"));
}

TEST_F(SpoolReplayTest, StopsWhereTheSinkIsBehindAndGoesOnFromThere) {
  Spool(0, 10, proto::kMaxPayloadBytes);  // as much as is read at a time
  Spool(10, 5);
  Greet(/*has_until=*/0);
  collector_.most = 1;
  EXPECT_FALSE(replay_.Run(*spool_, collector_));
  EXPECT_THAT(collector_.got, ElementsAre("events 0+10"));
  collector_.most = 100;
  EXPECT_TRUE(replay_.Run(*spool_, collector_));
  EXPECT_THAT(collector_.got, ElementsAre("events 0+10", "events 10+5"));
}

TEST_F(SpoolReplayTest, DeclaresLostWhatWasSpooledAndIsNotThereAnyMore) {
  Spool(20, 10);
  spool_->Remove();
  Greet(/*has_until=*/24);
  EXPECT_TRUE(replay_.HasEvents());
  EXPECT_TRUE(replay_.Run(*spool_, collector_));
  EXPECT_THAT(collector_.got, ElementsAre(Lost(24, 6)));
}

TEST_F(SpoolReplayTest, AsksNothingOfASpoolOnceTheCollectorHasAcknowledgedItsLastFrame) {
  Spool(0, 10);
  Greet(/*has_until=*/0);
  ASSERT_TRUE(replay_.Run(*spool_, collector_));
  replay_.Await(3);
  EXPECT_FALSE(replay_.Acknowledge(2));
  EXPECT_TRUE(replay_.HasEvents());
  EXPECT_TRUE(replay_.Acknowledge(3));
  EXPECT_FALSE(replay_.HasEvents());
  EXPECT_FALSE(replay_.Acknowledge(4)) << "once";
}

TEST_F(SpoolReplayTest, KeepsTheSpoolForTheNextCollectorWhereOneGoesBeforeItAcknowledges) {
  Spool(0, 10);
  Greet(/*has_until=*/0);
  ASSERT_TRUE(replay_.Run(*spool_, collector_));
  replay_.Await(1);
  replay_.Interrupt();
  EXPECT_FALSE(replay_.Acknowledge(1));
  Greet(/*has_until=*/0);
  Collected next;
  EXPECT_TRUE(replay_.Run(*spool_, next));
  EXPECT_THAT(next.got, ElementsAre("events 0+10"));
}

}  // namespace
}  // namespace ranktap::agent
