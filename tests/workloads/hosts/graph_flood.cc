// Launches one graph of many kernels again and again: what level full makes of it is a record a
// node. usage: graph_flood NODES LAUNCHES   prints the nodes a second
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/workloads/hosts/device_work.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int nodes = std::atoi(argv[1]), launches = std::atoi(argv[2]);
  start_device(0);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int i = 0; i < nodes; ++i) launch_kernel(stream);
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess ||
      cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) {
    return 1;
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i) {
    if (cudaGraphLaunch(exec, stream) != cudaSuccess) return 1;
    // As a training loop that reads its loss: else the launches run ahead of the device.
    if (i % 8 == 7) cudaStreamSynchronize(stream);
  }
  cudaStreamSynchronize(stream);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("nodes_per_second=%.0f\n", nodes * double(launches) / took.count());
  return 0;
}
