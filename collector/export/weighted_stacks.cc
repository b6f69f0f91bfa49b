#include "collector/export/weighted_stacks.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "collector/export/json_text.h"
#include "collector/export/sampled_stacks.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

using Frames = WeightedStacks::Frames;

// "train.py(12): step", as torch names Python's frames.
WeightedFrame PythonFrame(std::string_view text) {
  const size_t colon = text.find("): "), open = text.rfind('(', colon);
  WeightedFrame frame{.function = SanitizedName(text), .file = {}};
  if (colon == std::string_view::npos || open == std::string_view::npos) return frame;
  const std::string_view line = text.substr(open + 1, colon - open - 1);
  std::from_chars(line.data(), line.data() + line.size(), frame.line);
  frame.file = SanitizedName(text.substr(0, open));
  frame.function = SanitizedName(text.substr(colon + 3));
  return frame;
}

class TraceStacks {
 public:
  TraceStacks(const Trace& trace, const ExportOptions& options, WeightedStacks* to)
      : trace_(trace), options_(options), to_(to) {
    const auto& rank = trace.info.rank;
    const std::string name =
        rank ? fmt::format("rank {}", *rank) : fmt::format("process {}", trace.info.pid);
    root_ = to->IndexOf({.function = name, .file = {}});
  }

  uint32_t root() const { return root_; }

  void Add() {
    std::vector<bool> launched(trace_.api_calls.size(), false);
    const Kernels& kernels = trace_.kernels;
    AddWork(kernels, &launched, [&](size_t row) { return KernelFrame(kernels.name[row]); });
    AddWork(trace_.copies, &launched, [&](size_t) { return Leaf("[copy]"); });
    AddWork(trace_.memsets, &launched, [&](size_t) { return Leaf("[memset]"); });
    AddWork(trace_.graph_launches, &launched, [&](size_t) { return Leaf("[graph]"); });
    AddCalls(launched);
    AddOperators();
  }

 private:
  uint32_t Leaf(std::string name) {
    return to_->IndexOf({.function = std::move(name), .file = {}});
  }

  uint32_t KernelFrame(uint32_t id) {
    const auto [found, is_new] = kernels_.try_emplace(id, 0);
    if (is_new) {
      const std::string name = ReadableKernelName(trace_.dictionary.String(id));
      found->second = Leaf(fmt::format("[{}]", SanitizedName(name)));
    }
    return found->second;
  }

  template <typename FrameOf>
  void AddWork(const DeviceWork& work, std::vector<bool>* launched, const FrameOf& frame_of) {
    for (size_t row = 0; row < work.size(); ++row) {
      const uint32_t call = work.launch[row];
      if (call < launched->size()) (*launched)[call] = true;
      if (work.start[row] == kUntimed || !options_.Keeps(work.start[row], work.end[row])) continue;
      const uint32_t stack = call < launched->size() ? trace_.api_calls.stack.At(call) : 0;
      const uint32_t op = work.op.At(row);
      Frames frames = stack != 0 || op == 0 ? Native(stack) : Operator(op - 1);
      frames.push_back(frame_of(row));
      to_->Add(frames, StackWeight::kGpu, work.end[row] - work.start[row]);
    }
  }

  void AddCalls(const std::vector<bool>& launched) {
    const ApiCalls& calls = trace_.api_calls;
    for (size_t row = 0; row < calls.size(); ++row) {
      if (launched[row] || !options_.Keeps(calls.start[row], calls.end[row])) continue;
      Frames frames = Native(calls.stack.At(row));
      frames.push_back(Leaf(SanitizedName(trace_.dictionary.Api(calls.api[row]).name)));
      to_->Add(frames, StackWeight::kCall, calls.end[row] - calls.start[row]);
    }
  }

  void AddOperators() {
    const Operators& ops = trace_.operators;
    std::vector<int64_t> own(ops.size());
    for (size_t row = 0; row < ops.size(); ++row) {
      own[row] += ops.end[row] - ops.start[row];
      if (ParentOf(row) != kNone) own[ParentOf(row)] -= ops.end[row] - ops.start[row];
    }
    for (size_t row = 0; row < ops.size(); ++row) {
      if (!options_.Keeps(ops.start[row], ops.end[row])) continue;
      to_->Add(Operator(static_cast<uint32_t>(row)), StackWeight::kOperator,
               std::max<int64_t>(own[row], 0));
    }
  }

