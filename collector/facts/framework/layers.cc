#include "collector/facts/framework/layers.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "collector/facts/flops/dtype_sizes.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/framework/model_tree.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/framework/op_modules.h"
#include "collector/facts/launched_work.h"
#include "collector/facts/operators/op_bytes.h"
#include "collector/facts/operators/output_dims.h"

namespace ranktap::collector {
namespace {

// "[\"c10::BFloat16\", ...]" -> c10::BFloat16
std::string_view FirstType(std::string_view types) {
  const size_t from = types.find('"');
  if (from == std::string_view::npos) return {};
  return types.substr(from + 1, types.find('"', from + 1) - from - 1);
}

// "kernel_size=3, stride=2" or "kernel_size=(3, 3), ..." -> "[3]", "[3, 3]"; "[]": not there
std::string ListIn(const std::string& extra, const std::string& key) {
  size_t from = extra.find(key + "=");
  if (from == std::string::npos) return "[]";
  from += key.size() + 1;
  const bool is_tuple = from < extra.size() && extra[from] == '(';
  const size_t end = std::min(extra.find(is_tuple ? ')' : ',', from), extra.size());
  from += is_tuple ? 1 : 0;
  return "[" + extra.substr(from, end - from) + "]";
}

// Arguments of a pooling as its layer prints them: our hooks keep values of few operators.
std::string PoolValues(std::string_view name, const std::string& extra) {
  const auto quoted = [&](const char* key) { return ", \"" + ListIn(extra, key) + "\""; };
  if (name.find("adaptive") != std::string_view::npos) {
    return "[\"\"" + quoted("output_size") + "]";
  }
  const bool rounds_up = extra.find("ceil_mode=True") != std::string::npos;
  std::string values = "[\"\"" + quoted("kernel_size") + quoted("stride") + quoted("padding");
  if (name.starts_with("aten::max_pool")) values += quoted("dilation");
  return values + (rounds_up ? ", \"True\"]" : ", \"False\"]");
}

// The first tensor that an operator took. An embedding's operator takes the weight first: that is
// not the input where it is all of the module's parameters and another tensor follows.
Dims InputOf(const OpInputs& in, const ModelModule* module) {
  const int64_t parameters =
      module == nullptr ? 0 : Sum(module->own[static_cast<size_t>(Part::kParameters)]).elements;
  Dims first;
  for (const Dims& dims : in.shapes) {
    if (dims.empty()) continue;
    if (Product(dims) != parameters) return dims;
    if (first.empty()) first = dims;
  }
  return first;
}

class Forwards {
 public:
  explicit Forwards(const Trace& trace)
      : trace_(trace),
        spans_(ModuleSpans(trace)),
        work_(trace),
        places_(PlaceOperators(trace)),
        flops_(CountFlops(trace, FlopRule::kCounter)),
        bytes_(CountBytes(trace)) {
    for (const ModuleSpan& span : spans_) names_.insert(Name(span.name));
    for (ModelModule& module : DescribeModel(trace_)) {
      const std::string name = module.name;
      modules_.emplace(name, std::move(module));
    }
  }

  std::vector<Layer> Describe() {
    for (const ModuleSpan& span : spans_) {
      if (span.depth != 0 || done_.contains(span.name) || !HasOperators(span)) continue;
      done_.insert(span.name);
      AddRoot(span);
    }
    AddDescriptions();
    return std::move(layers_);
  }

 private:
  std::string Name(uint32_t id) const { return std::string(trace_.dictionary.String(id)); }
  std::string_view Text(const OptionalColumn<uint32_t>& column, uint32_t row) const {
    return trace_.dictionary.String(column.At(row));
  }
  OpInputs Inputs(uint32_t row) const {
    return {Text(trace_.operators.shapes, row), Text(trace_.operators.values, row)};
  }
  // As what counts it knows it: ReLU6 calls hardtanh, of which torchstat knows nothing.
  std::string_view OperatorOf(uint32_t row, const ModelModule* module) const {
    const std::string_view name = trace_.dictionary.String(trace_.operators.name[row]);
    const bool is_relu6 = module != nullptr && module->type == "ReLU6";
    return is_relu6 && name.starts_with("aten::hardtanh") ? "aten::relu6" : name;
  }
  const ModelModule* ModuleNamed(const std::string& name) const {
    const auto found = modules_.find(name);
    return found == modules_.end() ? nullptr : &found->second;
  }
  // The values of a pooling's arguments, where the record has none, are its layer's.
  std::string ValuesOf(uint32_t row, const ModelModule* module) const {
    const std::string_view name = trace_.dictionary.String(trace_.operators.name[row]);
    const std::string_view recorded = Text(trace_.operators.values, row);
    const bool is_pool = name.find("_pool") != std::string_view::npos;
    const bool is_layer = module != nullptr && module->type.find("Pool") != std::string::npos;
    if (!recorded.empty() || !is_pool || !is_layer) return std::string(recorded);
    return PoolValues(name, module->extra);
  }
  bool IsIn(uint32_t row, const ModuleSpan& span) const {
    const Operators& ops = trace_.operators;
    return ops.writer[row] == span.writer && ops.start[row] >= span.start &&
           ops.start[row] < span.end &&
           ops.kind[row] == static_cast<uint8_t>(OperatorKind::kOperator);
  }

  // Rows of the operators in it, by start.
  std::vector<uint32_t> RowsIn(const ModuleSpan& span) const {
    const Operators& ops = trace_.operators;
    std::vector<uint32_t> rows;
    const auto begin = ops.start.begin();
    auto at = std::lower_bound(begin, ops.start.end(), span.start);
    for (; at != ops.start.end() && *at < span.end; ++at) {
      const auto row = static_cast<uint32_t>(at - begin);
      if (IsIn(row, span)) rows.push_back(row);
    }
    return rows;
  }
  bool HasOperators(const ModuleSpan& span) const { return !RowsIn(span).empty(); }

