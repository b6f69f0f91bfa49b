#include <vector>

#include "tests/unit/fakes/simulated_device.h"

namespace ranktap::standin_test {
namespace {

class GraphsTest : public testing::Test {
 protected:
  void SetUp() override {
    kernel_ = LoadKernel("first");
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaStreamCreateWithFlags(&side_, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaEventCreate(&fork_));
    ASSERT_CUDA(cudaEventCreate(&join_));
    ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory_), sizeof(int)));
    ASSERT_CUDA(cudaMemset(memory_, 0, sizeof(int)));
  }
  void TearDown() override {
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUDA(cudaFree(memory_));
  }
  size_t NodeCount(cudaGraph_t graph) {
    size_t count = 0;
    EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &count));
    return count;
  }

  CUfunction kernel_;
  cudaStream_t stream_, side_;
  cudaEvent_t fork_, join_;
  int* memory_;
};

TEST_F(GraphsTest, CapturedWorkRunsOnlyWhenTheGraphIsLaunched) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  int host = 0;
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  ASSERT_CUDA(LaunchOne(kernel_, stream_));
  ASSERT_CUDA(cudaMemsetAsync(memory_, 5, 1, stream_));
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(NodeCount(graph), 2u);
  ASSERT_CUDA(cudaMemcpy(&host, memory_, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT_EQ(host, 0);
  ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  ASSERT_CUDA(cudaGraphLaunch(exec, stream_));
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  ASSERT_CUDA(cudaMemcpy(&host, memory_, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT_EQ(host, 5);
}

TEST_F(GraphsTest, ACaptureForksAndJoinsThroughEvents) {
  cudaGraph_t graph;
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(LaunchOne(kernel_, stream_));
  ASSERT_CUDA(cudaEventRecord(fork_, stream_));
  ASSERT_CUDA(cudaStreamWaitEvent(side_, fork_, 0));
  ASSERT_CUDA(LaunchOne(kernel_, side_));
  ASSERT_CUDA(LaunchOne(kernel_, stream_));
  ASSERT_CUDA(cudaEventRecord(join_, side_));
  ASSERT_CUDA(cudaStreamWaitEvent(stream_, join_, 0));
  ASSERT_CUDA(LaunchOne(kernel_, stream_));
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(NodeCount(graph), 4u);
  size_t edges = 0;
  ASSERT_CUDA(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(edges, 4u);
}

TEST_F(GraphsTest, AForkThatIsNotJoinedIsAnError) {
  cudaGraph_t graph;
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(LaunchOne(kernel_, stream_));
  ASSERT_CUDA(cudaEventRecord(fork_, stream_));
  ASSERT_CUDA(cudaStreamWaitEvent(side_, fork_, 0));
  ASSERT_CUDA(LaunchOne(kernel_, side_));
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(GraphsTest, SynchronizingACapturingStreamInvalidatesTheCapture) {
  cudaGraph_t graph;
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(LaunchOne(kernel_, stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(GraphsTest, HandMadeNodesRunInTheOrderOfTheirDependencies) {
  cudaGraph_t graph;
  cudaGraphNode_t fill, copy;
  cudaGraphExec_t exec;
  int host = 0;
  ASSERT_CUDA(cudaGraphCreate(&graph, 0));
  ASSERT_CUDA(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, &host, memory_, sizeof host,
                                       cudaMemcpyDeviceToHost));
  cudaMemsetParams params{};
  params.dst = memory_;
  params.elementSize = 4;
  params.width = 1;
  params.height = 1;
  params.value = 77;
  ASSERT_CUDA(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &params));
  ASSERT_CUDA(cudaGraphAddDependencies(graph, &fill, &copy, nullptr, 1));
  ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  ASSERT_CUDA(cudaGraphLaunch(exec, stream_));
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  EXPECT_EQ(host, 77);
  ASSERT_CUDA(cudaGraphAddDependencies(graph, &copy, &fill, nullptr, 1));
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
}

TEST_F(GraphsTest, ALaunchTakesAsLongAsItsLongestPath) {
  ScopedSetting duration("KERNELS", "first=1000000");
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 3; ++i) ASSERT_CUDA(LaunchOne(kernel_, stream_));
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &graph));
  ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  ASSERT_CUDA(cudaEventRecord(fork_, stream_));
  ASSERT_CUDA(cudaGraphLaunch(exec, stream_));
  ASSERT_CUDA(cudaEventRecord(join_, stream_));
  ASSERT_CUDA(cudaEventSynchronize(join_));
  float milliseconds = 0;
  ASSERT_CUDA(cudaEventElapsedTime(&milliseconds, fork_, join_));
  EXPECT_GE(milliseconds, 3.0f);
}

}  // namespace
}  // namespace ranktap::standin_test
