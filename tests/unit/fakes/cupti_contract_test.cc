// CUPTI's contract as the agent relies on it, from inside one process.
#include <cupti.h>
#include <gmock/gmock.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/unit/fakes/simulated_device.h"

namespace ranktap::standin_test {
namespace {

using testing::ElementsAre;

struct Seen {
  std::mutex mutex;
  std::vector<std::vector<uint8_t>> records;
  std::set<pid_t> request_threads;
  std::set<pid_t> complete_threads;
  size_t buffers = 0;
};

Seen g_seen;
std::atomic<size_t> g_buffer_bytes{4096};
std::atomic<int> g_enters{0}, g_exits{0};

void OnRequest(uint8_t** buffer, size_t* size, size_t* most) {
  *size = g_buffer_bytes.load();
  *buffer = *size == 0 ? nullptr : static_cast<uint8_t*>(aligned_alloc(8, *size));
  *most = 0;
  if (*buffer != nullptr) memset(*buffer, 0xa5, *size);  // used memory
  std::lock_guard lock(g_seen.mutex);
  g_seen.request_threads.insert(static_cast<pid_t>(syscall(SYS_gettid)));
}

void OnComplete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  std::lock_guard lock(g_seen.mutex);
  ++g_seen.buffers;
  g_seen.complete_threads.insert(static_cast<pid_t>(syscall(SYS_gettid)));
  CUpti_Activity *record = nullptr, *next = nullptr;
  for (;; record = next) {
    next = record;
    bool more = cuptiActivityGetNextRecord(buffer, valid, &next) == CUPTI_SUCCESS;
    const uint8_t* end = more ? reinterpret_cast<uint8_t*>(next) : buffer + valid;
    if (record != nullptr) {
      g_seen.records.emplace_back(reinterpret_cast<const uint8_t*>(record), end);
    }
    if (!more) break;
  }
  free(buffer);
}

void OnCallback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  (call.callbackSite == CUPTI_API_ENTER ? g_enters : g_exits).fetch_add(1);
}

class CuptiContractTest : public testing::Test {
 protected:
  // A flush waits, but where a test says otherwise.
  const ScopedSetting waits_{"LATE_US", "0"};
  void SetUp() override {
    kernel_ = LoadKernel("first");
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cuptiActivityRegisterCallbacks(OnRequest, OnComplete), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  }
  void TearDown() override {
    ASSERT_CUDA(cudaDeviceSynchronize());
    for (int kind : {10, 5, 4}) cuptiActivityDisable(static_cast<CUpti_ActivityKind>(kind));
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    size_t dropped;
    cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
    g_buffer_bytes = 4096;
    std::lock_guard lock(g_seen.mutex);
    g_seen.records.clear();
    g_seen.buffers = 0;
  }

  void Launch(int count) {
    for (int i = 0; i < count; ++i) ASSERT_CUDA(LaunchOne(kernel_, stream_));
  }
  std::vector<CUpti_ActivityKernel10> Kernels() {
    std::vector<CUpti_ActivityKernel10> kernels;
    std::lock_guard lock(g_seen.mutex);
    for (const auto& bytes : g_seen.records) {
      CUpti_ActivityKernel10 kernel{};
      memcpy(&kernel, bytes.data(), std::min(bytes.size(), sizeof kernel));
      if (kernel.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) kernels.push_back(kernel);
    }
    return kernels;
  }
  // A call for every kind of record.
  void UseEverything() {
    void *memory, *peer;
    CUmodule module;
    cudaEvent_t event;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaMemPool_t pool;
    EXPECT_CUDA(cudaSetDevice(2));
    EXPECT_CUDA(cudaMallocAsync(&peer, 256, nullptr));  // the device's first: makes its pool
    EXPECT_CUDA(cudaDeviceGetDefaultMemPool(&pool, 2));
    EXPECT_CUDA(cudaMemPoolTrimTo(pool, 0));
    EXPECT_CUDA(cudaSetDevice(0));
    EXPECT_CUDA(cudaMalloc(&memory, 256));
    EXPECT_CUDA(cudaMemset(memory, 1, 256));
    EXPECT_CUDA(cudaMemcpyAsync(memory, memory, 128, cudaMemcpyDeviceToDevice, stream_));
    EXPECT_CUDA(cudaMemcpyPeerAsync(peer, 2, memory, 0, 256, stream_));
    EXPECT_CUDA(cuModuleLoadData(&module, kPtx));
    EXPECT_CUDA(cudaEventCreate(&event));
    EXPECT_CUDA(cudaEventRecord(event, stream_));
    EXPECT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
    Launch(1);
    EXPECT_CUDA(cudaStreamEndCapture(stream_, &graph));
    EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_CUDA(cudaGraphLaunch(exec, stream_));
    Launch(1);
    EXPECT_CUDA(cudaStreamSynchronize(stream_));
  }
  size_t Dropped() {
    size_t dropped = 0;
    EXPECT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
    return dropped;
  }

