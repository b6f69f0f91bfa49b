// The sources that there are.
#include "agent/sources/registry.h"

#include <array>

#include "agent/sources/cupti/cupti_source.h"
#include "agent/sources/nvtx/nvtx_source.h"
#include "agent/sources/torch/torch_source.h"

namespace ranktap::agent {

std::span<Source* const> AllSources() {
  static const std::array<Source*, 3> sources = {&NvtxSource(), &TorchSource(), &CuptiSource()};
  return sources;
}

}  // namespace ranktap::agent
