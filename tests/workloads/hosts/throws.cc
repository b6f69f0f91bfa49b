// Exceptions and cancellations that travel through CUDA, CUPTI and NVTX calls.
// usage: throws WHERE COUNT   WHERE: ranges (leaves NVTX ranges by exceptions)
//                                    occupancy (a driver call's host callback throws)
//                                    cupti (a callback of the program's own CUPTI client throws)
//                                    cancel (threads are cancelled while they wait for the device)
// `occupancy` and `cupti` need libraries whose frames can be unwound: for the stand-in only.
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "tests/workloads/hosts/device_work.h"

namespace {

std::atomic<int> g_ranges{0};

struct Range {
  explicit Range(const char* name) {
    g_ranges.fetch_add(1);
    nvtxRangePushA(name);
  }
  ~Range() { nvtxRangePop(); }
};

int ThrowThroughRanges(int count) {
  int caught = 0;
  for (int i = 0; i < count; ++i) {
    try {
      Range outer("outer");
      Range inner("inner");
      launch_kernel(nullptr);
      throw std::runtime_error("from inside a range");
    } catch (const std::runtime_error&) {
      ++caught;
    }
  }
  return caught;
}

int ThrowThroughOccupancy(int count) {
  static const char kPtx[] =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry empty()\n{\n  ret;\n}\n";
  CUmodule module;
  CUfunction kernel;
  if (cuModuleLoadData(&module, kPtx) != CUDA_SUCCESS) return -1;
  if (cuModuleGetFunction(&kernel, module, "empty") != CUDA_SUCCESS) return -1;
  int caught = 0;
  for (int i = 0; i < count; ++i) {
    try {
      int grid = 0, block = 0;
      cuOccupancyMaxPotentialBlockSize(
          &grid, &block, kernel,
          [](int) -> size_t { throw std::runtime_error("from a host callback"); }, 0, 0);
    } catch (const std::runtime_error&) {
      ++caught;
    }
    launch_kernel(nullptr);
  }
  return caught;
}

void ThrowingCallback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite == CUPTI_API_ENTER) throw std::runtime_error("from a CUPTI callback");
}

int ThrowThroughCupti(int count) {
  void* library = dlopen("libcupti.so.13", RTLD_NOW);
  if (library == nullptr) return -1;
  auto subscribe = reinterpret_cast<decltype(&cuptiSubscribe)>(dlsym(library, "cuptiSubscribe"));
  auto enable =
      reinterpret_cast<decltype(&cuptiEnableCallback)>(dlsym(library, "cuptiEnableCallback"));
  auto unsubscribe =
      reinterpret_cast<decltype(&cuptiUnsubscribe)>(dlsym(library, "cuptiUnsubscribe"));
  CUpti_SubscriberHandle subscriber;
  if (subscribe(&subscriber, ThrowingCallback, nullptr) != CUPTI_SUCCESS) return -1;
  enable(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
         CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020);
  int caught = 0;
  for (int i = 0; i < count; ++i) {
    launch_kernel(nullptr);
    try {
      cudaDeviceSynchronize();
    } catch (const std::runtime_error&) {
      ++caught;
    }
  }
  unsubscribe(subscriber);
  return caught;
}

void* WaitForEver(void*) {
  start_device(0);
  Range range("cancelled");
  for (;;) {
    launch_kernel(cudaStreamPerThread);
    cudaStreamSynchronize(cudaStreamPerThread);
    pthread_testcancel();
  }
}

int Cancel(int count) {
  int cancelled = 0;
  for (int i = 0; i < count; ++i) {
    pthread_t thread;
    void* result = nullptr;
    if (pthread_create(&thread, nullptr, WaitForEver, nullptr) != 0) return -1;
    pthread_cancel(thread);
    pthread_join(thread, &result);
    cancelled += result == PTHREAD_CANCELED;
  }
  return cancelled;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: throws WHERE COUNT\n");
    return 2;
  }
  std::string where = argv[1];
  int count = std::atoi(argv[2]), survived = -1;
  start_device(0);
  launch_kernel(nullptr);
  if (where == "ranges") survived = ThrowThroughRanges(count);
  if (where == "occupancy") survived = ThrowThroughOccupancy(count);
  if (where == "cupti") survived = ThrowThroughCupti(count);
  if (where == "cancel") survived = Cancel(count);
  launch_kernel(nullptr);
  cudaDeviceSynchronize();
  std::printf("counts launches=%lu ranges=%d survived=%d\n", launches_made(), g_ranges.load(),
              survived);
  return survived == count ? 0 : 1;
}
