#include "collector/facts/framework/op_modules.h"

#include <algorithm>
#include <unordered_map>

#include "collector/facts/framework/evaluation_forwards.h"
#include "collector/facts/framework/gloo_starters.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/framework/pass_nesting.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// The modules around a moment of a writer.
class ModuleFinder {
 public:
  explicit ModuleFinder(const Trace& trace)
      : spans_(ModuleSpans(trace)), evaluations_(EvaluationForwards(trace, spans_)) {
    for (uint32_t row = 0; row < spans_.size(); ++row) {
      by_writer_[spans_[row].writer].push_back(row);
    }
  }

  // The innermost module open at `time`; nullptr: none.
  const ModuleSpan* At(uint16_t writer, int64_t time) const {
    const auto found = by_writer_.find(writer);
    if (found == by_writer_.end()) return nullptr;
    const std::vector<uint32_t>& rows = found->second;
    auto at = std::upper_bound(rows.begin(), rows.end(), time,
                               [this](int64_t t, uint32_t row) { return t < spans_[row].start; });
    while (at != rows.begin()) {
      const ModuleSpan& span = spans_[*--at];
      if (span.end > time) return &span;
      if (span.depth == 0) break;  // a root that has ended: none is open
    }
    return nullptr;
  }
  bool Evaluates(const ModuleSpan& span) const {
    return evaluations_[static_cast<size_t>(&span - spans_.data())];
  }

 private:
  const std::vector<ModuleSpan>& spans_;
  const std::vector<bool> evaluations_;
  std::unordered_map<uint16_t, std::vector<uint32_t>> by_writer_;
};

// The autograd node directly or further around each operator, itself included; kNone: a forward.
std::vector<uint32_t> NodesAround(const Operators& ops) {
  std::vector<uint32_t> nodes(ops.size(), kNone);
  for (uint32_t i = 0; i < ops.size(); ++i) {
    if (ops.scope.At(i) == kBackwardScope) {
      nodes[i] = i;
    } else if (ops.parent[i] != kNone) {
      nodes[i] = nodes[ops.parent[i]];
    }
  }
  return nodes;
}

// Between the beginning of an optimizer's step, or the end of its closure's backward pass, and the
// next module's beginning: of the optimizer, or of what the loop does before the next forward.
class BetweenPasses {
 public:
  explicit BetweenPasses(const Trace& trace) {
    for (const uint32_t row : RangesIn(trace, kPhaseDomain)) {
      if (trace.dictionary.String(trace.ranges.name[row]) == proto::kOptimizerPhase) {
        begins_.emplace_back(trace.ranges.start[row], true);
      }
    }
    AddClosures(trace);
    if (begins_.empty()) return;
    for (const uint32_t row : RangesIn(trace, kModuleDomain)) {
      begins_.emplace_back(trace.ranges.start[row], false);
    }
    std::sort(begins_.begin(), begins_.end());
  }

  bool any() const { return !begins_.empty(); }
  bool Has(int64_t time) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), std::pair(time, true));
    return after != begins_.begin() && std::prev(after)->second;
  }

 private:
  void AddClosures(const Trace& trace) {
    const std::vector<Interval>& passes = NestedPasses(trace).in_optimizers;
    for (const uint32_t row : RangesIn(trace, kPhaseDomain)) {
      const int64_t end = trace.ranges.end[row];
      if (trace.dictionary.String(trace.ranges.name[row]) == proto::kBackwardPhase &&
          !Within(passes, trace.ranges.start[row], end).empty()) {
        begins_.emplace_back(end, true);
      }
    }
  }

  std::vector<std::pair<int64_t, bool>> begins_;  // of an optimizer's step; else of a module
};

bool IsAnnotation(const Operators& ops, uint32_t op) {
  return static_cast<OperatorKind>(ops.kind[op]) == OperatorKind::kAnnotation;
}

// By operator: whether a call of backward() runs it outside of its nodes: it makes the gradient to
// begin with (torch.autograd calls aten::ones_like right before the engine starts), comes after the
// last node (DistributedDataParallel's reducer), or runs inside of one that does.
std::vector<bool> BesideNodes(const Trace& trace) {
  const Operators& ops = trace.operators;
  std::vector<std::vector<uint32_t>> outermost(trace.writers.size());
  for (uint32_t op = 0; op < ops.size(); ++op) {
    const bool has_operator_around = ops.parent[op] != kNone && !IsAnnotation(ops, ops.parent[op]);
    if (has_operator_around || IsAnnotation(ops, op) || ops.writer[op] >= outermost.size())
      continue;
    outermost[ops.writer[op]].push_back(op);
  }
  std::vector<bool> beside(ops.size());
  for (const uint32_t row : RangesIn(trace, kPhaseDomain)) {
    const uint16_t writer = trace.ranges.writer[row];
    if (trace.dictionary.String(trace.ranges.name[row]) != proto::kBackwardPhase ||
        writer >= outermost.size()) {
      continue;
    }
    const std::vector<uint32_t>& rows = outermost[writer];
    auto first = std::ranges::lower_bound(rows, trace.ranges.start[row], {},
                                          [&ops](uint32_t op) { return ops.start[op]; });
    auto before = first;
    while (before != rows.begin() &&
           trace.dictionary.String(ops.name[*std::prev(before)]) == "aten::ones_like") {
      beside[*--before] = true;
    }
    const int64_t end = trace.ranges.end[row];
    for (; first != rows.end() && ops.start[*first] < end; ++first) beside[*first] = true;
  }
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (ops.parent[op] != kNone && beside[ops.parent[op]]) beside[op] = true;
  }
  return beside;
}

