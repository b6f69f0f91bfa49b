#include "proto/frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ranktap::proto {
namespace {

std::vector<std::byte> MakeFrame(const FrameFields& fields, std::string_view payload) {
  const auto bytes = std::as_bytes(std::span(payload));
  const FrameHeader header = MakeFrameHeader(fields, bytes);
  const auto head = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> frame(head.begin(), head.end());
  frame.insert(frame.end(), bytes.begin(), bytes.end());
  return frame;
}

TEST(FrameTest, RoundTripsHeaderAndPayload) {
  FrameLossCounts lost{};
  lost[static_cast<size_t>(Loss::kRingFull)] = 7;
  const auto frame = MakeFrame(
      {.type = FrameType::kEvents, .writer = 3, .first_event = 100, .events = 5, .lost = lost},
      "payload");

  const FrameView view = DecodeFrame(frame);

  ASSERT_EQ(view.status, FrameStatus::kComplete);
  EXPECT_EQ(view.consumed, frame.size());
  EXPECT_EQ(view.header.writer, 3u);
  EXPECT_EQ(view.header.first_event, 100u);
  EXPECT_EQ(view.header.events, 5u);
  EXPECT_EQ(view.header.lost, lost);
  EXPECT_EQ(view.payload.size(), 7u);
}

TEST(FrameTest, EveryPrefixOfAFrameNeedsMore) {
  const auto frame = MakeFrame({.type = FrameType::kClock}, "some payload");
  for (size_t size = 0; size < frame.size(); ++size) {
    EXPECT_EQ(DecodeFrame(std::span(frame).first(size)).status, FrameStatus::kNeedMore) << size;
  }
}

TEST(FrameTest, EveryFlippedBitIsFound) {
  const auto frame = MakeFrame({.type = FrameType::kEvents, .events = 1}, "payload");
  for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
    auto damaged = frame;
    damaged[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_NE(DecodeFrame(damaged).status, FrameStatus::kComplete) << "bit " << bit;
  }
}

TEST(FrameTest, RefusesALengthOverTheLimitBeforeTheBytesCome) {
  FrameHeader header = MakeFrameHeader({.type = FrameType::kEvents}, {});
  header.payload_bytes = kMaxPayloadBytes + 1;
  header.header_crc =
      Crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(FrameHeader, header_crc)));
  EXPECT_EQ(DecodeFrame(std::as_bytes(std::span(&header, 1))).status, FrameStatus::kTooLarge);
}

TEST(FrameTest, RefusesPositionsThatOverflow) {
  const auto frame =
      MakeFrame({.type = FrameType::kEvents, .first_event = UINT64_MAX - 1, .events = 5}, "");
  EXPECT_EQ(DecodeFrame(frame).status, FrameStatus::kBadRange);
}

TEST(FrameTest, RefusesAStrangersFirstByte) {
  EXPECT_EQ(DecodeFrame(std::as_bytes(std::span("GET / HTTP/1.1", 4))).status,
            FrameStatus::kBadMagic);
}

}  // namespace
}  // namespace ranktap::proto
