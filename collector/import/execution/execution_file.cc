// PyTorch's execution traces (ExecutionTraceObserver), and what chakra_trace_link makes of one.
#include <fmt/core.h>

#include "collector/file/json.h"
#include "collector/import/execution/execution_tables.h"
#include "collector/import/finish_trace.h"
#include "collector/import/importers.h"
#include "collector/import/json_scan.h"
#include "collector/import/text_window.h"

namespace ranktap::collector {
namespace {

uint64_t NumberIn(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  uint64_t number = 0;
  return value.is_string() && ParseUnsigned(value.get<std::string>(), &number) ? number : 0;
}

// Scripts write numbers of nodes as texts, and the parent as a list.
std::optional<uint64_t> IdIn(const Json& found) {
  const Json& value = found.is_array() && !found.empty() ? found.front() : found;
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  uint64_t number = 0;
  if (!value.is_string() || !ParseUnsigned(value.get<std::string>(), &number)) return std::nullopt;
  return number;
}

int64_t MicrosecondsIn(const Json& value) {
  int64_t ns = 0;
  return value.is_number() && ParseMicroseconds(WriteJson(value), &ns) ? ns : 0;
}

// "Tensor(float)" is "float" in files of torch.profiler.
std::string ProfilerType(const std::string& type) {
  if (type.starts_with("GenericList[Tensor")) return "TensorList";
  if (type.starts_with("GenericList[")) return "ScalarList";
  if (type.starts_with("Tensor(") && type.ends_with(")")) {
    const std::string inner = type.substr(7, type.size() - 8);
    return inner.find("nullptr") == inner.npos ? inner : "";
  }
  return type == "Int" || type == "Double" || type == "Bool" ? "Scalar" : "";
}

bool IsTensor(const Json& value) {
  constexpr size_t kTensorFields = 6;  // id, storage, offset, elements, bytes of one, device
  return value.is_array() && value.size() == kTensorFields && value[5].is_string();
}

// As "Concrete Inputs" has it.
std::string ProfilerValue(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_number()) return WriteJson(value);
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    return text.starts_with("<") ? "" : text;
  }
  if (!value.is_array() || IsTensor(value) || (!value.empty() && value[0].is_array())) return "";
  return SpacedAsTorch(WriteJson(value));
}

std::string ListText(const Json& list) {
  return list.is_array() && !list.empty() ? SpacedAsTorch(WriteJson(list)) : std::string();
}

class NodeReader {
 public:
  explicit NodeReader(Trace* trace) : trace_(trace) {}

  // nullopt: no node.
  std::optional<ExecutionNode> Read(const Json& json) {
    const std::optional<uint64_t> id = IdIn(json["id"]);
    if (!json.is_object() || !id) return std::nullopt;
    attrs_.clear();
    for (const Json& attr : json["attrs"]) {
      if (attr.is_object()) attrs_[attr.TextOf("name")] = &attr["value"];
    }
    json_ = &json;
    ExecutionNode node;
    node.id = *id;
    node.parent = IdIn(json.contains("ctrl_deps") ? json["ctrl_deps"] : json["parent"]).value_or(0);
    node.name = json.TextOf("name");
    node.record_function = NumberIn(Attr("rf_id"));
    node.scope = NumberIn(Attr("scope"));
    node.thread = NumberIn(Attr("tid"));
    node.forward_thread = NumberIn(Attr("fw_tid"));
    if (const Json& sequence = Attr("seq_id"); sequence.is_number_integer()) {
      node.sequence = sequence.get<int64_t>();
    }
    ReadTensors(&node);
    ReadCollective(&node);
    ReadLinked(&node);
    if (node.name == kGroupsNode) ReadGroups(json);
    return node;
  }

 private:
  // 1.0.1 has them beside the name.
  const Json& Attr(const char* name) const {
    const auto at = attrs_.find(name);
    return at == attrs_.end() ? (*json_)[name] : *at->second;
  }

