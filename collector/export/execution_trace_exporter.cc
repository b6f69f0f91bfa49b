#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <ctime>

#include "collector/export/exporters.h"
#include "collector/export/json_text.h"
#include "collector/export/output_file.h"
#include "collector/export/run_clock.h"
#include "collector/trace/execution_collective.h"
#include "collector/trace/execution_trace.h"

namespace ranktap::collector {
namespace {

using Kind = TraceValue::Kind;

constexpr int64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;

// Between the elements of a list.
template <typename Elements, typename Write>
void WriteList(const Elements& elements, JsonText* text, Write write) {
  text->Raw("[");
  bool is_first = true;
  for (const auto& element : elements) {
    if (!is_first) text->Raw(",");
    is_first = false;
    write(element);
  }
  text->Raw("]");
}

void WriteTensor(const TraceValue& value, JsonText* text) {
  text->Raw("[").Number(value.tensor).Raw(",").Number(value.storage).Raw(",").Number(value.offset);
  text->Raw(",").Number(value.elements_count).Raw(",").Number(value.element_bytes).Raw(",");
  text->Text(value.text).Raw("]");
}

// Six decimals, as std::to_string has them.
void WriteReal(double real, JsonText* text) {
  if (std::isfinite(real)) {
    text->Raw(std::to_string(real));
  } else {
    text->Text(std::to_string(real));
  }
}

void WriteValue(const TraceValue& value, JsonText* text) {
  switch (value.kind) {
    case Kind::kTensor:
      return WriteTensor(value, text);
    case Kind::kInteger:
      text->Number(value.integer);
      return;
    case Kind::kReal:
      return WriteReal(value.real, text);
    case Kind::kFlag:
      text->Raw(std::string_view(value.integer != 0 ? "true" : "false"));
      return;
    case Kind::kText:
    case Kind::kDevice:
      text->Text(value.text);
      return;
    case Kind::kList:
      return WriteList(value.elements, text, [&](const auto& each) { WriteValue(each, text); });
    case Kind::kNone:
    case Kind::kOther:
      text->Text("<" + value.type + ">");
  }
}

void WriteNumbers(const TraceValue& value, const std::vector<int64_t> TraceValue::*numbers,
                  JsonText* text) {
  if (value.kind == Kind::kList) {
    return WriteList(value.elements, text,
                     [&](const auto& each) { WriteNumbers(each, numbers, text); });
  }
  WriteList(value.*numbers, text, [&](int64_t number) { text->Number(number); });
}

std::string TypeOf(const TraceValue& value) {
  if (value.kind == Kind::kTensor) return "Tensor(" + value.type + ")";
  if (value.kind != Kind::kList) return value.type;
  std::string types;
  for (const TraceValue& element : value.elements) {
    types += (types.empty() ? "" : ",") + TypeOf(element);
  }
  return value.type + "[" + types + "]";
}

void WriteValues(const std::vector<TraceValue>& values, JsonText* text) {
  text->Raw("{\"values\": ");
  WriteList(values, text, [&](const auto& value) { WriteValue(value, text); });
  text->Raw(", \"shapes\": ");
  WriteList(values, text,
            [&](const auto& value) { WriteNumbers(value, &TraceValue::sizes, text); });
  text->Raw(", \"types\": ");
  WriteList(values, text, [&](const auto& value) { text->Text(TypeOf(value)); });
  text->Raw(", \"strides\": ");
  WriteList(values, text,
            [&](const auto& value) { WriteNumbers(value, &TraceValue::strides, text); });
  text->Raw("}");
}

class Attributes {
 public:
  explicit Attributes(JsonText* text) : text_(text) {}
  template <typename Integer>
  Attributes& Add(std::string_view name, std::string_view type, Integer value) {
    Begin(name, type).Number(value).Raw("}");
    return *this;
  }
  Attributes& AddText(std::string_view name, std::string_view value) {
    Begin(name, "string").Text(value).Raw("}");
    return *this;
  }
  // PyTorch calls it a string, too.
  Attributes& AddFlag(std::string_view name, bool value) {
    Begin(name, "string").Raw(std::string_view(value ? "true" : "false")).Raw("}");
    return *this;
  }

