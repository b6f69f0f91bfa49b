// Modules, kernels and device variables: their names are real, their code never runs.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace ranktap::standin {

// What a kernel needs. From the code object where it can be read (an uncompressed cubin), else made
// from the name: the same in every run and every process.
struct Function {
  uint32_t magic = 0x66756e31;
  const char* name = nullptr;
  uint32_t registers = 0;
  uint32_t static_shared = 0;
  uint32_t local_per_thread = 0;
  uint32_t max_threads = 1024;
  int max_dynamic_shared = 0;
  uint32_t cluster[3] = {0, 0, 0};
  struct Module* module = nullptr;
};

struct Module {
  uint32_t magic = 0x6d6f6431;
  bool alive = true;
  uint32_t id = 0;
  const void* image = nullptr;
  size_t bytes = 0;
  bool is_ptx = false;
};

// Announces the module (and the compilation of PTX). Null when the image is no code object.
Module* LoadModule(const void* image);
void UnloadModule(Module* module);
Module* AsModule(const void* handle);
// The kernel of this name; null when the module says it has none. Modules whose text cannot be read
// (compressed code) are believed to have every kernel.
Function* FindFunction(Module* module, const char* name);
Function* AsFunction(const void* handle);
// A variable of the module: device memory, allocated at first sight; 0 bytes when unknown to it.
uint64_t FindVariable(Module* module, const char* name, size_t bytes_if_new, size_t* bytes);

}  // namespace ranktap::standin
