// Which kernels are counted against launches, and what is left when the process gives up.
#include "agent/sources/cupti/cupti_kernel_count.h"

#include <gtest/gtest.h>

namespace ranktap::agent::cupti {
namespace {

bool Count(KernelCount& kernels, const KernelRecord& kernel, uint32_t version = kVersion130) {
  const void* const record = &kernel;
  return kernels.Count(*static_cast<const Record*>(record), version);
}

TEST(CuptiKernelCountTest, KernelsOfGraphsAndOfKernelsStandForNoLaunch) {
  KernelCount kernels;
  KernelRecord kernel{};
  kernel.kind = Kind::kConcurrentKernel;
  EXPECT_TRUE(Count(kernels, kernel));
  EXPECT_EQ(kernels.count(), 1u);
  kernel.graph = 7;
  EXPECT_TRUE(Count(kernels, kernel));
  kernel.graph = 0;
  kernel.device_launched = 1;
  EXPECT_TRUE(Count(kernels, kernel));
  EXPECT_EQ(kernels.count(), 1u);
  // Before 13.0 there is no such field: what lies there is not read.
  EXPECT_TRUE(Count(kernels, kernel, kVersion129));
  EXPECT_EQ(kernels.count(), 2u);
  kernels.Add(3);
  EXPECT_EQ(kernels.count(), 5u);
}

TEST(CuptiKernelCountTest, AKernelThatComesAfterTheProcessGaveUpIsRefusedAndNothingElseIs) {
  KernelCount kernels;
  kernels.Add(5);
  EXPECT_EQ(kernels.GiveUp(), 5u);
  KernelRecord kernel{};
  kernel.kind = Kind::kConcurrentKernel;
  EXPECT_FALSE(Count(kernels, kernel));
  kernel.graph = 7;
  EXPECT_TRUE(Count(kernels, kernel));
  kernel.kind = Kind::kMemcpy;
  EXPECT_TRUE(Count(kernels, kernel));
  constexpr uint64_t kMoreThanAnyLaunches = uint64_t{1} << 62;
  EXPECT_GT(kernels.GiveUp(), kMoreThanAnyLaunches) << "so that the rest is declared lost once";
}

}  // namespace
}  // namespace ranktap::agent::cupti
