#include <dlfcn.h>

#include <cstring>
#include <thread>

#include "tests/unit/fakes/simulated_device.h"

namespace ranktap::standin_test {
namespace {

TEST(DriverTest, TheDeviceSaysThatItIsSimulated) {
  cudaDeviceProp properties;
  ASSERT_CUDA(cudaGetDeviceProperties(&properties, 2));
  EXPECT_STREQ(properties.name, "Simulated GPU 2");
  EXPECT_EQ(properties.multiProcessorCount, 132);
  EXPECT_EQ(properties.major, 9);
  EXPECT_NE(dlsym(RTLD_DEFAULT, "ranktap_standin_marker"), nullptr);
}

TEST(DriverTest, EntryPointsAreFoundByNameAndVersion) {
  ASSERT_CUDA(cuInit(0));
  void *old = nullptr, *latest = nullptr, *per_thread = nullptr;
  CUdriverProcAddressQueryResult status;
  ASSERT_CUDA(cuGetProcAddress("cuStreamGetCaptureInfo", &old, 10010, 0, &status));
  ASSERT_CUDA(cuGetProcAddress("cuStreamGetCaptureInfo", &latest, 13000, 0, &status));
  ASSERT_CUDA(cuGetProcAddress("cuLaunchKernel", &per_thread, 13000,
                               CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  EXPECT_EQ(old, dlsym(RTLD_DEFAULT, "cuStreamGetCaptureInfo"));
  EXPECT_EQ(latest, dlsym(RTLD_DEFAULT, "cuStreamGetCaptureInfo_v3"));
  EXPECT_EQ(per_thread, dlsym(RTLD_DEFAULT, "cuLaunchKernel_ptsz"));
  ASSERT_CUDA(cuGetProcAddress("cuNoSuchThing", &old, 13000, 0, &status));
  EXPECT_EQ(old, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST(DriverTest, ModulesKnowTheirKernels) {
  CUmodule module;
  CUfunction kernel;
  ASSERT_CUDA(cudaFree(nullptr));
  ASSERT_CUDA(cuModuleLoadData(&module, kPtx));
  EXPECT_CUDA(cuModuleGetFunction(&kernel, module, "second"));
  const char* name = nullptr;
  ASSERT_CUDA(cuFuncGetName(&name, kernel));
  EXPECT_STREQ(name, "second");
  EXPECT_EQ(cuModuleGetFunction(&kernel, module, "seco"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuModuleLoadData(&module, "no code at all"), CUDA_ERROR_INVALID_IMAGE);
}

TEST(DriverTest, ShapesTheDeviceCannotRunAreRefused) {
  CUfunction kernel = LoadKernel("first");
  EXPECT_EQ(cuLaunchKernel(kernel, 1, 1, 1, 1025, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(kernel, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
}

TEST(DriverTest, ContextsArePerThreadAndStack) {
  CUcontext made, current;
  ASSERT_CUDA(cuInit(0));
  std::thread([&] {
    EXPECT_CUDA(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_CUDA(cuCtxCreate(&made, nullptr, 0, 3));
    CUdevice device = -1;
    EXPECT_CUDA(cuCtxGetDevice(&device));
    EXPECT_EQ(device, 3);
    EXPECT_CUDA(cuCtxDestroy(made));
    EXPECT_CUDA(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
  }).join();
}

TEST(DriverTest, WhatIsNotModelledIsRefusedNotFaked) {
  ASSERT_CUDA(cudaFree(nullptr));
  CUarray array;
  CUDA_ARRAY_DESCRIPTOR shape{};
  EXPECT_EQ(cuArrayCreate(&array, &shape), CUDA_ERROR_NOT_SUPPORTED);
  cudaArray_t runtime_array;
  cudaChannelFormatDesc format{};
  EXPECT_EQ(cudaMallocArray(&runtime_array, &format, 4, 4, 0), cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST(DriverTest, AScriptedCallFailsAfterItsSuccesses) {
  ScopedSetting fail("FAIL", "cudaMalloc:2:after=2");
  void* memory;
  EXPECT_CUDA(cudaMalloc(&memory, 64));
  EXPECT_CUDA(cudaMalloc(&memory, 64));
  EXPECT_EQ(cudaMalloc(&memory, 64), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&memory, 64), cudaErrorMemoryAllocation);
}

}  // namespace
}  // namespace ranktap::standin_test
