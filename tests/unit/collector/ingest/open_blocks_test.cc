// When the block that a session fills goes to the store.
#include "collector/ingest/session/open_blocks.h"

#include <gtest/gtest.h>

#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

v1::Hello HelloOf(const std::string& session) {
  v1::Hello hello;
  hello.set_session(session);
  return hello;
}

class OpenBlocksTest : public ::testing::Test {
 protected:
  OpenBlocksTest()
      : store_(RunRegistry(std::move(*RunDirectory::Create(temporary_ / "run", "x")), {}),
               std::string(16, 'c'), [](StoreReply) {}),
        blocks_(64u << 20, kSmallBlockAges, &loop_, &store_,
                [this](SessionId) { return &session_; }) {}

  // A frame of so many bytes comes.
  void Bring(size_t bytes) {
    const std::string payload(bytes, 'x');
    const uint64_t number = session_.block_number(), before = session_.open_bytes();
    session_.Add({.type = proto::FrameType::kCost}, std::as_bytes(std::span(payload)), now_ns_);
    blocks_.Grew(&session_, number, before);
  }
  // The age at which the open block is closed, in milliseconds.
  uint64_t AgeAtClosing() {
    const uint64_t begin = now_ns_;
    while (session_.has_open_block()) {
      now_ns_ += 1'000'000;
      (void)loop_.RunOnce(0);
    }
    return (now_ns_ - begin) / 1'000'000;
  }

  TemporaryDirectory temporary_;
  uint64_t now_ns_ = 0;
  EventLoop loop_{[this] { return now_ns_; }};
  TraceStore store_;
  Session session_{1, HelloOf("0123456789abcdef"), {}, FileDescriptor()};
  OpenBlocks blocks_;
};

TEST_F(OpenBlocksTest, ABlockOfARankWithMuchToSayIsStoredAt200Milliseconds) {
  Bring(kSmallBlockBytes);
  EXPECT_EQ(AgeAtClosing(), 200u);
}

TEST_F(OpenBlocksTest, ABlockOfARankWithLittleToSayIsStoredAtOneSecondButItsFirst) {
  Bring(100);
  EXPECT_EQ(AgeAtClosing(), 200u);
  Bring(100);
  EXPECT_EQ(AgeAtClosing(), 1000u);
}

TEST_F(OpenBlocksTest, ASmallBlockThatGrowsIsStoredAtItsNextAge) {
  Bring(kBlockBytes);
  Bring(100);
  for (int ms = 0; ms < 250; ++ms) {
    now_ns_ += 1'000'000;
    (void)loop_.RunOnce(0);
  }
  ASSERT_TRUE(session_.has_open_block());
  Bring(kSmallBlockBytes);
  EXPECT_EQ(AgeAtClosing(), 150u);
}

TEST_F(OpenBlocksTest, AFullBlockDoesNotWait) {
  Bring(kBlockBytes);
  EXPECT_FALSE(session_.has_open_block());
}

TEST_F(OpenBlocksTest, ATimerOfAnEarlierBlockClosesNoLaterOne) {
  Bring(kSmallBlockBytes);
  now_ns_ += 100'000'000;
  blocks_.Close(&session_);
  Bring(kSmallBlockBytes);
  EXPECT_EQ(AgeAtClosing(), 200u);
}

}  // namespace
}  // namespace ranktap::collector
