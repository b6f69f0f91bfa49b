// One model's training step as a tree of modules: arithmetic, parameters, latency. The figures that
// DeepSpeed's Flops Profiler prints, from a recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/facts/framework/model_tree.h"
#include "collector/file/result.h"
#include "collector/report/steps/throughput.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct ModuleProfile {
  std::string attribute;  // what its parent calls it
  std::string type, extra;
  std::vector<uint32_t> children;                                 // rows of ModelProfile::modules
  ByDtype parameters;                                             // ModelModule::parameters
  int64_t expert_parameters = 0, expert_parameters_of_model = 0;  // as ModelModule's
  bool expert_tensors_split = false;
  ByDtype gradients, states;    // with the children; each storage once in the whole model
  int64_t flops = 0, macs = 0;  // of one step's forward, FlopRule::kDeepSpeed; with the children
  int64_t forward_ns = 0;       // of one step; of one that never runs itself, its children's sum
};

struct ModelProfile {
  int64_t step = 0;  // the one that was recorded operator by operator
  std::optional<Throughput> throughput;
  bool on_device = false;  // latencies are of the work launched on the device, else of the host
  size_t steps_timed = 0;
  std::vector<ModuleProfile> modules;         // the root first
  int64_t backward_ns = 0, optimizer_ns = 0;  // of one step; 0: not seen
  // In one step, by FlopRule::kCounter.
  int64_t forward_flops = 0, backward_flops = 0, recompute_flops = 0;
};

// The root module with most arithmetic, on the first rank that described its model. Latencies are
// means over the steps after the warm-up that were not recorded operator by operator, which is
// slower; with `step` they are that step's. Heeds what MeasureThroughput() does. Fails with a
// sentence when nothing was described.
Result<ModelProfile> ProfileModel(const Run& run, const ReportOptions& options,
                                  std::optional<int64_t> step);

}  // namespace ranktap::collector