  void ReadTensors(ExecutionNode* node) {
    const Json& in = (*json_)["inputs"];
    const Json& out = (*json_)["outputs"];
    const bool is_old = in.is_array();  // 1.0.1
    const Json& in_values = is_old ? in : in["values"];
    const Json& out_values = is_old ? out : out["values"];
    node->shapes = ListText(is_old ? (*json_)["input_shapes"] : in["shapes"]);
    node->strides = ListText(in["strides"]);
    node->types = Types(is_old ? (*json_)["input_types"] : in["types"]);
    node->output_shapes = ListText(is_old ? (*json_)["output_shapes"] : out["shapes"]);
    node->output_types = Types(is_old ? (*json_)["output_types"] : out["types"]);
    Json values = Json::array();
    for (const Json& value : in_values) values.push_back(ProfilerValue(value));
    node->values = ListText(values);
    AddTensors(in_values, false, node);
    AddTensors(out_values, true, node);
  }
  static std::string Types(const Json& list) {
    Json types = Json::array();
    for (const Json& type : list) types.push_back(ProfilerType(type.TextOrNothing()));
    return ListText(types);
  }
  static void AddTensors(const Json& values, bool is_output, ExecutionNode* node) {
    if (!values.is_array()) return;
    for (size_t place = 0; place < values.size() && place < 256; ++place) {
      const Json& value = values[place];
      const bool is_list = value.is_array() && !value.empty() && IsTensor(value[0]);
      for (size_t i = 0; is_list && i < value.size() && i < 4096; ++i) {
        if (IsTensor(value[i])) AddTensor(value[i], is_output, place, i, node);
      }
      if (IsTensor(value)) AddTensor(value, is_output, place, 0, node);
    }
  }
  static void AddTensor(const Json& value, bool is_output, size_t place, size_t element,
                        ExecutionNode* node) {
    node->tensors.push_back({is_output, static_cast<uint8_t>(place), static_cast<uint16_t>(element),
                             NumberIn(value[0]), NumberIn(value[1])});
  }

  void ReadCollective(ExecutionNode* node) {
    if (!Attr("collective_name").is_string()) return;
    Collective comm;
    comm.name = Attr("collective_name").TextOrNothing();
    comm.dtype = Attr("dtype").TextOrNothing();
    comm.group = Attr("pg_name").TextOrNothing();
    comm.group_description = Attr("pg_desc").TextOrNothing();
    comm.in_split = Attr("in_split_size").TextOrNothing();
    comm.out_split = Attr("out_split_size").TextOrNothing();
    comm.in_elements = NumberIn(Attr("in_msg_nelems"));
    comm.out_elements = NumberIn(Attr("out_msg_nelems"));
    comm.group_size = static_cast<uint32_t>(NumberIn(Attr("pg_size")));
    for (const auto& [key, rank] : {std::pair("src_rank", &comm.source_rank),
                                    std::pair("dst_rank", &comm.destination_rank)}) {
      const Json& value = Attr(key);
      if (value.is_number_unsigned()) *rank = static_cast<int32_t>(value.get<uint32_t>());
    }
    node->collective = std::move(comm);
  }

  // Fields that chakra_trace_link adds.
  void ReadLinked(ExecutionNode* node) const {
    const std::string category = json_->TextOf("cat");
    node->on_device = category == "kernel" || category.starts_with("gpu_mem");
    if ((*json_)["ts"].is_number()) node->start_ns = MicrosecondsIn((*json_)["ts"]);
    node->duration_ns = MicrosecondsIn((*json_)["inclusive_dur"]);
    if (!node->on_device) return;
    node->stream = static_cast<int64_t>(NumberIn((*json_)["stream"]));
    node->tensors.clear();
    // It copies all of the operator that launched.
    if (node->name.find("nccl") == node->name.npos) node->collective.reset();
  }

  void ReadGroups(const Json& json) {
    const Json& in = json["inputs"];
    const Json& values = in.is_array() ? in : in["values"];
    if (values.is_array() && !values.empty()) AddExecutionGroups(values[0].TextOrNothing(), trace_);
  }

  Trace* trace_;
  const Json* json_ = nullptr;
  std::map<std::string, const Json*> attrs_;
};

class ExecutionFile {
 public:
  ExecutionFile(ByteSource* source, Trace* trace)
      : source_(source), window_(source), trace_(trace), tables_(trace), nodes_(trace) {}

  void Read() {
    if (std::string_view(window_.begin(), 3) == "\xef\xbb\xbf") window_.MoveTo(window_.begin() + 3);
    if (window_.Peek() == '{') {
      window_.MoveTo(window_.begin() + 1);
      while (ReadMember()) continue;
    }
    if (!source_->damage().empty()) Damaged(window_.OffsetOf(window_.end()), source_->damage());
    if (tables_.size() > 0) timeless_ = tables_.Finish();
  }
  size_t nodes() const { return tables_.size(); }
  bool timeless() const { return timeless_; }
  const std::string& schema() const { return schema_; }

