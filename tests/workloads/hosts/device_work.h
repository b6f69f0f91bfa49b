// What the hostile hosts ask of a GPU: launches of one small kernel, counted.
#pragma once

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

// Ends the host with a message when the device cannot be used.
void start_device(int device);
// One launch of host_kernel on a stream (0: the default stream). 0, or CUDA's error.
int launch_kernel(cudaStream_t stream);
// Each launch on the default stream inside an NVTX range "work"; waits for the device at the end.
void launch_in_ranges(int launches);
// The kernel's name in a trace (mangled), for the tests.
const char* kernel_name(void);
// Launches that succeeded so far, over all threads.
unsigned long launches_made(void);

#ifdef __cplusplus
}
#endif
