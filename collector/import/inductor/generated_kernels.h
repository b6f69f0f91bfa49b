// What torch.compile leaves on the disk about its kernels: generated files, debug traces
// (TORCH_COMPILE_DEBUG), logs (TORCH_TRACE).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/file/result.h"
#include "collector/import/inductor/fx_graph.h"
#include "collector/trace/known_arithmetic.h"

namespace ranktap::collector {

// All that the folder and those in it hold, by name; what says the same is there once.
Result<std::vector<GeneratedKernel>> ReadGeneratedKernels(const std::string& folder);

// A generated Python file: the comments before a kernel name the nodes it is made of. `lines`: the
// nodes of its graph with their lines, where a file beside it has them.
void ReadGeneratedFile(std::string_view text, const std::string& file, const FxNodes& lines,
                       std::vector<GeneratedKernel>* kernels);

// {"cppCodeToPost": {"cpp_fused_gelu_0:2": ["mul", ...]}}, or kernel_information.json's
// {"triton_poi_fused_0:1": {"post_grad_nodes": ["mul", ...]}}, with the nodes of that graph.
void ReadKernelNodes(std::string_view json, const std::string& file, const FxNodes& nodes,
                     std::vector<GeneratedKernel>* kernels);

// TORCH_TRACE's log: a graph, then its kernels.
void ReadCompileLog(std::string_view text, const std::string& file,
                    std::vector<GeneratedKernel>* kernels);

}  // namespace ranktap::collector