 private:
  void Damaged(uint64_t offset, std::string what) {
    if (trace_->damage.size() < kDamageListed) {
      trace_->damage.push_back({offset, 0, std::move(what)});
    }
  }

  bool ReadMember() {
    char next = window_.Peek();
    if (next == ',') {
      window_.MoveTo(window_.begin() + 1);
      next = window_.Peek();
    }
    if (next == '}') return false;
    const uint64_t offset = window_.OffsetOf(window_.begin());
    const std::string key(next == '"' ? window_.TakeValue() : std::string_view());
    if (key.size() < 2 || window_.Peek() != ':') {
      Damaged(offset, next == 0 ? "the file ends before its last bracket"
                                : "not a member of the outermost object; the rest is not read");
      return false;
    }
    window_.MoveTo(window_.begin() + 1);
    if (key == "\"nodes\"" && window_.Peek() == '[') return ReadNodes();
    window_.Peek();
    const uint64_t at = window_.OffsetOf(window_.begin());
    const Json value = ParseJson(window_.TakeValue());
    if (value.is_discarded()) {
      Damaged(at, fmt::format("the value of {} is cut off or malformed", key));
      return false;
    }
    if (key == "\"schema\"") schema_ = value.TextOrNothing();
    if (key == "\"pid\"") trace_->info.pid = static_cast<uint32_t>(NumberIn(value));
    return true;
  }

  // False: the file ends inside the list.
  bool ReadNodes() {
    window_.MoveTo(window_.begin() + 1);
    while (true) {
      const char next = window_.Peek();
      const uint64_t offset = window_.OffsetOf(window_.begin());
      if (next == ',') {
        window_.MoveTo(window_.begin() + 1);
        continue;
      }
      if (next == ']') {
        window_.MoveTo(window_.begin() + 1);
        return true;
      }
      if (next == 0) {
        if (source_->damage().empty()) Damaged(offset, "the list of nodes has no end");
        return false;
      }
      const std::string_view text = window_.TakeValue();
      if (text.empty()) {
        Damaged(offset, "a node is cut off or malformed; the rest is not read");
        return false;
      }
      if (std::optional<ExecutionNode> node = nodes_.Read(ParseJson(text))) {
        tables_.Add(std::move(*node));
      } else {
        Damaged(offset, "not a node");
      }
    }
  }

  ByteSource* source_;
  TextWindow window_;
  Trace* trace_;
  ExecutionTables tables_;
  NodeReader nodes_;
  std::string schema_;
  bool timeless_ = true;
};

}  // namespace

Result<Trace> ImportExecutionTrace(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  if (!source) return Failure{source.message()};
  Trace trace;
  trace.path = path;
  trace.origin = TraceOrigin::kExecution;
  ExecutionFile file(&*source, &trace);
  file.Read();
  if (file.nodes() == 0) {
    return Failure{fmt::format(
        "{}: an execution trace without a node that can be read{}", path,
        trace.damage.empty()
            ? ""
            : fmt::format(" (at byte {}: {})", trace.damage[0].offset, trace.damage[0].what))};
  }
  if (!file.timeless()) trace.origin = TraceOrigin::kChakra;
  trace.info.rank = NumberBeforeEnding(path);
  if (trace.info.rank) trace.info.rank_origin = "file name";
  if (file.timeless()) {
    trace.info.notes.push_back(
        "an execution trace has no times: operators stand in their order, and every duration is "
        "made up; name torch.profiler's file of the same steps beside it");
  }
  if (file.schema().empty()) {
    trace.info.notes.push_back("it names no schema: it was read as 1.1.1");
  } else if (!file.schema().starts_with("1.0.") && !file.schema().starts_with("1.1.")) {
    trace.info.notes.push_back(
        fmt::format("its schema {} is newer than 1.1.1, as which it was read", file.schema()));
  }
  CloseTrace("ExecutionTraceObserver", source->file_bytes(), &trace);
  return trace;
}

bool LooksLikeExecutionTrace(std::string_view head) {
  size_t at = FirstOfJson(head);
  if (at == head.npos || head[at] != '{') return false;
  at = FirstOfJson(head, at + 1);
  if (at == head.npos) return false;
  // PyTorch begins with the schema; what went through a script may begin with any other.
  for (const std::string_view key :
       {"\"schema\"", "\"pid\"", "\"time\"", "\"start_ts\"", "\"finish_ts\""}) {
    if (!head.substr(at).starts_with(key)) continue;
    at = FirstOfJson(head, at + key.size());
    return at != head.npos && head[at] == ':';
  }
  return false;
}

}  // namespace ranktap::collector