  uint32_t ParentOf(size_t op) const {
    return op < trace_.operators.parent.size() ? trace_.operators.parent[op] : kNone;
  }

  const Frames& Native(uint32_t stack) {
    const auto [found, is_new] = native_.try_emplace(stack);
    if (!is_new) return found->second;
    Frames& frames = found->second = {root_};
    const NativeStack& recorded = trace_.dictionary.Stack(stack);
    if (recorded.frames.empty()) frames.push_back(Leaf("(no stack)"));
    if (recorded.truncated) frames.push_back(Leaf("(truncated)"));
    for (size_t i = recorded.frames.size(); i-- > 0;) {
      const ResolvedAddress* const resolved = trace_.symbols.Find(recorded.frames[i]);
      if (resolved == nullptr) continue;
      for (size_t k = resolved->frames.size(); k-- > 0;) {
        const SourceFrame& frame = resolved->frames[k];
        const bool is_nameless = frame.function.starts_with('+');
        const std::string name = (is_nameless ? resolved->module : "") + frame.function;
        const std::string& file = frame.file.empty() ? resolved->module : frame.file;
        frames.push_back(to_->IndexOf({SanitizedName(name), SanitizedName(file), frame.line}));
      }
    }
    return frames;
  }

  // Python's frames above the operator, then the operators around it. Those without frames of their
  // own have the outermost operator's.
  Frames Operator(uint32_t op) {
    const Operators& ops = trace_.operators;
    std::vector<uint32_t> chain;
    for (uint32_t at = op; at != kNone && at < ops.size(); at = ParentOf(at)) chain.push_back(at);
    uint32_t python = ops.stack.At(op);
    for (const uint32_t at : chain) python = python == 0 ? ops.stack.At(at) : python;
    Frames frames = Python(python);
    for (size_t i = chain.size(); i-- > 0;) frames.push_back(OperatorFrame(ops.name[chain[i]]));
    return frames;
  }
  uint32_t OperatorFrame(uint32_t name) {
    const auto [found, is_new] = operators_.try_emplace(name, 0);
    if (is_new) found->second = Leaf(SanitizedName(trace_.dictionary.String(name)));
    return found->second;
  }
  const Frames& Python(uint32_t stack) {
    const auto [found, is_new] = python_.try_emplace(stack);
    if (!is_new) return found->second;
    Frames& frames = found->second = {root_};
    std::string_view rest = trace_.dictionary.String(stack);  // the innermost first
    while (!rest.empty()) {
      const size_t at = rest.rfind(';');
      const size_t begin = at == std::string_view::npos ? 0 : at + 1;
      frames.push_back(to_->IndexOf(PythonFrame(rest.substr(begin))));
      rest = rest.substr(0, begin == 0 ? 0 : begin - 1);
    }
    return frames;
  }

  const Trace& trace_;
  const ExportOptions& options_;
  WeightedStacks* to_;
  uint32_t root_ = 0;
  std::unordered_map<uint32_t, uint32_t> kernels_, operators_;  // frame by name
  std::unordered_map<uint32_t, Frames> native_, python_;        // by stack
};

}  // namespace

uint32_t WeightedStacks::IndexOf(WeightedFrame frame) {
  const auto [found, is_new] =
      indices_.try_emplace(std::move(frame), static_cast<uint32_t>(frames_.size()));
  if (is_new) frames_.push_back(found->first);
  return found->second;
}

void WeightedStacks::Add(const Frames& frames, StackWeight weight, int64_t ns) {
  Weights weights{};
  weights[static_cast<size_t>(weight)] = ns;
  weights[static_cast<size_t>(StackWeight::kCount)] = 1;
  Add(frames, {}, weights);
}

void WeightedStacks::Add(Frames frames, const StackLabels& labels, const Weights& weights) {
  for (Weights* const sum : {&stacks_[{std::move(frames), labels}], &totals_}) {
    for (size_t i = 0; i < kStackWeights; ++i) (*sum)[i] += weights[i];
  }
}

uint32_t AddStacks(const Trace& trace, const ExportOptions& options, WeightedStacks* to) {
  TraceStacks stacks(trace, options, to);
  stacks.Add();
  AddSampledStacks(trace, options, stacks.root(), to);
  return stacks.root();
}

}  // namespace ranktap::collector