  CUfunction kernel_;
  cudaStream_t stream_;
};

TEST_F(CuptiContractTest, BuffersAreAskedForHereAndReturnedByTheWorker) {
  Launch(1);
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  EXPECT_EQ(Kernels().size(), 1u);
  auto self = static_cast<pid_t>(syscall(SYS_gettid));
  EXPECT_TRUE(g_seen.request_threads.contains(self));
  EXPECT_FALSE(g_seen.complete_threads.contains(self));
}

TEST_F(CuptiContractTest, AFlushLeavesABufferWithARunningKernelAlone) {
  ScopedSetting slow("KERNELS", "first=50000000");
  Launch(1);
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  EXPECT_EQ(Kernels().size(), 0u);
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  ASSERT_EQ(Kernels().size(), 1u);
  EXPECT_GE(Kernels()[0].end - Kernels()[0].start, 50000000u);
}

TEST_F(CuptiContractTest, AForcedFlushConsumesARunningKernelWithoutItsEnd) {
  ScopedSetting slow("KERNELS", "first=200000000");
  Launch(2);
  ASSERT_EQ(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
  ASSERT_EQ(Kernels().size(), 2u);
  EXPECT_EQ(Kernels()[0].end, 0u);
  EXPECT_EQ(Kernels()[1].start, 0u);
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  EXPECT_EQ(Kernels().size(), 2u);
}

TEST_F(CuptiContractTest, FullBuffersComeBackByThemselves) {
  Launch(200);
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  for (int wait = 0; wait < 2000 && Kernels().size() < 100; ++wait) usleep(1000);
  EXPECT_GE(Kernels().size(), 100u);
}

TEST_F(CuptiContractTest, WithoutBuffersRecordsAreDroppedAndCounted) {
  g_buffer_bytes = 0;
  Launch(5);
  EXPECT_EQ(Dropped(), 5u);
  EXPECT_EQ(Dropped(), 0u);
}

TEST_F(CuptiContractTest, ThereIsOneSubscriberAtATime) {
  CUpti_SubscriberHandle first, second;
  char name[64] = "";
  CUpti_SubscriberParams params{sizeof params, "the first", name, sizeof name};
  ASSERT_EQ(cuptiSubscribe_v2(&first, OnCallback, nullptr, &params), CUPTI_SUCCESS);
  EXPECT_EQ(cuptiSubscribe(&second, OnCallback, nullptr),
            CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  EXPECT_EQ(cuptiSubscribe_v2(&second, OnCallback, nullptr, &params),
            CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  EXPECT_STREQ(name, "the first");
  ASSERT_EQ(cuptiUnsubscribe(first), CUPTI_SUCCESS);
  ASSERT_EQ(cuptiSubscribe(&second, OnCallback, nullptr), CUPTI_SUCCESS);
  ASSERT_EQ(cuptiUnsubscribe(second), CUPTI_SUCCESS);
}

TEST_F(CuptiContractTest, OnlyWantedCallbacksAreRaised) {
  CUpti_SubscriberHandle subscriber;
  ASSERT_EQ(cuptiSubscribe(&subscriber, OnCallback, nullptr), CUPTI_SUCCESS);
  g_enters = g_exits = 0;
  Launch(1);
  EXPECT_EQ(g_enters, 0);
  ASSERT_EQ(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel),
            CUPTI_SUCCESS);
  Launch(2);
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  EXPECT_EQ(g_enters, 2);
  EXPECT_EQ(g_exits, 2);
  ASSERT_EQ(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
  Launch(1);
  EXPECT_EQ(g_enters, 2);
}

TEST_F(CuptiContractTest, CorrelationIdsCanDependOnTheApiKinds) {
  ScopedSetting mode("CORRELATION", "api-kinds");
  Launch(1);
  ASSERT_EQ(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1), CUPTI_SUCCESS);
  Launch(1);
  ASSERT_EQ(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 0), CUPTI_SUCCESS);
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  ASSERT_EQ(Kernels().size(), 2u);
  EXPECT_EQ(Kernels()[0].correlationId, 0u);
  EXPECT_NE(Kernels()[1].correlationId, 0u);
}

TEST_F(CuptiContractTest, RecordsCanBeWrongInEveryScriptedWay) {
  {
    ScopedSetting zero("ZERO_TIMES_EVERY", "1");
    Launch(1);
  }
  {
    ScopedSetting swapped("SWAP_TIMES_EVERY", "1");
    Launch(1);
  }
  {
    ScopedSetting lost("LOSE_EVERY", "1");
    Launch(3);
  }
  {
    ScopedSetting dropped("DROP_EVERY", "1");
    Launch(2);
  }
  {
    ScopedSetting unknown("UNKNOWN_KIND_EVERY", "1");
    Launch(1);
  }
  {
    ScopedSetting ticks("TICK_TIMES_EVERY", "1");
    Launch(1);
  }
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  std::vector<CUpti_ActivityKernel10> kernels = Kernels();
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(kernels[0].start, 0u);
  EXPECT_EQ(kernels[0].end, 0u);
  EXPECT_GT(kernels[1].start, kernels[1].end);
  EXPECT_LT(kernels[2].start, kernels[2].end);
  EXPECT_EQ(Dropped(), 2u);
  EXPECT_LT(kernels[3].start, kernels[2].start / 100) << "of another clock";
  EXPECT_EQ(g_seen.records.size(), 5u);  // with the one of no known kind
}

TEST_F(CuptiContractTest, GrownRecordsAreSteppedOver) {
  ScopedSetting grow("GROW_RECORDS", "24");
  Launch(3);
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  ASSERT_EQ(Kernels().size(), 3u);
  EXPECT_EQ(g_seen.records[0].size(), sizeof(CUpti_ActivityKernel10) + 24);
}

TEST_F(CuptiContractTest, EveryThreadHasABufferOfItsOwnThatComesBackWhenItEnds) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] {
      ASSERT_CUDA(cudaSetDevice(0));
      Launch(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  EXPECT_EQ(Kernels().size(), 3u);
  EXPECT_EQ(g_seen.buffers, 3u);
}

TEST_F(CuptiContractTest, ClustersAndCooperationReachTheRecord) {
  CUlaunchAttribute attributes[2]{};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim.x = 4;
  attributes[0].value.clusterDim.y = 2;
  attributes[0].value.clusterDim.z = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[1].value.cooperative = 1;
  CUlaunchConfig config{8, 4, 1, 64, 1, 1, 2048, stream_, attributes, 2};
  ASSERT_CUDA(cuLaunchKernelEx(&config, kernel_, nullptr, nullptr));
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  ASSERT_EQ(Kernels().size(), 1u);
  CUpti_ActivityKernel10 kernel = Kernels()[0];
  EXPECT_THAT((std::vector<uint32_t>{kernel.clusterX, kernel.clusterY, kernel.clusterZ}),
              ElementsAre(4, 2, 1));
  EXPECT_EQ(kernel.dynamicSharedMemory, 2048);
  EXPECT_EQ(kernel.launchType, CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE);
  EXPECT_EQ(kernel.deviceId, 0u);
}

TEST_F(CuptiContractTest, EveryModelledKindIsRecorded) {
  const std::set<uint32_t> kinds = {1, 2, 4, 5, 8, 9, 10, 17, 22, 36, 37, 38, 39, 49, 50, 51, 52};
  for (uint32_t kind : kinds) {
    EXPECT_EQ(cuptiActivityEnableAndDump(static_cast<CUpti_ActivityKind>(kind)), CUPTI_SUCCESS);
  }
  cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 17);
  UseEverything();
  uint64_t popped = 0;
  cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped);
  EXPECT_EQ(popped, 17u);
  for (uint32_t kind : kinds) cuptiActivityDisable(static_cast<CUpti_ActivityKind>(kind));
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  std::set<uint32_t> seen;
  for (const auto& bytes : g_seen.records) {
    uint32_t kind;
    memcpy(&kind, bytes.data(), sizeof kind);
    seen.insert(kind);
  }
  EXPECT_EQ(seen, kinds);
}

TEST_F(CuptiContractTest, AttributesAreKept) {
  uint8_t zeroed = 1, per_thread = 9;
  size_t bytes = sizeof zeroed;
  ASSERT_EQ(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &bytes,
                                      &per_thread),
            CUPTI_SUCCESS);
  EXPECT_EQ(per_thread, 1);
  size_t too_small = 1;
  EXPECT_EQ(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &too_small, &zeroed),
            CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
}

}  // namespace
}  // namespace ranktap::standin_test
