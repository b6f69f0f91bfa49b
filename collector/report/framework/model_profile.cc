#include "collector/report/framework/model_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>

#include "collector/facts/framework/pass_nesting.h"
#include "collector/facts/framework/timed_steps.h"
#include "collector/facts/launched_work.h"
#include "collector/report/capture/origin_advice.h"
#include "collector/report/framework/module_summary.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// Nanoseconds of one step by what ran: on the host, and of the work launched meanwhile.
struct Latency {
  int64_t host = 0, device = 0;
};

class Latencies {
 public:
  Latencies(const Trace& trace, const TimedSteps& steps) : steps_(steps) {
    const LaunchedWork work(trace);
    const Ranges& ranges = trace.ranges;
    std::vector<std::pair<int64_t, int64_t>> backward;
    for (const uint32_t row : RangesIn(trace, kPhaseDomain)) {
      if (!steps_.Has(ranges.start[row])) continue;
      const std::string_view name = trace.dictionary.String(ranges.name[row]);
      if (name == proto::kBackwardPhase) backward.emplace_back(ranges.start[row], ranges.end[row]);
      const Interval phase(ranges.start[row], ranges.end[row]);
      AddPhase(trace, work, {phase}, &phases_[std::string(name)]);
      if (name != proto::kOptimizerPhase) continue;
      Latency closure;
      AddPhase(trace, work, Within(NestedPasses(trace).in_optimizers, phase.first, phase.second),
               &closure);
      phases_[std::string(name)].host -= closure.host;
      phases_[std::string(name)].device -= closure.device;
    }
    for (const uint32_t row : RangesIn(trace, kModuleDomain)) {
      const int64_t start = ranges.start[row];
      // Forwards in the backward pass are recomputed.
      const auto after = std::upper_bound(backward.begin(), backward.end(),
                                          std::pair(start, std::numeric_limits<int64_t>::max()));
      const bool again = after != backward.begin() && start < std::prev(after)->second;
      if (again || !steps_.Has(start)) continue;
      Latency& module = modules_[std::string(trace.dictionary.String(ranges.name[row]))];
      const uint16_t writer = ranges.writer[row];
      module.host += ranges.end[row] - start;
      module.device += work.Between(writer, start, ranges.end[row]);
      for (const Interval& other :
           NestedPasses(trace).InModule(ranges.name[row], writer, start, ranges.end[row])) {
        module.host -= other.second - other.first;
        module.device -= work.Between(writer, other.first, other.second);
      }
    }
  }

  Latency Module(const std::string& name) const { return PerStep(modules_, name); }
  Latency Phase(const std::string& name) const { return PerStep(phases_, name); }

 private:
  static void AddPhase(const Trace& trace, const LaunchedWork& work,
                       const std::vector<Interval>& set, Latency* latency) {
    for (const auto& [start, end] : set) {
      latency->host += end - start;
      // Autograd launches from threads of its own.
      for (size_t writer = 0; writer < trace.writers.size(); ++writer) {
        latency->device += work.Between(static_cast<uint16_t>(writer), start, end);
      }
    }
  }

  Latency PerStep(const std::map<std::string, Latency>& sums, const std::string& name) const {
    const auto found = sums.find(name);
    if (found == sums.end()) return {};
    const auto steps = static_cast<int64_t>(steps_.list.size());
    return {found->second.host / steps, found->second.device / steps};
  }

  const TimedSteps& steps_;
  std::map<std::string, Latency> modules_, phases_;
};

// The index of the root with most arithmetic, of equals the one with most parameters.
size_t MainRoot(const std::vector<ModelModule>& model,
                const std::map<std::string, ModuleRow>& rows) {
  size_t best = 0;
  std::pair<int64_t, int64_t> most = {-1, -1};
  for (size_t i = 0; i < model.size(); ++i) {
    if (model[i].name.find('.') != std::string::npos) continue;
    const auto row = rows.find(model[i].name);
    const std::pair<int64_t, int64_t> size = {row == rows.end() ? 0 : row->second.deepspeed_flops,
                                              Sum(model[i].parameters).elements};
    if (size > most) {
      most = size;
      best = i;
    }
  }
  return best;
}

// What a wrapper around the model calls it; empty: it is none. DeepSpeed's depth 0 is the model.
std::string_view NameInWrapper(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kWrappers[] = {
      {"DistributedDataParallel", "module"},
      {"DataParallel", "module"},
      {"DeepSpeedEngine", "module"},
      {"PipelineEngine", "module"},
      {"FullyShardedDataParallel", "_fsdp_wrapped_module"},
      {"OptimizedModule", "_orig_mod"}};
  for (const auto& [wrapper, name] : kWrappers) {
    if (type == wrapper) return name;
  }
  return {};
}

