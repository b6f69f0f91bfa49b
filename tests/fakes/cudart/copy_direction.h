// Which way a runtime copy goes, and its 3D parameters in the driver's form.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace ranktap::standin {

// Replaces cudaMemcpyDefault by what the addresses say.
cudaMemcpyKind Direction(cudaMemcpyKind kind, const void* target, const void* source);
// False for arrays, which are not modelled.
bool BoxOf(const cudaMemcpy3DParms& params, CUDA_MEMCPY3D* box);

inline CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace ranktap::standin
