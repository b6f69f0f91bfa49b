#include "tests/workloads/hosts/device_work.h"

#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

std::atomic<unsigned long> g_launches{0};

__global__ void host_kernel(int* out) {
  if (out != nullptr) *out = static_cast<int>(threadIdx.x);
}

}  // namespace

extern "C" {

void start_device(int device) {
  cudaError_t error = cudaSetDevice(device);
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "device %d: %s\n", device, cudaGetErrorString(error));
  std::exit(1);
}

int launch_kernel(cudaStream_t stream) {
  host_kernel<<<1, 32, 0, stream>>>(nullptr);
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) g_launches.fetch_add(1);
  return error;
}

void launch_in_ranges(int launches) {
  for (int i = 0; i < launches; ++i) {
    nvtxRangePushA("work");
    launch_kernel(nullptr);
    nvtxRangePop();
  }
  cudaDeviceSynchronize();
}

const char* kernel_name(void) { return "host_kernel"; }

unsigned long launches_made(void) { return g_launches.load(); }

}  // extern "C"
