// What CUPTI does not promise, and a client must not rely on: the stand-in breaks it.
#include <cupti.h>
#include <gtest/gtest.h>
#include <string.h>

#include <set>
#include <vector>

#include "tests/unit/fakes/simulated_device.h"

namespace ranktap::standin_test {
namespace {

struct SeenCall {
  bool is_enter;
  uint64_t data;
  const char* symbol;
};
std::vector<SeenCall> g_calls;

void OnCallback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  g_calls.push_back({call.callbackSite == CUPTI_API_ENTER, *call.correlationData, call.symbolName});
  *call.correlationData = 17;
}

class CuptiPromisesTest : public testing::Test {
 protected:
  void SetUp() override {
    kernel_ = LoadKernel("first");
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cuptiSubscribe(&subscriber_, OnCallback, nullptr), CUPTI_SUCCESS);
    g_calls.clear();
  }
  void TearDown() override { EXPECT_EQ(cuptiUnsubscribe(subscriber_), CUPTI_SUCCESS); }
  void Want(uint32_t cbid) {
    EXPECT_EQ(cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, cbid), CUPTI_SUCCESS);
  }

  CUfunction kernel_ = nullptr;
  cudaStream_t stream_ = nullptr;
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

TEST_F(CuptiPromisesTest, CorrelationDataHoldsAnythingBeforeItIsSet) {
  Want(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  for (int i = 0; i < 10; ++i) ASSERT_CUDA(LaunchOne(kernel_, stream_));
  std::set<uint64_t> found;
  ASSERT_EQ(g_calls.size(), 20u);
  for (const SeenCall& call : g_calls) {
    if (call.is_enter) {
      found.insert(call.data);
    } else {
      EXPECT_EQ(call.data, 17u);
    }
  }
  EXPECT_EQ(found.size(), 10u);
}

TEST_F(CuptiPromisesTest, OnlyALaunchHasASymbolElseThereIsNoAddress) {
  Want(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  Want(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize);
  ASSERT_CUDA(LaunchOne(kernel_, stream_));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  ASSERT_EQ(g_calls.size(), 4u);
  EXPECT_STREQ(g_calls[0].symbol, "first");
  constexpr uintptr_t kFirstOfNobody = uintptr_t{1} << 47;
  EXPECT_GE(reinterpret_cast<uintptr_t>(g_calls[2].symbol), kFirstOfNobody);
}

}  // namespace
}  // namespace ranktap::standin_test
