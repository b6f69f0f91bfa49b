// The readers of PyTorch's execution traces (JSON, plain and gzip) and of Chakra's .et, and the
// work graph of what they read: a small file of each, edited.
#include <iterator>

#include "chakra/et_def.pb.h"
#include "collector/export/graph/work_graph.h"
#include "collector/import/importers.h"
#include "tests/fuzz/compressed.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/text_edits.h"

using namespace ranktap;

namespace {

constexpr std::string_view kSample = R"json({"schema": "1.1.1-chakra.0.0.4", "pid": 7,
"time": "2026-01-02 03:04:05", "start_ts": 1, "nodes": [
{"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1,
 "inputs": {"values": [], "shapes": [], "types": [], "strides": []},
 "outputs": {"values": [], "shapes": [], "types": [], "strides": []},
 "attrs": [{"name": "rf_id", "type": "uint64", "value": 0}, {"name": "tid", "type": "uint64", "value": 1}]},
{"id": 3, "name": "## process_group:init ##", "ctrl_deps": 2, "inputs": {"values":
 ["[{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": \"nccl\", \"ranks\": [0, 1],
 \"group_size\": 2, \"group_count\": 1}]"], "shapes": [[]], "types": ["String"], "strides": [[]]},
 "outputs": {"values": [], "shapes": [], "types": [], "strides": []}, "attrs": []},
{"id": 4, "name": "aten::addmm", "ctrl_deps": 2,
 "inputs": {"values": [[5, 6, 0, 64, 4, "cpu"], [[7, 8, 3, 9, 2, "cuda:0"]], 1, 2.5, true, "<None>"],
 "shapes": [[8, 8], [[3, 3]], [], [], [], []], "types": ["Tensor(float)", "GenericList[Tensor(c10::Half)]",
 "Int", "Double", "Bool", "None"], "strides": [[8, 1], [[3, 1]], [], [], [], []]},
 "outputs": {"values": [[9, 10, 0, 64, 4, "cpu"]], "shapes": [[8, 8]], "types": ["Tensor(float)"],
 "strides": [[8, 1]]}, "attrs": [{"name": "rf_id", "type": "uint64", "value": 11},
 {"name": "fw_parent", "type": "uint64", "value": 0}, {"name": "seq_id", "type": "int64", "value": -1},
 {"name": "scope", "type": "uint64", "value": 1}, {"name": "tid", "type": "uint64", "value": 1},
 {"name": "fw_tid", "type": "uint64", "value": 1}, {"name": "op_schema", "type": "string", "value": "a"}]},
{"id": 12, "name": "record_param_comms", "ctrl_deps": 4, "inputs": {"values": [[[5, 6, 0, 64, 4, "cpu"]],
 [1, false]], "shapes": [], "types": [], "strides": []}, "outputs": {}, "attrs": [
 {"name": "rf_id", "value": 12}, {"name": "collective_name", "value": "send"}, {"name": "dtype", "value": "Float"},
 {"name": "in_msg_nelems", "value": 64}, {"name": "out_msg_nelems", "value": 64},
 {"name": "in_split_size", "value": "[1, 2]"}, {"name": "pg_name", "value": "0"}, {"name": "pg_size", "value": 2},
 {"name": "dst_rank", "value": 1}]},
{"id": 13, "name": "ncclDevKernel_SendRecv", "cat": "kernel", "ts": 5.125, "inclusive_dur": 3,
 "exclusive_dur": 3, "stream": 7, "inter_thread_dep": 4, "sync_dep": [4], "ctrl_deps": 12, "attrs": []},
{"name": "aten::old", "id": 14, "rf_id": 3, "parent": 4, "fw_parent": 0, "seq_id": 2, "scope": 0, "tid": 1,
 "fw_tid": 0, "inputs": [[5, 6, 0, 64, 4, "cpu"]], "input_shapes": [[8, 8]], "input_types": ["Tensor(float)"],
 "outputs": [1], "output_shapes": [[]], "output_types": ["Int"]},
{"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1, "attrs": []}
], "finish_ts": 9})json";

constexpr std::string_view kWords[] = {"{",
                                       "}",
                                       "[",
                                       "]",
                                       ",",
                                       ":",
                                       "\"",
                                       "null",
                                       "-1",
                                       "1",
                                       "4",
                                       "1e308",
                                       "18446744073709551615",
                                       "18446744073709551616",
                                       "-9223372036854775808",
                                       "\"ctrl_deps\": 4",
                                       "\"ts\": 4611686018427387.9,",
                                       "\"inclusive_dur\": 1e15,",
                                       "\"cat\": \"gpu_memcpy\",",
                                       "\"schema\": \"1.0.1\",",
                                       "\"rf_id\"",
                                       "\\u0000",
                                       "{}",
                                       "[[[[[[[[[[",
                                       "9007199254740993"};
