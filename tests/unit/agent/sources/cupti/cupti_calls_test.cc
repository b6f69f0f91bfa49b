#include "agent/sources/cupti/cupti_calls.h"

#include <gtest/gtest.h>

namespace ranktap::agent::cupti {
namespace {

TEST(CuptiCallsTest, NamesLoseTheVersionThatCuptiAppends) {
  EXPECT_EQ(PlainName("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(PlainName("cudaMemcpyBatchAsync_ptsz_v13000"), "cudaMemcpyBatchAsync_ptsz");
  EXPECT_EQ(PlainName("cuMemcpyHtoD_v2"), "cuMemcpyHtoD_v2");
  EXPECT_EQ(PlainName("cuLaunchKernel"), "cuLaunchKernel");
}

TEST(CuptiCallsTest, EntryPointsFallIntoTheirGroups) {
  const auto group = [](std::string_view name) { return ClassifyCall(name).group; };
  EXPECT_EQ(group("cudaLaunchKernel"), CallGroup::kLaunch);
  EXPECT_EQ(group("cudaLaunchKernelExC_ptsz"), CallGroup::kLaunch);
  EXPECT_EQ(group("__cudaLaunchKernel_ptsz"), CallGroup::kLaunch);
  EXPECT_EQ(group("__"), CallGroup::kNone);
  EXPECT_EQ(group("cuLaunchKernelEx"), CallGroup::kLaunch);
  EXPECT_EQ(group("cuLaunchCooperativeKernel_ptsz"), CallGroup::kLaunch);
  EXPECT_EQ(group("cudaLaunchHostFunc_ptsz"), CallGroup::kHostFunction);
  EXPECT_EQ(group("cudaGraphLaunch"), CallGroup::kGraphLaunch);
  EXPECT_EQ(group("cuGraphLaunch_ptsz"), CallGroup::kGraphLaunch);
  EXPECT_EQ(group("cudaStreamSynchronize"), CallGroup::kSynchronize);
  EXPECT_EQ(group("cuCtxSynchronize_v2"), CallGroup::kSynchronize);
  EXPECT_EQ(group("cudaMemcpyAsync"), CallGroup::kCopy);
  EXPECT_EQ(group("cuMemsetD32Async"), CallGroup::kCopy);
  EXPECT_EQ(group("cudaMallocAsync_ptsz"), CallGroup::kAllocate);
  EXPECT_EQ(group("cudaFreeHost"), CallGroup::kAllocate);
  EXPECT_EQ(group("cuMemAlloc_v2"), CallGroup::kAllocate);
  EXPECT_EQ(group("cudaEventRecord"), CallGroup::kEvent);
  EXPECT_EQ(group("cuStreamWaitEvent_ptsz"), CallGroup::kEvent);
  EXPECT_EQ(group("cudaGetDevice"), CallGroup::kNone);
  EXPECT_EQ(group("cuDevicePrimaryCtxGetState"), CallGroup::kNone);
  EXPECT_EQ(group("cudaStreamWaitValue32"), CallGroup::kNone);
  EXPECT_EQ(group("nvtxRangePush"), CallGroup::kNone);
}

TEST(CuptiCallsTest, EventCallsKnowWhereTheirArgumentsAre) {
  EXPECT_EQ(ClassifyCall("cudaEventRecord").arguments, EventArguments::kEventStream);
  EXPECT_EQ(ClassifyCall("cuEventRecordWithFlags_ptsz").arguments, EventArguments::kEventStream);
  EXPECT_EQ(ClassifyCall("cudaStreamWaitEvent").arguments, EventArguments::kStreamEvent);
  EXPECT_EQ(ClassifyCall("cudaEventSynchronize").arguments, EventArguments::kEvent);
  EXPECT_EQ(ClassifyCall("cudaEventCreate").arguments, EventArguments::kNone);
}

}  // namespace
}  // namespace ranktap::agent::cupti
