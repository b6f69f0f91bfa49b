// Launches a graph, profiles itself for as many launches as torch.profiler does, and launches the
// graph again; each graph launch comes after that of a kernel. Prints how many nodes of the graph
// its own profile has. usage: graph_sessions LAUNCHES PAUSE_MS
#include <cupti.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/lent_buffers.h"
#include "tests/workloads/hosts/device_work.h"

namespace {

ranktap::LentBuffers lent;
int nodes = 0;

void CUPTIAPI OnRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  constexpr size_t kBytes = 1 << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBytes));
  std::memset(*buffer, 0xa5, kBytes);
  *size = kBytes;
  *max_records = 0;
  lent.Lend();
}
void CUPTIAPI OnCompleted(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    nodes += reinterpret_cast<const CUpti_ActivityKernel10*>(record)->graphNodeId != 0 ? 1 : 0;
  }
  std::free(buffer);
  lent.TakeBack();
}

cudaGraphExec_t Capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  launch_kernel(stream);
  launch_kernel(stream);
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess ||
      cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) {
    std::exit(1);
  }
  return exec;
}

void Launch(cudaGraphExec_t exec, cudaStream_t stream, int count) {
  for (int i = 0; i < count; ++i) {
    launch_kernel(stream);
    cudaGraphLaunch(exec, stream);
  }
  cudaStreamSynchronize(stream);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int launches = std::atoi(argv[1]);
  start_device(0);
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  const cudaGraphExec_t exec = Capture(stream);
  Launch(exec, stream, launches);
  bool ok = cuptiActivityRegisterCallbacks(&OnRequested, &OnCompleted) == CUPTI_SUCCESS &&
            cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS;
  Launch(exec, stream, launches);
  ok = ok && cuptiActivityFlushAll(1) == CUPTI_SUCCESS;
  lent.AwaitAll();
  ok = ok && cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS;
  std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argv[2])));
  Launch(exec, stream, launches);
  std::printf("nodes=%d ok=%d\n", nodes, ok ? 1 : 0);
  return ok ? 0 : 1;
}
