// The contexts of gloo, as torch.distributed makes them: one of each process group that talks over
// gloo. A collective of gloo's knows its context's address alone, and Python the group's name.
// Runs on: threads that hold the interpreter's lock.  May not: be called before torch is loaded.
#pragma once

#include <cstdint>
#include <string>

namespace ranktap::agent {

// Tells the contexts of a process apart, as the ranges of collectives have it. An address may come
// again after its group is gone.
inline uint32_t NumberOfGlooContext(const void* context) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(context) >> 4);
}

// gloo/context.h begins with rank, size and base, which is 2. Size 0: not known.
struct GlooPlace {
  uint32_t rank = 0, size = 0;
};
GlooPlace PlaceInGlooContext(const void* context);

// Redirects libtorch_cpu's calls of connectFullMesh, once. It records nothing yet, so the process
// need not be known to record. False: this PyTorch has none that can be watched.
[[nodiscard]] bool WatchGlooGroups();

// "number rank size\n" of each context that was connected since the last call, in that order.
std::string TakeGlooContexts();

}  // namespace ranktap::agent
