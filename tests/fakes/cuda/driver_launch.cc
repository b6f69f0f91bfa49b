// Kernel launches and occupancy.
#include <algorithm>

#include "driver_api.gen.h"
#include "tests/fakes/machine/context.h"
#include "tests/fakes/machine/device.h"
#include "tests/fakes/machine/function.h"
#include "tests/fakes/machine/make_work.h"
#include "tests/fakes/machine/schedule.h"

using namespace ranktap::standin;

namespace {

CUresult LaunchOn(CUstream handle, CUfunction function_handle, KernelShape shape) {
  const Function* function = AsFunction(function_handle);
  Stream* stream = AsStream(handle);
  if (function == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  shape.name = function->name;
  shape.registers = function->registers;
  shape.static_shared = function->static_shared;
  shape.local_per_thread = function->local_per_thread;
  if (!ValidShape(*function, shape)) return CUDA_ERROR_INVALID_VALUE;
  return Submit(stream, KernelWork(shape));
}

uint64_t ResidentBlocks(const Function& function, int threads, size_t dynamic_shared) {
  if (threads <= 0) return 0;
  uint64_t by_threads = kThreadsPerMultiprocessor / static_cast<uint64_t>(threads);
  uint64_t registers = std::max<uint64_t>(function.registers, 1) * static_cast<uint64_t>(threads);
  uint64_t by_registers = 65536 / registers;
  uint64_t shared = function.static_shared + dynamic_shared;
  uint64_t by_shared = shared == 0 ? 32 : 233472 / (shared + 1024);
  return std::min({by_threads, by_registers, by_shared, uint64_t{32}});
}

}  // namespace

extern "C" {

CUresult sim_cuLaunchKernel(CUfunction f, unsigned int grid_x, unsigned int grid_y,
                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                            unsigned int block_z, unsigned int shared, CUstream stream, void**,
                            void**) {
  KernelShape shape{.grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}};
  shape.dynamic_shared = shared;
  return LaunchOn(stream, f, shape);
}

CUresult sim_cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void**, void**) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  KernelShape shape{.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                    .block = {config->blockDimX, config->blockDimY, config->blockDimZ}};
  shape.dynamic_shared = config->sharedMemBytes;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      shape.cluster[0] = attribute.value.clusterDim.x;
      shape.cluster[1] = attribute.value.clusterDim.y;
      shape.cluster[2] = attribute.value.clusterDim.z;
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      shape.cooperative = attribute.value.cooperative != 0;
    }
  }
  return LaunchOn(config->hStream, f, shape);
}

CUresult sim_cuLaunchCooperativeKernel(CUfunction f, unsigned int grid_x, unsigned int grid_y,
                                       unsigned int grid_z, unsigned int block_x,
                                       unsigned int block_y, unsigned int block_z,
                                       unsigned int shared, CUstream stream, void**) {
  KernelShape shape{.grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}};
  shape.dynamic_shared = shared;
  shape.cooperative = true;
  return LaunchOn(stream, f, shape);
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction f, int threads,
                                                         size_t dynamic_shared) {
  const Function* function = AsFunction(f);
  if (function == nullptr || blocks == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *blocks = static_cast<int>(ResidentBlocks(*function, threads, dynamic_shared));
  return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction f,
                                                                  int threads,
                                                                  size_t dynamic_shared,
                                                                  unsigned int) {
  return sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, dynamic_shared);
}

CUresult sim_cuOccupancyMaxPotentialBlockSize(int* grid, int* threads, CUfunction f,
                                              CUoccupancyB2DSize shared_of, size_t dynamic_shared,
                                              int limit) {
  const Function* function = AsFunction(f);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  int most = limit > 0 ? std::min(limit, 1024) : 1024;
  uint64_t best = 0;
  for (int candidate = most / 32 * 32; candidate >= 32; candidate -= 32) {
    size_t shared = shared_of == nullptr ? dynamic_shared : shared_of(candidate);
    uint64_t blocks = ResidentBlocks(*function, candidate, shared);
    if (blocks * static_cast<uint64_t>(candidate) <= best) continue;
    best = blocks * static_cast<uint64_t>(candidate);
    *threads = candidate;
    *grid = static_cast<int>(blocks * kMultiprocessors);
  }
  return best == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // extern "C"
