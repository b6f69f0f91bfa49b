#include "proto/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::proto {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// The vectors of RFC 3720, B.4.
TEST(Crc32cTest, AgreesWithThePublishedVectors) {
  std::vector<std::byte> zeros(32);
  EXPECT_EQ(Crc32c(zeros), 0x8a9136aau);
  std::vector<std::byte> ones(32, std::byte{0xff});
  EXPECT_EQ(Crc32c(ones), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(Bytes("123456789")), 0xe3069283u);
}

TEST(Crc32cTest, ContinuesAnEarlierChecksum) {
  const std::string_view text = "a frame header and the payload that follows it";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t head = Crc32c(Bytes(text.substr(0, cut)));
    EXPECT_EQ(Crc32c(Bytes(text.substr(cut)), head), Crc32c(Bytes(text))) << "cut at " << cut;
  }
}

TEST(Crc32cTest, OfManyBytesIsThatOfTheirPiecesInTurn) {
  std::string text;
  for (uint32_t i = 0; text.size() < 20'000; ++i) text += std::to_string(i * 2654435761u);
  const std::string_view all = text;
  for (const size_t size : {3071, 3072, 3073, 6143, 6144, 20'000}) {
    uint32_t pieces = 0;
    for (size_t at = 0; at < size; at += 100) {
      pieces = Crc32c(Bytes(all.substr(at, std::min<size_t>(100, size - at))), pieces);
    }
    EXPECT_EQ(Crc32c(Bytes(all.substr(0, size))), pieces) << size;
  }
}

}  // namespace
}  // namespace ranktap::proto
