// A program that uses the driver's API alone, as XLA and Triton do, and profiles itself once while
// a thread of it is inside a call. Then that thread launches, and polls until its work is done.
// usage: driver_only LAUNCHES   prints how often the work was not done yet
#include <cuda.h>
#include <cupti.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <thread>

namespace {

const char kPtx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry slow()\n{\n  ret;\n}\n"
    ".visible .entry quick()\n{\n  ret;\n}\n";

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", what, static_cast<int>(result));
  std::exit(1);
}

void CUPTIAPI OnRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  constexpr size_t kBytes = 1 << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBytes));
  std::memset(*buffer, 0xa5, kBytes);  // used memory
  *size = kBytes;
  *max_records = 0;
}
void CUPTIAPI OnCompleted(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) {
  std::free(buffer);
}

CUfunction Find(CUmodule module, const char* name) {
  CUfunction kernel = nullptr;
  Check(cuModuleGetFunction(&kernel, module, name), name);
  return kernel;
}

void Launch(CUfunction kernel, CUstream stream) {
  Check(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), "launch");
}

int PollUntilDone(CUstream stream) {
  CUevent event = nullptr;
  Check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "event");
  Check(cuEventRecord(event, stream), "record");
  int polls = 0;
  while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) ++polls;
  return polls;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  Check(cuInit(0), "init");
  Check(cuDeviceGet(&device, 0), "device");
  Check(cuDevicePrimaryCtxRetain(&context, device), "context");
  Check(cuCtxSetCurrent(context), "current");
  Check(cuModuleLoadData(&module, kPtx), "module");
  Check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
  std::latch launched(1), waited(1), profiled(1);
  std::thread worker([&] {
    Check(cuCtxSetCurrent(context), "current");
    Launch(Find(module, "slow"), stream);
    launched.count_down();
    Check(cuStreamSynchronize(stream), "synchronize");
    waited.count_down();
    profiled.wait();
    const CUfunction quick = Find(module, "quick");
    for (int i = 0; i < std::atoi(argv[1]); ++i) Launch(quick, stream);
    std::printf("polls=%d\n", PollUntilDone(stream));
  });
  launched.wait();
  // Nothing says that a thread is inside a call: `slow` has to be slow beside this.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  bool ok = cuptiActivityRegisterCallbacks(&OnRequested, &OnCompleted) == CUPTI_SUCCESS &&
            cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS;
  waited.wait();
  ok = cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS && ok;
  // Long beside the time after which ranktap returns.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  profiled.count_down();
  worker.join();
  return ok ? 0 : 1;
}
