#include "proto/crc32c.h"

#include <gtest/gtest.h>

#include <cstring>
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

}  // namespace
}  // namespace ranktap::proto
