// Chakra's execution traces, DIR/rank.R.et and DIR/comm_group.json: what the feeder (V3 too),
// jsonizer, visualizer and ASTRA-sim read.
#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>

#include "chakra/et_def.pb.h"
#include "collector/export/exporters.h"
#include "collector/export/graph/chakra_copy.h"
#include "collector/export/graph/chakra_text.h"
#include "collector/export/graph/work_graph.h"
#include "collector/export/json_text.h"
#include "collector/export/output_file.h"
#include "collector/export/run_clock.h"

namespace ranktap::collector {
namespace {

int64_t CommType(const std::string& collective) {
  constexpr std::pair<std::string_view, chakra::CollectiveCommType> kTypes[] = {
      {"allreduce", chakra::ALL_REDUCE},
      {"reduce", chakra::REDUCE},
      {"allgather", chakra::ALL_GATHER},
      {"gather", chakra::GATHER},
      {"scatter", chakra::SCATTER},
      {"broadcast", chakra::BROADCAST},
      {"alltoall", chakra::ALL_TO_ALL},
      {"barrier", chakra::BARRIER},
      {"reducescatter", chakra::REDUCE_SCATTER},
  };
  for (const auto& [name, type] : kTypes) {
    if (name == collective) return type;
  }
  return chakra::BARRIER;
}

void AddCommunication(const WorkNode& from, chakra::Node* node) {
  using Kind = WorkNode::Kind;
  if (from.kind == Kind::kCompute) return;
  node->set_type(from.kind == Kind::kSend      ? chakra::COMM_SEND_NODE
                 : from.kind == Kind::kReceive ? chakra::COMM_RECV_NODE
                                               : chakra::COMM_COLL_NODE);
  ChakraAttribute("comm_size", node)->set_int64_val(from.message);
  ChakraAttribute("comm_priority", node)->set_int32_val(0);
  ChakraAttribute("pg_name", node)->set_string_val(from.group);
  if (from.kind == Kind::kCollective) {
    ChakraAttribute("comm_type", node)->set_int64_val(CommType(from.collective));
    return;
  }
  ChakraAttribute("comm_src", node)->set_int32_val(from.source);
  ChakraAttribute("comm_dst", node)->set_int32_val(from.destination);
  ChakraAttribute("comm_tag", node)->set_int32_val(from.tag);
}

// The operator's attributes as torch says them.
void AddOperator(const Trace& trace, const WorkNode& from, chakra::Node* node) {
  if (from.op >= trace.operators.size()) return;
  const Operators& ops = trace.operators;
  const auto text = [&trace](uint32_t id) { return PythonText(trace.dictionary.String(id)); };
  node->mutable_inputs()->set_shapes(text(ops.shapes.At(from.op)));
  node->mutable_inputs()->set_types(text(ops.types.At(from.op)));
  node->mutable_inputs()->set_values(text(ops.values.At(from.op)));
  node->mutable_outputs()->set_shapes(text(ops.output_shapes.At(from.op)));
  node->mutable_outputs()->set_types(text(ops.output_types.At(from.op)));
  node->mutable_outputs()->set_values("[]");
  const auto number = [node](const char* name, int64_t value) {
    ChakraAttribute(name, node)->set_int64_val(value);
  };
  number("rf_id", static_cast<int64_t>(ops.record_function.At(from.op)));
  number("seq_id", static_cast<int64_t>(ops.sequence.At(from.op)) - 1);
  number("scope", ops.scope.At(from.op));
  number("fw_tid", ops.forward_thread.At(from.op));
}

chakra::Node Message(const Trace& trace, const WorkNode& from, uint64_t id) {
  chakra::Node node;
  node.set_id(id);
  node.set_name(SanitizedName(from.name));  // stock readers want UTF-8
  node.set_type(chakra::COMP_NODE);
  // Ids count from 1.
  for (const uint32_t on : from.control) node.add_ctrl_deps(uint64_t{on} + 1);
  for (const uint32_t on : from.data) node.add_data_deps(uint64_t{on} + 1);
  node.set_start_time_micros(static_cast<uint64_t>(from.start) / 1000);
  node.set_duration_micros(static_cast<uint64_t>(from.duration) / 1000);
  ChakraAttribute("is_cpu_op", &node)->set_bool_val(from.on_host);
  ChakraAttribute("num_ops", &node)->set_int64_val(from.flops);
  ChakraAttribute("tensor_size", &node)->set_uint64_val(from.bytes);
  ChakraAttribute("start_ns", &node)->set_int64_val(from.start);
  ChakraAttribute("duration_ns", &node)->set_int64_val(from.duration);
  if (from.on_host) ChakraAttribute("tid", &node)->set_int64_val(from.thread);
  if (from.stream >= 0) ChakraAttribute("stream", &node)->set_int64_val(from.stream);
  if (!from.phase.empty()) ChakraAttribute("phase", &node)->set_string_val(std::string(from.phase));
  if (!from.collective.empty()) {
    ChakraAttribute("collective_name", &node)->set_string_val(from.collective);
  }
  AddCommunication(from, &node);
  AddOperator(trace, from, &node);
  return node;
}

chakra::GlobalMetadata Metadata(const Run& run, const Trace& trace, const GraphGroups& groups) {
  chakra::GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  const auto add = [&metadata](const char* name) {
    chakra::AttributeProto* const attribute = metadata.add_attr();
    attribute->set_name(name);
    return attribute;
  };
  add("schema")->set_string_val("1.1.1-chakra.0.0.4");
  add("rank")->set_int64_val(trace.info.rank.value_or(0));
  add("world_size")
      ->set_int64_val(trace.info.world_size.value_or(static_cast<uint32_t>(run.traces.size())));
  add("pid")->set_uint64_val(trace.info.pid);
  add("start_realtime_ns")->set_int64_val(FirstRealtime(run));
  add("process_groups")->set_string_val(GroupsText(groups.WithWorld()));
  return metadata;
}

std::optional<Failure> WriteRank(const Run& run, const Trace& trace, const GraphGroups& groups,
                                 const ExportOptions& options, const std::string& path) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  WriteMessage(Metadata(run, trace, groups), &*file);
  const WorkGraph graph =
      BuildWorkGraph(run, trace, groups, options.Shifted(RealtimeOffset(run, trace)));
  uint64_t id = 0;
  for (const WorkNode& node : graph.nodes) WriteMessage(Message(trace, node, ++id), &*file);
  return file->Close();
}

std::optional<Failure> WriteGroups(const GraphGroups& groups, const std::string& path) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  file->Write(GroupsText(groups.ForSimulators()));
  return file->Close();
}

}  // namespace

std::optional<Failure> WriteChakra(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    return SystemFailure(fmt::format("{}: could not be created", path), errno);
  }
  const GraphGroups groups(run);
  std::set<uint32_t> ranks;
  uint32_t next = 0;
  for (const Trace* const trace : traces) {
    // Simulators want a file for each number from 0; a second process of a rank has the next free.
    uint32_t rank = trace->info.rank.value_or(next);
    while (!ranks.insert(rank).second) ++rank;
    next = std::max(next, rank + 1);
    const std::string file = fmt::format("{}/rank.{}.et", path, rank);
    auto failure = CanCopyChakra(*trace, options, file)
                       ? CopyChakra(*trace, options, file)
                       : WriteRank(run, *trace, groups, options, file);
    if (failure) return failure;
  }
  return WriteGroups(groups, path + "/comm_group.json");
}

}  // namespace ranktap::collector
