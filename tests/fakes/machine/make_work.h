// Builds works from what the driver API was given.
#pragma once

#include <cuda.h>

#include "tests/fakes/machine/function.h"
#include "tests/fakes/machine/work.h"

namespace ranktap::standin {

Work KernelWork(const KernelShape& shape);
// False when the shape exceeds what the device or the kernel can do.
bool ValidShape(const Function& function, const KernelShape& shape);

Work CopyWork(uint64_t target, uint64_t source, size_t bytes, bool async);
// Rows of `width` bytes; no arrays. False for what is not modelled.
bool BoxCopyWork(const CUDA_MEMCPY3D& copy, bool async, Work* work);
CUDA_MEMCPY3D BoxOf(const CUDA_MEMCPY2D& copy);
Work MemsetWork(const CUDA_MEMSET_NODE_PARAMS& params, bool async);
Work HostFunctionWork(CUhostFn function, void* argument);

}  // namespace ranktap::standin