 private:
  JsonText& Begin(std::string_view name, std::string_view type) {
    if (!is_first_) text_->Raw(",");
    is_first_ = false;
    return text_->Raw("{\"name\": \"")
        .Raw(name)
        .Raw("\", \"type\": \"")
        .Raw(type)
        .Raw("\", \"value\": ");
  }
  JsonText* text_;
  bool is_first_ = true;
};

std::string ListText(const std::vector<int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

void AddCollective(const TraceNode& node, Attributes* attributes) {
  const auto made = ReadCollective(node.inputs, node.outputs);
  if (!made) return;
  attributes->AddText("collective_name", made->collective_name)
      .AddText("dtype", made->dtype)
      .Add("in_msg_nelems", "uint64", made->in_msg_nelems)
      .Add("out_msg_nelems", "uint64", made->out_msg_nelems)
      .AddText("in_split_size", ListText(made->in_split_size))
      .AddText("out_split_size", ListText(made->out_split_size))
      .Add("global_rank_start", "uint64", made->global_rank_start)
      .Add("global_rank_stride", "uint64", made->global_rank_stride)
      .AddText("pg_name", made->pg_name)
      .AddText("pg_desc", made->pg_desc)
      .Add("pg_size", "uint64", made->pg_size);
  if (made->is_asynchronized_op) {
    attributes->AddFlag("is_asynchronized_op", *made->is_asynchronized_op);
  }
}

void WriteNode(const TraceNode& node, JsonText* text) {
  text->Raw("\n      {\n        \"id\": ").Number(node.id).Raw(", \"name\": ").Text(node.name);
  text->Raw(", \"ctrl_deps\": ").Number(node.parent).Raw(",\n        \"inputs\": ");
  WriteValues(node.inputs, text);
  text->Raw(",\n        \"outputs\": ");
  WriteValues(node.outputs, text);
  text->Raw(",\n        \"attrs\": [");
  Attributes attributes(text);
  attributes.Add("rf_id", "uint64", node.record_function)
      .Add("fw_parent", "uint64", node.forward_parent)
      .Add("seq_id", "int64", node.sequence)
      .Add("scope", "uint64", node.scope)
      .Add("tid", "uint64", node.thread)
      .Add("fw_tid", "uint64", node.forward_thread)
      .AddText("op_schema", node.schema)
      .AddText("kernel_backend", "")
      .AddText("kernel_file", "")
      .AddText("tensor_range", "");
  if (node.name == kRecordedCollective) AddCollective(node, &attributes);
  text->Raw("]\n      }");
}

std::string TimeText(int64_t realtime_ns) {
  const std::time_t seconds = realtime_ns / kSecond;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32] = {};
  (void)std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

}  // namespace

std::optional<Failure> WriteExecutionTrace(const Run& run, std::span<const Trace* const> traces,
                                           const ExportOptions& options, const std::string& path) {
  const Trace& trace = *traces.front();
  const ExportOptions own = options.Shifted(RealtimeOffset(run, trace));
  const ExecutionTrace made = BuildExecutionTrace(trace, own.from, own.to);
  size_t operators = 0;
  int64_t first = INT64_MAX, last = 0;
  for (const TraceNode& node : made.nodes) {
    if (node.op == kNone) continue;
    ++operators;
    first = std::min(first, node.start);
    last = std::max(last, node.end);
  }
  if (operators == 0 || made.without_values == operators) {
    return Failure{fmt::format(
        "{}: no operator has its values; record with ranktap run --level full --tensors=full",
        trace.path)};
  }
  auto file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  file->Write(fmt::format(
      "{{\n  \"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": {}, \"time\": \"{}\", \"start_ts\": "
      "{},\n  \"nodes\": [",
      trace.hello.process().pid(), TimeText(first + RealtimeOffset(run, trace)),
      first / kMillisecond));
  JsonText text;
  for (size_t i = 0; i < made.nodes.size(); ++i) {
    text.Truncate(0);
    if (i != 0) text.Raw(",");
    WriteNode(made.nodes[i], &text);
    file->Write(text.view());
  }
  file->Write(fmt::format("\n  ],\n  \"finish_ts\": {}\n}}\n", last / kMillisecond));
  return file->Close();
}

}  // namespace ranktap::collector