  // A subtree is together: layers are in the order of named calls, and a module that runs again
  // adds to its row.
  void AddRoot(const ModuleSpan& root) {
    at_.clear();
    for (const ModuleSpan& span : spans_) {
      if (span.writer != root.writer || span.start < root.start || span.end > root.end) continue;
      Layer& layer = LayerNamed(span);
      ++layer.calls;
      layer.host_ns += span.end - span.start;
      layer.gpu_ns += work_.Between(span.writer, span.start, span.end);
      if (layer.calls == 1) AddShapes(span, &layer);
    }
    for (const uint32_t row : RowsIn(root)) AddOperator(row);
  }

  Layer& LayerNamed(const ModuleSpan& span) {
    const auto [found, is_new] = at_.try_emplace(Name(span.name), layers_.size());
    if (is_new) layers_.emplace_back().name = found->first;
    return layers_[found->second];
  }

  // Takes the shapes of the operators directly in it.
  void AddShapes(const ModuleSpan& span, Layer* layer) const {
    const Operators& ops = trace_.operators;
    for (const uint32_t row : RowsIn(span)) {
      const uint32_t parent = ops.parent[row];
      if (parent != kNone && ops.start[parent] >= span.start) continue;
      if (layer->input.empty()) {
        layer->input = InputOf(Inputs(row), ModuleNamed(Name(places_[row].module)));
      }
      layer->output = OutputOf(row, ModuleNamed(layer->name));
      const int64_t element = BytesPerElement(FirstType(Text(ops.types, row)));
      layer->output_bytes = layer->output.empty() ? 0 : Product(layer->output) * element;
    }
  }

  Dims OutputOf(uint32_t row, const ModelModule* module) const {
    const OpInputs recorded(Text(trace_.operators.output_shapes, row), {});
    const Dims* const dims = recorded.Tensor(0, 1);
    if (dims != nullptr) return *dims;
    const std::string values = ValuesOf(row, module);
    return OutputDims(OperatorOf(row, module), {Text(trace_.operators.shapes, row), values});
  }

  void AddOperator(uint32_t row) {
    if (places_[row].pass != Pass::kForward || places_[row].module == 0) return;
    std::string name = Name(places_[row].module);
    const TorchStatCount torchstat = TorchStatOf(row, name);
    while (!name.empty()) {
      const auto found = at_.find(name);
      if (found != at_.end()) AddTo(row, torchstat, &layers_[found->second]);
      const size_t dot = name.rfind('.');
      name.resize(dot == std::string::npos ? 0 : dot);
    }
  }

  void AddTo(uint32_t row, const TorchStatCount& torchstat, Layer* layer) const {
    AddCapped(flops_[row].flops, &layer->flops);
    AddCapped(bytes_[row].read, &layer->read);
    AddCapped(bytes_[row].written, &layer->written);
    // It has nothing of its own if an operator around it is counted.
    const bool is_leaf_count =
        bytes_[row].known == BytesKnown::kNoShapes || bytes_[row].known == BytesKnown::kNoType;
    layer->uncounted += is_leaf_count ? 1 : 0;
    AddCapped(torchstat.madd, &layer->torchstat.madd);
    AddCapped(torchstat.flops, &layer->torchstat.flops);
    AddCapped(torchstat.read, &layer->torchstat.read);
    AddCapped(torchstat.written, &layer->torchstat.written);
  }

  // Counts layers without modules in them: the operators that their forward calls, and not those
  // that these call.
  TorchStatCount TorchStatOf(uint32_t row, const std::string& module) const {
    const auto next = names_.upper_bound(module + ".");
    if (next != names_.end() && next->starts_with(module + ".")) return {};
    const Operators& ops = trace_.operators;
    const ModelModule* const described = ModuleNamed(module);
    for (uint32_t at = ops.parent[row]; at != kNone; at = ops.parent[at]) {
      if (CountByTorchStat(OperatorOf(at, described), Inputs(at))) return {};
    }
    const std::string values = ValuesOf(row, described);
    auto count = CountByTorchStat(OperatorOf(row, described), {Text(ops.shapes, row), values});
    if (!count) return {};
    const int64_t element = BytesPerElement(FirstType(Text(ops.types, row)));
    // torchstat asks numpy for it; floats where the record does not say.
    count->read = Product({count->read, element > 0 ? element : 4});
    count->written = Product({count->written, element > 0 ? element : 4});
    return *count;
  }

  void AddDescriptions() {
    for (Layer& layer : layers_) {
      const ModelModule* const module = ModuleNamed(layer.name);
      if (module == nullptr) continue;
      layer.type = module->type;
      layer.parameters = Sum(module->parameters).elements;
    }
  }

  const Trace& trace_;
  const std::vector<ModuleSpan>& spans_;
  const LaunchedWork work_;
  const std::vector<OpPlace> places_;
  const std::vector<FlopCount> flops_;
  const std::vector<ByteCount> bytes_;
  std::map<std::string, ModelModule> modules_;
  std::set<std::string> names_;
  std::set<uint32_t> done_;  // roots
  std::vector<Layer> layers_;
  std::unordered_map<std::string, size_t> at_;  // in layers_, of the root that is added
};

}  // namespace

std::vector<Layer> DescribeLayers(const Trace& trace) {
  if (trace.operators.size() == 0) return {};
  return Forwards(trace).Describe();
}

}  // namespace ranktap::collector