// Keys and sizes of protobuf, and a varint without end.
constexpr std::string_view kWire[] = {"\x08",
                                      "\x12",
                                      "\x18\x07",
                                      "\x22\x01",
                                      "\x2a\x01",
                                      "\x30",
                                      "\x38",
                                      "\x52",
                                      "\x0a",
                                      "\x48",
                                      "\x01",
                                      "\x20\x01",
                                      "\x28\x02",
                                      "\xff\xff\xff\xff\x0f",
                                      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"};

chakra::AttributeProto* Attribute(const char* name, chakra::Node* node) {
  chakra::AttributeProto* const attribute = node->add_attr();
  attribute->set_name(name);
  return attribute;
}

void Append(const std::string& message, std::string* file) {
  for (size_t size = message.size();; size >>= 7) {
    file->push_back(static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0)));
    if (size <= 0x7f) break;
  }
  file->append(message);
}

// A host's node, a kernel's, a message and a collective, whose numbers are the input's.
std::string Chakra(fuzz::Input* input) {
  std::string file;
  chakra::GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  metadata.add_attr()->set_name("rank");
  metadata.mutable_attr(0)->set_int64_val(input->Take<uint8_t>());
  Append(metadata.SerializeAsString(), &file);
  constexpr const char* kNames[] = {"aten::mm", "gemm", "Memcpy HtoD", "gloo:all_reduce",
                                    "cudaLaunchKernel"};
  constexpr size_t kMostNodes = 24;
  const size_t nodes = input->Take<uint8_t>() % kMostNodes;
  for (size_t i = 0; i < nodes; ++i) {
    chakra::Node node;
    const auto shape = input->Take<uint8_t>();
    node.set_id((shape & 1) != 0 ? i + 1 : input->Take<uint8_t>());
    node.set_name(kNames[shape % std::size(kNames)]);
    node.set_type(static_cast<chakra::NodeType>(input->Take<uint8_t>() % 9));
    node.add_ctrl_deps(input->Take<uint8_t>());
    node.add_data_deps(input->Take<uint8_t>());
    node.set_start_time_micros((shape & 2) != 0 ? input->Take<uint16_t>()
                                                : input->Take<uint64_t>());
    node.set_duration_micros((shape & 4) != 0 ? input->Take<uint16_t>() : input->Take<uint64_t>());
    node.mutable_inputs()->set_shapes((shape & 8) != 0 ? "[[8, 8]]" : "[['");
    node.mutable_inputs()->set_values("['[{\"pg_name\": \"0\", \"ranks\": [0, 1]}]']");
    Attribute("is_cpu_op", &node)->set_bool_val((shape & 16) != 0);
    Attribute("comm_type", &node)->set_int64_val(input->Take<uint8_t>() % 12);
    Attribute("comm_size", &node)->set_int64_val(input->Take<int64_t>());
    Attribute("pg_name", &node)->set_string_val((shape & 32) != 0 ? "0" : "name");
    Attribute("comm_dst", &node)->set_int32_val(input->Take<int32_t>());
    Attribute("stream", &node)->set_int64_val(input->Take<int8_t>());
    if ((shape & 64) != 0) Attribute("start_ns", &node)->set_int64_val(input->Take<int64_t>());
    Append(node.SerializeAsString(), &file);
  }
  return file;
}

void Follow(collector::Result<collector::Trace> trace) {
  if (!trace) return;
  collector::Run run;
  run.traces.push_back(std::move(*trace));
  const collector::GraphGroups groups(run);
  (void)collector::BuildWorkGraph(run, run.traces.front(), groups, {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  fuzz::Input input(data, size);
  const auto mode = input.Take<uint8_t>();
  std::string text;
  if ((mode & 1) != 0) {
    text = Chakra(&input);
    if ((mode & 2) != 0) fuzz::EditText(&input, kWire, &text);
    Follow(collector::ImportChakra(file.Write(text)));
    return 0;
  }
  if ((mode & 2) != 0) {
    text = input.TakeText(size);
  } else {
    text = kSample;
    fuzz::EditText(&input, kWords, &text);
  }
  if ((mode & 4) != 0) text = fuzz::Compressed(text);
  Follow(collector::ImportExecutionTrace(file.Write(text)));
  return 0;
}
