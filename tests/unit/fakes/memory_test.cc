#include <cstring>
#include <numeric>
#include <vector>

#include "tests/unit/fakes/simulated_device.h"

namespace ranktap::standin_test {
namespace {

constexpr size_t kCount = 4096;

std::vector<int> Numbers() {
  std::vector<int> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 7);
  return numbers;
}

TEST(MemoryTest, CopiesMoveBytesThereAndBack) {
  std::vector<int> source = Numbers(), result(kCount);
  int *first, *second;
  size_t bytes = kCount * sizeof(int);
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&first), bytes));
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&second), bytes));
  ASSERT_CUDA(cudaMemcpy(first, source.data(), bytes, cudaMemcpyHostToDevice));
  ASSERT_CUDA(cudaMemcpyAsync(second, first, bytes, cudaMemcpyDeviceToDevice, nullptr));
  ASSERT_CUDA(cudaMemcpy(result.data(), second, bytes, cudaMemcpyDefault));
  EXPECT_EQ(result, source);
  ASSERT_CUDA(cudaFree(first));
  ASSERT_CUDA(cudaFree(second));
}

TEST(MemoryTest, PeersExchangeBytes) {
  std::vector<int> source = Numbers(), result(kCount);
  int *here, *there, can = 0;
  size_t bytes = kCount * sizeof(int);
  ASSERT_CUDA(cudaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  ASSERT_CUDA(cudaSetDevice(1));
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&there), bytes));
  ASSERT_CUDA(cudaSetDevice(0));
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&here), bytes));
  ASSERT_CUDA(cudaMemcpy(here, source.data(), bytes, cudaMemcpyHostToDevice));
  ASSERT_CUDA(cudaMemcpyPeer(there, 1, here, 0, bytes));
  ASSERT_CUDA(cudaMemcpy(result.data(), there, bytes, cudaMemcpyDeviceToHost));
  EXPECT_EQ(result, source);
  cudaPointerAttributes attributes;
  ASSERT_CUDA(cudaPointerGetAttributes(&attributes, there));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 1);
}

TEST(MemoryTest, MemsetsAndPlanesKeepTheirPitch) {
  char* plane;
  size_t pitch = 0;
  ASSERT_CUDA(cudaMallocPitch(reinterpret_cast<void**>(&plane), &pitch, 100, 4));
  EXPECT_GE(pitch, 100u);
  ASSERT_CUDA(cudaMemset(plane, 1, pitch * 4));
  ASSERT_CUDA(cudaMemset2D(plane, pitch, 9, 50, 4));
  std::vector<char> rows(100 * 4);
  ASSERT_CUDA(cudaMemcpy2D(rows.data(), 100, plane, pitch, 100, 4, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], i % 100 < 50 ? 9 : 1) << i;
  ASSERT_CUDA(cudaFree(plane));
}

TEST(MemoryTest, TheDeviceRunsOutOfMemoryAndRecovers) {
  void *most, *more;
  size_t free = 0, total = 0;
  ASSERT_CUDA(cudaMemGetInfo(&free, &total));
  ASSERT_CUDA(cudaMalloc(&most, free - (1 << 20)));
  EXPECT_EQ(cudaMalloc(&more, size_t{1} << 30), cudaErrorMemoryAllocation);
  ASSERT_CUDA(cudaFree(most));
  ASSERT_CUDA(cudaMalloc(&more, size_t{1} << 30));
  ASSERT_CUDA(cudaFree(more));
  EXPECT_EQ(cudaFree(more), cudaErrorInvalidValue);
}

TEST(MemoryTest, PinnedAndRegisteredMemoryAreKnownAsSuch) {
  void* pinned;
  std::vector<char> own(8192);
  cudaPointerAttributes attributes;
  ASSERT_CUDA(cudaPointerGetAttributes(&attributes, own.data()));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  ASSERT_CUDA(cudaMallocHost(&pinned, 4096));
  ASSERT_CUDA(cudaHostRegister(own.data(), own.size(), 0));
  for (void* pointer : {pinned, static_cast<void*>(own.data())}) {
    ASSERT_CUDA(cudaPointerGetAttributes(&attributes, pointer));
    EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  }
  ASSERT_CUDA(cudaHostUnregister(own.data()));
  ASSERT_CUDA(cudaFreeHost(pinned));
}

TEST(MemoryTest, StreamOrderedMemoryComesFromThePool) {
  void* memory;
  cudaStream_t stream;
  ASSERT_CUDA(cudaStreamCreate(&stream));
  ASSERT_CUDA(cudaMallocAsync(&memory, 1 << 20, stream));
  ASSERT_CUDA(cudaMemsetAsync(memory, 3, 1 << 20, stream));
  char last = 0;
  ASSERT_CUDA(cudaMemcpy(&last, static_cast<char*>(memory) + (1 << 20) - 1, 1, cudaMemcpyDefault));
  EXPECT_EQ(last, 3);
  ASSERT_CUDA(cudaFreeAsync(memory, stream));
  ASSERT_CUDA(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace ranktap::standin_test
