// A model's modules and tensors, as the agent's hooks described them after the first step.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct Amount {
  int64_t elements = 0, bytes = 0;
};
using ByDtype = std::map<std::string, Amount>;  // "bfloat16"
Amount Sum(const ByDtype& amounts);

enum class Part : uint8_t { kParameters, kBuffers, kGradients, kStates };
inline constexpr size_t kParts = 4;

struct ModelModule {
  std::string name;   // Root.path
  std::string type;   // its class
  std::string extra;  // extra_repr()
  // Its own tensors, without its children's; each storage counts once in the whole model.
  std::array<ByDtype, kParts> own;
  // Parameters of it and all its children, each once here (as module.parameters() yields them),
  // even where another module has them too.
  ByDtype parameters;
  // How many of these belong to experts of a mixture, and the experts' elements of all ranks
  // together: each rank has other experts.
  int64_t expert_parameters = 0, expert_parameters_of_model = 0;
  bool expert_tensors_split = false;  // DeepSpeed's enable_expert_tensor_parallelism, of the layer
};

// In the order of named_modules(), root after root. Empty: nothing was told.
std::vector<ModelModule> DescribeModel(const Trace& trace);
// The same, `own` with everything below each module: of children and parent the sums agree.
std::vector<ModelModule> DescribeModelWithChildren(const Trace& trace);

}  // namespace ranktap::collector
