#include "collector/facts/replay/changed_modules.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/facts/device_timeline.h"
#include "collector/facts/framework/backward_spans.h"
#include "collector/facts/framework/model_tree.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/framework/op_modules.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/replay/host_pieces.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

// "blocks.2" is Net.blocks.2 and what is below it, "*.mlp" each block's.
bool IsWithin(const std::string& module, const std::string& wanted) {
  for (size_t end = module.find('.'); true; end = module.find('.', end + 1)) {
    const std::string above = module.substr(0, end);
    if (above == wanted || above.ends_with("." + wanted) ||
        ::fnmatch(wanted.c_str(), above.c_str(), 0) == 0) {
      return true;
    }
    if (end == module.npos) return false;
  }
}

class WantedModules {
 public:
  WantedModules(const Trace& trace, const std::string& wanted) : trace_(trace), wanted_(wanted) {}
  bool Has(uint32_t name) {
    const auto [at, is_new] = known_.try_emplace(name, false);
    if (is_new) at->second = IsWithin(std::string(trace_.dictionary.String(name)), wanted_);
    return at->second;
  }

 private:
  const Trace& trace_;
  const std::string& wanted_;
  std::unordered_map<uint32_t, bool> known_;
};

int64_t Overlap(const std::vector<Interval>& set, int64_t begin, int64_t end) {
  return Length(Within(set, begin, end));
}

// The part of backward passes that is the modules', from those whose operators were recorded; of
// none, their part of the forward passes.
double PartOfBackward(const Trace& trace, const std::vector<Interval>& passes,
                      const std::vector<Interval>& waits, double of_forward,
                      WantedModules* wanted) {
  std::vector<Interval> all, of_modules;
  for (const BackwardSpan& span : BackwardSpans(trace)) {
    all.emplace_back(span.start, span.end);
    if (wanted->Has(span.module)) of_modules.emplace_back(span.start, span.end);
  }
  all = Difference(Merged(std::move(all)), waits);
  of_modules = Difference(Merged(std::move(of_modules)), waits);
  int64_t recorded = 0, matched = 0;
  for (const Interval& pass : passes) {
    if (Overlap(all, pass.first, pass.second) == 0) continue;
    recorded += Length(Difference({pass}, waits));
    matched += Overlap(of_modules, pass.first, pass.second);
  }
  if (recorded == 0) return of_forward;
  return static_cast<double>(matched) / static_cast<double>(recorded);
}

double PartOfParameters(const Trace& trace, const std::string& wanted) {
  int64_t all = 0, matched = 0;
  for (const ModelModule& module : DescribeModel(trace)) {
    const int64_t elements = Sum(module.own[static_cast<size_t>(Part::kParameters)]).elements;
    all += elements;
    if (IsWithin(module.name, wanted)) matched += elements;
  }
  return all == 0 ? 0 : static_cast<double>(matched) / static_cast<double>(all);
}

void AddAll(const std::vector<Interval>& set, double part, HostPieces* pieces) {
  if (part <= 0) return;
  for (const auto& [begin, end] : set) pieces->push_back({begin, end, part});
}

// False: it has no such module.
bool ChangeHost(const Run& run, uint32_t t, const Change& change, Doubt doubt, GraphEdit* edit) {
  const Trace& trace = run.traces[t];
  const JobGraph& job = JobGraphOf(run);
  WantedModules wanted(trace, change.what);
  std::vector<Interval> forwards, waits;
  for (const ModuleSpan& span : ModuleSpans(trace)) {
    if (wanted.Has(span.name)) forwards.emplace_back(span.start, span.end);
  }
  if (forwards.empty()) return false;
  forwards = Merged(std::move(forwards));
  for (const ThreadWait& wait : job.waits[t]) waits.emplace_back(wait.begin, wait.end);
  waits = Merged(std::move(waits));
  const int64_t forward_ns = Length(Difference(ForwardPasses(trace), waits));
  const double of_forward = forward_ns == 0
                                ? 0
                                : static_cast<double>(Length(Difference(forwards, waits))) /
                                      static_cast<double>(forward_ns);
  const std::vector<Interval> backward = PhaseIntervals(trace, proto::kBackwardPhase);
  double of_optimizer = PartOfParameters(trace, change.what);
  if (doubt == Doubt::kLeast) of_optimizer = 0;
  // A module that takes half its time may have half its parameters, or all of them.
  if (doubt == Doubt::kMiddle && change.factor != 0) of_optimizer /= 2;
  HostPieces pieces;
  AddAll(forwards, 1, &pieces);
  // What runs within a forward of these modules is not counted again (a recomputation).
  const auto beside = [&](std::vector<Interval> set) {
    return Difference(Merged(std::move(set)), forwards);
  };
  AddAll(beside(backward), PartOfBackward(trace, backward, waits, of_forward, &wanted), &pieces);
  AddAll(Difference(beside(PhaseIntervals(trace, proto::kOptimizerPhase)), Merged(backward)),
         of_optimizer, &pieces);
  std::ranges::sort(pieces, {}, &HostPiece::begin);
  ScaleHost(run, t, pieces, change.factor, edit);
  return true;
}

// By the operators that launched the work.
bool ChangeDevice(const Run& run, uint32_t t, const Change& change, GraphEdit* edit) {
  const Trace& trace = run.traces[t];
  const TimedGraph& graph = JobGraphOf(run).graph;
  const DeviceSpans& spans = DeviceTimeline(trace);
  const std::vector<OpPlace> places = PlaceOperators(trace);
  WantedModules wanted(trace, change.what);
  bool any = false;
  for (uint32_t node = 0; node < graph.size(); ++node) {
    if (graph.trace[node] != t || graph.kind[node] != NodeKind::kWork) continue;
    const DeviceSpan& span = spans[graph.row[node]];
    if (span.table != DeviceSpan::Table::kKernel || span.kind == WorkKind::kCommunication) continue;
    const uint32_t op = LaunchingOperator(trace, span);
    if (op >= places.size() || places[op].module == 0) continue;
    if (!wanted.Has(places[op].module)) continue;
    edit->share[node] *= change.factor;
    any = true;
  }
  return any;
}

}  // namespace

std::optional<Failure> ChangeModule(const Run& run, const Change& change, Doubt doubt,
                                    GraphEdit* edit) {
  bool any = false, has_modules = false, needs_operators = false;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    has_modules |= !ModuleSpans(run.traces[t]).empty();
    const bool has_device = !DeviceTimeline(run.traces[t]).empty();
    if (has_device) {
      const bool changed = ChangeDevice(run, t, change, edit);
      needs_operators |= !changed;
      any |= changed;
    }
    // A layer of half the size is launched like a whole one.
    if (!has_device || change.factor == 0) any |= ChangeHost(run, t, change, doubt, edit);
  }
  if (any) return std::nullopt;
  if (!has_modules) {
    return Failure{"the run has no modules: run --level full records those of PyTorch"};
  }
  if (needs_operators) {
    return Failure{fmt::format("no operator of a module '{}' launched work in the recorded steps",
                               change.what)};
  }
  return Failure{
      fmt::format("no module is called '{}': report RUN modules names them", change.what)};
}

}  // namespace ranktap::collector
