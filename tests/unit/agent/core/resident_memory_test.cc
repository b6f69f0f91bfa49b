#include "agent/core/resident_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace ranktap::agent {
namespace {

TEST(ResidentMemory, IsReadFromTheProcesssOwnStatus) {
  const ResidentMemory memory =
      ParseResidentMemory("Name:\tx\nVmPeak:\t 9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1024 kB\n");
  EXPECT_EQ(memory.now, 1u << 20);
  EXPECT_EQ(memory.peak, 2u << 20);
}

TEST(ResidentMemory, ThePeakHoldsWhatIsGivenBack) {
  constexpr size_t kBlock = 64u << 20;
  ResidentMemoryReader reader;
  const ResidentMemory before = reader.Read();
  ASSERT_GT(before.now, 0u);
  { const std::vector<char> touched(kBlock, 1); }
  const ResidentMemory after = reader.Read();
  EXPECT_GE(after.peak, before.now + kBlock / 2);
}

}  // namespace
}  // namespace ranktap::agent