// The model itself, below what it is wrapped into.
size_t Unwrapped(const std::vector<ModelModule>& model, size_t root) {
  for (size_t i = root; i < model.size(); ++i) {
    const std::string_view inside = NameInWrapper(model[root].type);
    if (inside.empty()) break;
    if (model[i].name == fmt::format("{}.{}", model[root].name, inside)) root = i;
  }
  return root;
}

int64_t SumOfChildren(const ModelProfile& profile, const ModuleProfile& module,
                      int64_t ModuleProfile::*value) {
  int64_t sum = 0;
  for (const uint32_t child : module.children) sum += profile.modules[child].*value;
  return sum;
}

void AddModules(const std::vector<ModelModule>& model, size_t root,
                const std::map<std::string, ModuleRow>& rows, const Latencies& latencies,
                ModelProfile* profile) {
  profile->on_device = latencies.Module(model[root].name).device > 0;
  std::map<std::string, uint32_t> known;
  std::vector<std::string> names;
  const std::string prefix = model[root].name + ".";
  for (size_t i = root; i < model.size(); ++i) {
    const ModelModule& from = model[i];
    if (i != root && !from.name.starts_with(prefix)) break;
    const size_t dot = from.name.rfind('.');
    const auto index = static_cast<uint32_t>(profile->modules.size());
    if (!known.emplace(from.name, index).second) continue;
    if (i != root) {
      const auto parent = known.find(from.name.substr(0, dot));
      if (parent == known.end()) continue;
      profile->modules[parent->second].children.push_back(index);
    }
    const Latency latency = latencies.Module(from.name);
    const auto row = rows.find(from.name);
    profile->modules.push_back(
        {.attribute = dot == std::string::npos ? "" : from.name.substr(dot + 1),
         .type = from.type,
         .extra = from.extra,
         .children = {},
         .parameters = from.parameters,
         .expert_parameters = from.expert_parameters,
         .expert_parameters_of_model = from.expert_parameters_of_model,
         .expert_tensors_split = from.expert_tensors_split,
         .gradients = from.own[static_cast<size_t>(Part::kGradients)],
         .states = from.own[static_cast<size_t>(Part::kStates)],
         .flops = row == rows.end() ? 0 : row->second.deepspeed_flops,
         .macs = row == rows.end() ? 0 : row->second.deepspeed_macs,
         .forward_ns = profile->on_device ? latency.device : latency.host});
    names.push_back(from.name);
  }
  // Containers such as ModuleList never run: children come after their parents.
  for (size_t i = profile->modules.size(); i-- > 0;) {
    ModuleProfile& module = profile->modules[i];
    if (module.forward_ns == 0) {
      module.forward_ns = SumOfChildren(*profile, module, &ModuleProfile::forward_ns);
    }
    if (rows.contains(names[i])) continue;
    module.flops = SumOfChildren(*profile, module, &ModuleProfile::flops);
    module.macs = SumOfChildren(*profile, module, &ModuleProfile::macs);
  }
}

}  // namespace

Result<ModelProfile> ProfileModel(const Run& run, const ReportOptions& options,
                                  std::optional<int64_t> step) {
  for (const Trace& trace : run.traces) {
    const std::vector<ModelModule> model = DescribeModelWithChildren(trace);
    if (model.empty()) continue;
    const Result<TimedSteps> timed = SelectTimedSteps(trace, step);
    if (!timed) return Failure{timed.message()};
    std::map<std::string, ModuleRow> rows;
    for (ModuleRow& row : SummarizeModules(run.traces)) rows.emplace(row.name, row);
    const Latencies latencies(trace, *timed);
    const size_t root = Unwrapped(model, MainRoot(model, rows));
    ModelProfile profile{.step = timed->profiled,
                         .throughput = MeasureThroughput(run, trace, options, step),
                         .steps_timed = timed->list.size()};
    AddModules(model, root, rows, latencies, &profile);
    const auto phase = [&](std::string_view name) {
      const Latency latency = latencies.Phase(std::string(name));
      return profile.on_device ? latency.device : latency.host;
    };
    profile.backward_ns = phase(proto::kBackwardPhase);
    profile.optimizer_ns = phase(proto::kOptimizerPhase);
    if (const auto row = rows.find(model[root].name); row != rows.end()) {
      profile.forward_flops = row->second.forward_flops;
      profile.backward_flops = row->second.backward_flops;
      profile.recompute_flops = row->second.recompute_flops;
    }
    return profile;
  }
  return Failure{WhyNoModel(run)};
}

}  // namespace ranktap::collector
