#include <pthread.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/unit/fakes/simulated_device.h"

namespace ranktap::standin_test {
namespace {

class StreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    kernel_ = LoadKernel("first");
    ASSERT_CUDA(cudaStreamCreateWithFlags(&one_, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaStreamCreateWithFlags(&two_, cudaStreamNonBlocking));
    for (cudaEvent_t& event : events_) ASSERT_CUDA(cudaEventCreate(&event));
  }
  void TearDown() override {
    ASSERT_CUDA(cudaDeviceSynchronize());
    for (cudaEvent_t event : events_) ASSERT_CUDA(cudaEventDestroy(event));
    ASSERT_CUDA(cudaStreamDestroy(one_));
    ASSERT_CUDA(cudaStreamDestroy(two_));
  }
  float Milliseconds(cudaEvent_t from, cudaEvent_t to) {
    float value = -1;
    EXPECT_CUDA(cudaEventElapsedTime(&value, from, to));
    return value;
  }

  ScopedSetting duration_{"KERNELS", "first=2000000"};
  CUfunction kernel_;
  cudaStream_t one_, two_;
  cudaEvent_t events_[3];
};

TEST_F(StreamsTest, WorkInOneStreamTakesItsTimesOneAfterTheOther) {
  ASSERT_CUDA(cudaEventRecord(events_[0], one_));
  for (int i = 0; i < 3; ++i) ASSERT_CUDA(LaunchOne(kernel_, one_));
  ASSERT_CUDA(cudaEventRecord(events_[1], one_));
  EXPECT_EQ(cudaStreamQuery(one_), cudaErrorNotReady);
  EXPECT_EQ(cudaEventQuery(events_[1]), cudaErrorNotReady);
  ASSERT_CUDA(cudaEventSynchronize(events_[1]));
  EXPECT_CUDA(cudaStreamQuery(one_));
  EXPECT_GE(Milliseconds(events_[0], events_[1]), 6.0f);
}

TEST_F(StreamsTest, StreamsRunBesideEachOther) {
  ASSERT_CUDA(cudaEventRecord(events_[0], one_));
  ASSERT_CUDA(LaunchOne(kernel_, one_));
  ASSERT_CUDA(cudaEventRecord(events_[1], one_));
  ASSERT_CUDA(cudaEventRecord(events_[2], two_));
  ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_LT(Milliseconds(events_[0], events_[2]), Milliseconds(events_[0], events_[1]));
}

TEST_F(StreamsTest, AStreamWaitsForAnEventOfAnother) {
  ASSERT_CUDA(LaunchOne(kernel_, one_));
  ASSERT_CUDA(cudaEventRecord(events_[0], one_));
  ASSERT_CUDA(cudaStreamWaitEvent(two_, events_[0], 0));
  ASSERT_CUDA(LaunchOne(kernel_, two_));
  ASSERT_CUDA(cudaEventRecord(events_[1], two_));
  ASSERT_CUDA(cudaStreamSynchronize(two_));
  EXPECT_GE(Milliseconds(events_[0], events_[1]), 2.0f);
}

TEST_F(StreamsTest, TheLegacyStreamWaitsForBlockingStreamsAndHoldsThemBack) {
  cudaStream_t blocking;
  ASSERT_CUDA(cudaStreamCreate(&blocking));
  ASSERT_CUDA(cudaEventRecord(events_[0], blocking));
  ASSERT_CUDA(LaunchOne(kernel_, blocking));
  ASSERT_CUDA(LaunchOne(kernel_, nullptr));
  ASSERT_CUDA(LaunchOne(kernel_, blocking));
  ASSERT_CUDA(cudaEventRecord(events_[1], blocking));
  ASSERT_CUDA(cudaEventSynchronize(events_[1]));
  EXPECT_GE(Milliseconds(events_[0], events_[1]), 6.0f);
  ASSERT_CUDA(cudaStreamDestroy(blocking));
}

TEST_F(StreamsTest, HostFunctionsRunInTheirPlaceAndCopiesBehindThemSeeTheirWork) {
  int* device;
  static int source = 1;
  int result = 0;
  source = 1;
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&device), sizeof *device));
  ASSERT_CUDA(LaunchOne(kernel_, one_));
  ASSERT_CUDA(cudaLaunchHostFunc(
      one_, [](void*) { source = 42; }, nullptr));
  ASSERT_CUDA(cudaMemcpyAsync(device, &source, sizeof source, cudaMemcpyHostToDevice, one_));
  ASSERT_CUDA(cudaMemcpyAsync(&result, device, sizeof result, cudaMemcpyDeviceToHost, one_));
  ASSERT_CUDA(cudaStreamSynchronize(one_));
  EXPECT_EQ(source, 42);
  EXPECT_EQ(result, 42);
  ASSERT_CUDA(cudaFree(device));
}

TEST_F(StreamsTest, ThreadsHaveAPerThreadDefaultStreamEach) {
  unsigned long long ids[2] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&ids, i] { cudaStreamGetId(cudaStreamPerThread, &ids[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  unsigned long long legacy = 0;
  ASSERT_CUDA(cudaStreamGetId(cudaStreamLegacy, &legacy));
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_NE(ids[0], legacy);
}

TEST_F(StreamsTest, AThreadCanBeCancelledWhileItWaits) {
  ScopedSetting slow("KERNELS", "first=300000000");
  ASSERT_CUDA(LaunchOne(kernel_, one_));
  pthread_t waiter;
  pthread_create(
      &waiter, nullptr,
      [](void* stream) -> void* {
        cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
        return nullptr;
      },
      one_);
  pthread_cancel(waiter);
  void* ended = nullptr;
  pthread_join(waiter, &ended);
  EXPECT_EQ(ended, PTHREAD_CANCELED);
  EXPECT_EQ(cudaStreamQuery(one_), cudaErrorNotReady);
}

TEST_F(StreamsTest, HandlesOfOthersAreRefused) {
  int stranger = 0;
  auto handle = reinterpret_cast<cudaStream_t>(&stranger);
  EXPECT_EQ(cudaStreamSynchronize(handle), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace ranktap::standin_test
