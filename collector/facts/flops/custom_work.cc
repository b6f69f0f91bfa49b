#include "collector/facts/flops/custom_work.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "collector/facts/device_timeline.h"
#include "collector/facts/flops/known_flops.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/framework/op_modules.h"
#include "collector/facts/framework/program_lines.h"

namespace ranktap::collector {
namespace {

template <size_t N>
bool IsIn(const std::array<std::string_view, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// They make room or a view: an operator that calls nothing else computes itself.
bool OnlyMakesRoom(std::string_view name) {
  static constexpr std::array<std::string_view, 18> kViews = {
      "aten::view",         "aten::as_strided",  "aten::detach",    "detach",        "aten::expand",
      "aten::reshape",      "aten::t",           "aten::transpose", "aten::select",  "aten::slice",
      "aten::unsqueeze",    "aten::squeeze",     "aten::alias",     "aten::resize_", "aten::to",
      "aten::resolve_conj", "aten::resolve_neg", "aten::lift_fresh"};
  return name.starts_with("aten::empty") || IsIn(kViews, name);
}

// PyTorch's own that multiply and that no formula knows.
bool IsWithoutFormula(std::string_view name) {
  for (const std::string_view prefix :
       {"aten::_cudnn_rnn", "aten::miopen_rnn", "aten::mkldnn_rnn_layer", "aten::_fft_",
        "aten::linalg_", "aten::_linalg_", "aten::cholesky", "aten::_int_mm", "aten::_weight_int",
        "aten::_grouped_mm", "aten::_scaled_grouped_mm", "aten::_cdist_", "aten::_trilinear",
        "aten::_flash_attention_", "aten::_efficient_attention_",
        "aten::_transformer_encoder_layer_fwd", "aten::_native_multi_head_attention"}) {
    if (name.starts_with(prefix)) return name != "aten::linalg_vector_norm";
  }
  return false;
}

bool IsOfALibrary(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kPytorchs = {
      "aten",  "c10d", "prims", "profiler", "autograd",
      "torch", "c10",  "prim",  "inductor", "_c10d_functional"};
  const size_t at = name.find("::");
  return at != std::string_view::npos && at != 0 && name.find(' ') == std::string_view::npos &&
         !IsIn(kPytorchs, name.substr(0, at));
}

constexpr std::string_view kBackward = "Backward";

class Finding {
 public:
  explicit Finding(const Trace& trace)
      : trace_(trace),
        ops_(trace.operators),
        known_(KnownOf(trace)),
        counts_(CountFlops(trace, FlopRule::kCounter)),
        places_(PlaceOperators(trace)),
        lines_(trace) {}

  CustomWorks Take() {
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      if (NameOf(i).ends_with(kBackward)) backwards_.emplace(NameOf(i));
    }
    FindUncountable();
    SumTimes();
    AddKernels();
    for (uint32_t i = 0; i < ops_.size(); ++i) AddOperator(i);
    for (auto& [name, work] : works_) {
      if (!work.flops) out_.unknown_ns += work.time_ns;
      out_.rows.push_back(std::move(work));
    }
    std::sort(out_.rows.begin(), out_.rows.end(), [](const CustomWork& a, const CustomWork& b) {
      return std::pair(-a.time_ns, a.name) < std::pair(-b.time_ns, b.name);
    });
    return std::move(out_);
  }

 private:
  std::string_view Text(uint32_t id) const { return trace_.dictionary.String(id); }
  std::string_view NameOf(uint32_t op) const { return Text(ops_.name[op]); }
  bool IsAnnotation(uint32_t op) const {
    return static_cast<OperatorKind>(ops_.kind[op]) == OperatorKind::kAnnotation;
  }

  // PyTorch's products whose formula lacks something: shapes, or a convolution's strides. Not where
  // an operator inside is counted.
  void FindUncountable() {
    uncountable_.assign(ops_.size(), false);
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      if (counts_[i].flops > 0) {
        for (uint32_t at = i; at != kNone; at = ops_.parent[at]) uncountable_[at] = false;
      } else if (HasFormula(FlopRule::kCounter, NameOf(i))) {
        uncountable_[i] = !CountOp(FlopRule::kCounter, NameOf(i), Text(ops_.shapes.At(i)),
                                   Text(ops_.values.At(i)));
      }
    }
  }