// torch's own annotation of a step() or zero_grad() begins before the agent's phase does.
bool IsOptimizersAnnotation(const Trace& trace, uint32_t op) {
  return IsAnnotation(trace.operators, op) &&
         trace.dictionary.String(trace.operators.name[op]).starts_with("Optimizer.");
}

// Sets the places of torch.distributed's calls in the backward pass, and of gloo's part of them.
class CollectivePlaces {
 public:
  CollectivePlaces(const Trace& trace, std::vector<OpPlace>* places)
      : trace_(trace), places_(*places), last_module_(trace.writers.size()) {}

  // In the order of the operators. `node`: the autograd node around it, or kNone.
  void PlaceCall(uint32_t op, uint32_t node) {
    const Operators& ops = trace_.operators;
    OpPlace& place = places_[op];
    const uint32_t parent = ops.parent[op];
    place.of_collective =
        IsDistributedOperator(trace_, op) || (parent != kNone && places_[parent].of_collective);
    if (ops.writer[op] >= last_module_.size()) return;
    uint32_t& last = last_module_[ops.writer[op]];
    if (node == op && place.module != 0) last = place.module;
    const bool starts_here = node != kNone && place.pass == Pass::kBackward && place.module == 0;
    if (place.of_collective && starts_here) place.module = last;
  }

  // Once all calls have their places.
  void PlaceGloo() {
    const Operators& ops = trace_.operators;
    const std::vector<uint32_t> starters = GlooStarters(trace_);
    std::vector<bool> of_gloo(ops.size());
    for (uint32_t op = 0; op < ops.size(); ++op) {
      const uint32_t parent = ops.parent[op];
      if (parent != kNone && of_gloo[parent]) {
        places_[op] = places_[parent];
      } else if (!IsGlooOperator(trace_, op)) {
        continue;
      } else if (starters[op] != kNone) {
        places_[op] = places_[starters[op]];
      } else {
        places_[op].in_no_pass = true;
      }
      of_gloo[op] = places_[op].of_collective = true;
    }
  }

 private:
  const Trace& trace_;
  std::vector<OpPlace>& places_;
  std::vector<uint32_t> last_module_;  // by writer: of the last node that has one
};

void PlaceCollectives(const Trace& trace, const std::vector<uint32_t>& nodes,
                      std::vector<OpPlace>* places) {
  CollectivePlaces collectives(trace, places);
  for (uint32_t op = 0; op < nodes.size(); ++op) collectives.PlaceCall(op, nodes[op]);
  collectives.PlaceGloo();
}

}  // namespace

std::vector<OpPlace> PlaceOperators(const Trace& trace) {
  const Operators& ops = trace.operators;
  const ModuleFinder finder(trace);
  const BetweenPasses between(trace);
  const std::vector<bool> beside = BesideNodes(trace);
  const auto& by_hand = NestedPasses(trace).by_hand;
  const std::vector<uint32_t> nodes = NodesAround(ops);
  std::vector<OpPlace> places(ops.size());
  std::unordered_map<uint64_t, uint32_t> by_sequence;  // the last one: it made the node
  for (uint32_t i = 0; i < ops.size(); ++i) {
    const ModuleSpan* const module = finder.At(ops.writer[i], ops.start[i]);
    const uint32_t node = nodes[i];
    const bool is_between =
        between.Has(ops.start[i]) || (between.any() && IsOptimizersAnnotation(trace, i));
    places[i].in_no_pass =
        node == kNone && is_between && (module == nullptr || by_hand.contains(module->name));
    if (module != nullptr && !places[i].in_no_pass) places[i].module = module->name;
    places[i].in_evaluation = module != nullptr && node == kNone && finder.Evaluates(*module);
    if (node == kNone && module == nullptr && !places[i].in_no_pass && beside[i]) {
      places[i].pass = Pass::kBackward;
      continue;
    }
    if (node == kNone) {
      if (ops.sequence.At(i) != 0) by_sequence[ops.sequence[i]] = places[i].module;
      continue;
    }
    const bool again = module != nullptr && module->start > ops.start[node];
    places[i].pass = again ? Pass::kRecompute : Pass::kBackward;
    if (again) {
      // Recomputed operators have nodes of their own, and their backward follows.
      if (ops.sequence.At(i) != 0 && node != i) by_sequence[ops.sequence[i]] = places[i].module;
      continue;
    }
    const auto forward = by_sequence.find(ops.sequence.At(node));
    places[i].module = forward == by_sequence.end() ? 0 : forward->second;
  }
  PlaceCollectives(trace, nodes, &places);
  return places;
}

}  // namespace ranktap::collector
