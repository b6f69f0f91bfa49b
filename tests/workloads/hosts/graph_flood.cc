// Launches one graph of many kernels again and again: what level full makes of it is a record a
// node. Prints the nodes a second, and how much less of the device's memory is free afterwards.
// usage: graph_flood NODES LAUNCHES|@FILE   @FILE: a thousand a second, until there is such a file
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/workloads/hosts/device_work.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* const stop = argv[2][0] == '@' ? argv[2] + 1 : nullptr;
  const int nodes = std::atoi(argv[1]);
  int launches = stop == nullptr ? std::atoi(argv[2]) : 0;
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
  size_t free_before = 0, free_after = 0, all = 0;
  cudaMemGetInfo(&free_before, &all);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; stop == nullptr ? i < launches : access(stop, F_OK) != 0; ++i) {
    if (stop != nullptr) {
      launches = i + 1;
      usleep(1000);
    }
    if (cudaGraphLaunch(exec, stream) != cudaSuccess) return 1;
    // As a training loop that reads its loss: else the launches run ahead of the device.
    if (i % 8 == 7) cudaStreamSynchronize(stream);
  }
  cudaStreamSynchronize(stream);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  cudaMemGetInfo(&free_after, &all);
  std::printf("nodes_per_second=%.0f device_bytes=%zu\n", nodes * double(launches) / took.count(),
              free_before - free_after);
  return 0;
}