  // An operator's own time, and that of the operators inside of a counted one with it.
  void SumTimes() {
    const DeviceSpans& spans = DeviceTimeline(trace_);
    out_.on_device = trace_.kernels.size() > 0;
    time_.assign(ops_.size(), 0);
    computes_.assign(ops_.size(), false);
    counted_.assign(ops_.size(), kNone);
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      const uint32_t parent = ops_.parent[i];
      counted_[i] = parent == kNone ? kNone : counted_[parent];
      const bool is_product = counts_[i].flops > 0 || uncountable_[i];
      if (counted_[i] == kNone && (is_product || known_.IsSaid(NameOf(i)))) counted_[i] = i;
      if (parent != kNone && !OnlyMakesRoom(NameOf(i))) computes_[parent] = true;
      if (out_.on_device) continue;
      const int64_t length = ops_.end[i] - ops_.start[i];
      if (IsAnnotation(i)) continue;
      time_[Owner(i)] += length;
      if (const uint32_t around = OperatorAround(i); around != kNone)
        time_[Owner(around)] -= length;
    }
    for (const DeviceSpan& span : spans) {
      if (span.table != DeviceSpan::Table::kKernel || span.kind == WorkKind::kCommunication)
        continue;
      out_.time_ns += span.end - span.start;
      const uint32_t op = LaunchingOperator(trace_, span);
      if (op != kNone) time_[Owner(op)] += span.end - span.start;
    }
    if (out_.on_device) return;
    for (const int64_t time : time_) out_.time_ns += time;
  }

  uint32_t Owner(uint32_t op) const { return counted_[op] == kNone ? op : counted_[op]; }
  uint32_t OperatorAround(uint32_t op) const {
    uint32_t around = ops_.parent[op];
    while (around != kNone && IsAnnotation(around)) around = ops_.parent[around];
    return around;
  }

  // nullopt: a formula decides about it, or about one around it, or it is only a name of others.
  std::optional<CustomKind> KindOf(uint32_t op) const {
    const std::string_view name = NameOf(op);
    if (IsAnnotation(op) || (counted_[op] != kNone && counted_[op] != op)) return std::nullopt;
    const std::string_view generated = GeneratedName(name);
    if (generated.starts_with("triton_") || generated.starts_with("cpp_fused_") ||
        !known_.Kernels(name).empty()) {
      return CustomKind::kGeneratedKernel;
    }
    if (name.starts_with("## Call CompiledFxGraph")) {
      const bool is_told = out_.on_device ? time_[op] == 0 : HoldsKernels(op);
      return is_told ? std::nullopt : std::optional(CustomKind::kCompiledGraph);
    }
    const bool is_function = IsAutogradFunction(name);
    if (known_.IsSaid(name)) {
      return is_function ? CustomKind::kAutogradFunction : CustomKind::kOperator;
    }
    if (uncountable_[op]) return CustomKind::kOperator;
    if (computes_[op] && !(out_.on_device && time_[op] > 0)) return std::nullopt;
    if (is_function) return CustomKind::kAutogradFunction;
    if (counts_[op].flops > 0 || !(IsOfALibrary(name) || IsWithoutFormula(name))) {
      return std::nullopt;
    }
    return CustomKind::kOperator;
  }

  // PyTorch numbers its own nodes: AddmmBackward0.
  bool IsAutogradFunction(std::string_view name) const {
    if (name.starts_with("CompiledFunction") || name.find_first_of(": #/.") != name.npos) {
      return false;
    }
    if (name.ends_with(kBackward)) return name.size() > kBackward.size();
    return backwards_.contains(std::string(name) + std::string(kBackward));
  }

  // Its kernels have operators of their own, right inside.
  bool HoldsKernels(uint32_t graph) const {
    for (uint32_t i = graph + 1; i < ops_.size() && ops_.start[i] < ops_.end[graph]; ++i) {
      if (ops_.parent[i] != graph) continue;
      const std::string_view name = GeneratedName(NameOf(i));
      if (name.starts_with("triton_") || name.starts_with("cpp_")) return true;
    }
    return false;
  }

  CustomWork& WorkOf(std::string_view name, CustomKind kind) {
    const auto [at, is_new] = works_.try_emplace(std::pair(name, kind));
    CustomWork& work = at->second;
    if (!is_new) return work;
    work.name = name;
    work.kind = kind;
    work.is_said = known_.IsSaid(name);
    for (const GeneratedKernel* const kernel : known_.Kernels(name)) {
      for (const FusedOperator& op : kernel->operators) {
        if (op.name != "?") work.operators.insert(op.name);
        if (!op.line.empty()) work.lines.insert(op.line);
      }
    }
    return work;
  }

  static void Add(const std::optional<int64_t>& part, std::optional<int64_t>* sum) {
    if (part && *sum) {
      AddCapped(*part, &**sum);
    } else {
      sum->reset();
    }
  }

  void AddOperator(uint32_t op) {
    const std::optional<CustomKind> kind = KindOf(op);
    if (!kind) return;
    const std::string_view name = NameOf(op);
    CustomWork& work = WorkOf(name, *kind);
    ++work.calls;
    work.time_ns += time_[op];
    if (known_.Kernels(name).empty()) {
      if (const std::string_view line = lines_.OfOperator(op); !line.empty())
        work.lines.emplace(line);
    }
    const std::string_view module = trace_.dictionary.String(places_[op].module);
    if (!module.empty()) work.modules.emplace(module);
    std::optional<FlopCount> count;
    if (known_.Has(name)) {
      count = known_.Of(FlopRule::kCounter, name, trace_.dictionary.String(ops_.shapes.At(op)),
                        trace_.dictionary.String(ops_.values.At(op)));
    }
    Add(count ? std::optional(count->flops) : std::nullopt, &work.flops);
    Add(known_.Operations(name, trace_.dictionary.String(ops_.shapes.At(op))), &work.operations);
  }

  // Triton and NVRTC launch by the driver's API; PyTorch's kernels and CUDA's libraries do not.
  bool IsTheProgramsOwn(const DeviceSpan& span, uint32_t op) const {
    if (op != 0 && !IsAnnotation(op - 1)) return false;
    if (span.launch == kNone || span.kind != WorkKind::kCompute) return false;
    return trace_.dictionary.Api(trace_.api_calls.api[span.launch]).domain ==
           proto::ApiDomain::kDriver;
  }

  // Generated kernels that no operator of their name launched, and the program's own.
  void AddKernels() {
    for (const DeviceSpan& span : DeviceTimeline(trace_)) {
      if (span.table != DeviceSpan::Table::kKernel) continue;
      const std::string_view name = trace_.dictionary.String(span.name);
      const uint32_t op = trace_.kernels.op.At(span.row);
      const bool is_generated = name.starts_with("triton_") || !known_.Kernels(name).empty();
      if (!is_generated && !IsTheProgramsOwn(span, op)) continue;
      if (op != 0 && GeneratedName(NameOf(op - 1)) == name) continue;
      CustomWork& work =
          WorkOf(name, is_generated ? CustomKind::kGeneratedKernel : CustomKind::kOwnKernel);
      ++work.calls;
      work.time_ns += span.end - span.start;
      const auto count = known_.Of(FlopRule::kCounter, name, "", "");
      Add(count ? std::optional(count->flops) : std::nullopt, &work.flops);
      Add(known_.Operations(name, ""), &work.operations);
      if (op == 0) continue;
      time_[Owner(op - 1)] -= span.end - span.start;  // the kernel's row has it
      const std::string_view module = trace_.dictionary.String(places_[op - 1].module);
      if (!module.empty()) work.modules.emplace(module);
    }
  }

  const Trace& trace_;
  const Operators& ops_;
  const KnownFlops known_;
  const std::vector<FlopCount> counts_;
  const std::vector<OpPlace> places_;
  const ProgramLines lines_;
  std::set<std::string, std::less<>> backwards_;  // of functions, by their names
  std::vector<int64_t> time_;
  std::vector<bool> computes_, uncountable_;
  std::vector<uint32_t> counted_;
  std::map<std::pair<std::string_view, CustomKind>, CustomWork> works_;
  CustomWorks out_;
};

}  // namespace

const CustomWorks& FindCustomWork(const Trace& trace) {
  return trace.memo.Get<CustomWorks>([&trace] { return Finding(trace).Take(); });
}

}  // namespace ranktap::collector
