// Chakra's .et files: of chakra_converter, of other people's exporters, and our own.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "collector/file/json.h"
#include "collector/import/execution/chakra_file.h"
#include "collector/import/execution/execution_tables.h"
#include "collector/import/finish_trace.h"
#include "collector/import/importers.h"
#include "collector/trace/file_notes.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

// How torch calls them, by CollectiveCommType.
constexpr const char* kCollectives[] = {"allreduce",     "reduce",    "allgather", "gather",
                                        "scatter",       "broadcast", "alltoall",  "reducescatter",
                                        "reducescatter", "barrier"};

// "['Tensor(float)']" as a list of JSON.
std::string JsonOfPython(std::string text) {
  std::ranges::replace(text, '\'', '"');
  return IsJson(text) ? text : std::string();
}

Collective CollectiveOf(const chakra::Node& node) {
  Collective comm;
  const int64_t type = ChakraNumber(node, "comm_type", -1);
  comm.name = node.type() == chakra::COMM_SEND_NODE   ? "send"
              : node.type() == chakra::COMM_RECV_NODE ? "recv"
              : type >= 0 && type < static_cast<int64_t>(std::size(kCollectives))
                  ? kCollectives[type]
                  : "collective";
  comm.dtype = "Byte";
  comm.group = ChakraText(node, "pg_name");
  comm.in_elements = comm.out_elements =
      static_cast<uint64_t>(std::max<int64_t>(ChakraNumber(node, "comm_size"), 0));
  if (node.type() == chakra::COMM_RECV_NODE) {
    comm.source_rank = static_cast<int32_t>(ChakraNumber(node, "comm_src", -1));
  }
  if (node.type() == chakra::COMM_SEND_NODE) {
    comm.destination_rank = static_cast<int32_t>(ChakraNumber(node, "comm_dst", -1));
  }
  return comm;
}

bool Communicates(const chakra::Node& node) {
  return node.type() == chakra::COMM_COLL_NODE || node.type() == chakra::COMM_SEND_NODE ||
         node.type() == chakra::COMM_RECV_NODE;
}

ExecutionNode NodeOf(const chakra::Node& from) {
  ExecutionNode node;
  node.id = from.id();
  node.name = from.name();
  // In files of the stock converter the control parent; our own and others' as well.
  node.parent = from.ctrl_deps_size() > 0   ? from.ctrl_deps(0)
                : from.data_deps_size() > 0 ? from.data_deps(0)
                                            : 0;
  const bool on_host = from.name().starts_with("gloo:");
  node.on_device = !on_host && ChakraNumber(from, "is_cpu_op", Communicates(from) ? 0 : 1) == 0;
  node.is_call = !node.on_device && from.name().starts_with("cuda");
  node.start_ns = ChakraNumber(
      from, "start_ns",
      static_cast<int64_t>(std::min<uint64_t>(from.start_time_micros(), 1ULL << 52)) * 1000);
  node.duration_ns = ChakraNumber(
      from, "duration_ns",
      static_cast<int64_t>(std::min<uint64_t>(from.duration_micros(), 1ULL << 52)) * 1000);
  node.start_ns = std::clamp<int64_t>(*node.start_ns, 0, int64_t{1} << 61);
  node.stream = std::max<int64_t>(ChakraNumber(from, "stream"), 0);
  node.record_function = static_cast<uint64_t>(ChakraNumber(from, "rf_id"));
  node.thread = static_cast<uint64_t>(ChakraNumber(from, "tid", 1));
  node.sequence = ChakraNumber(from, "seq_id", -1);
  node.scope = static_cast<uint64_t>(ChakraNumber(from, "scope"));
  if (node.name.starts_with("Mem")) {
    node.bytes = static_cast<uint64_t>(std::max<int64_t>(ChakraNumber(from, "tensor_size"), 0));
  }
  node.shapes = JsonOfPython(from.inputs().shapes());
  node.output_shapes = JsonOfPython(from.outputs().shapes());
  if (Communicates(from)) node.collective = CollectiveOf(from);
  return node;
}

// What lies beside it: "rank.comm_group.json" of "rank.0.et", or "comm_group.json".
void ReadGroupsBeside(const std::string& path, Trace* trace) {
  const fs::path folder = fs::path(path).parent_path();
  const std::string name = fs::path(path).filename().string();
  const std::string prefix = name.substr(0, name.find('.'));
  for (const std::string& candidate :
       {prefix + ".comm_group.json", std::string("comm_group.json")}) {
    Result<ByteSource> source = ByteSource::Open((folder / candidate).string());
    if (!source) continue;
    std::string text(1 << 20, '\0');
    text.resize(source->Read(text.data(), text.size()));
    const Json groups = ParseJson(text);
    if (!groups.is_object()) continue;
    for (const auto& [key, ranks] : groups.items()) {
      ProcessGroup group;
      group.name = key;
      for (size_t i = 0; ranks.is_array() && i < ranks.size(); ++i) {
        if (ranks[i].is_number_unsigned()) group.ranks.push_back(ranks[i].get<uint32_t>());
      }
      group.size = static_cast<uint32_t>(group.ranks.size());
      trace->process_groups.push_back(std::move(group));
    }
    return;
  }
}

// All ones: it is cut off, or longer than 5 bytes.
uint64_t TakeVarint(std::string_view bytes, size_t* at) {
  uint64_t value = 0;
  for (unsigned shift = 0; *at < bytes.size() && shift < 35; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[(*at)++]);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return ~uint64_t{0};
}

// A size, then a number and a name of some length.
bool LooksLikeChakraNode(std::string_view head) {
  constexpr char kId = 0x08, kName = 0x12;
  constexpr uint64_t kLeastName = 4, kMostBytes = 1 << 20;
  size_t at = 0;
  const uint64_t size = TakeVarint(head, &at);
  if (size > kMostBytes || at >= head.size() || head[at++] != kId) return false;
  if (TakeVarint(head, &at) == ~uint64_t{0} || at >= head.size() || head[at++] != kName) {
    return false;
  }
  const uint64_t length = TakeVarint(head, &at);
  if (length < kLeastName || length >= size) return false;
  const std::string_view name = head.substr(std::min(at, head.size()), length);
  return name.size() >= kLeastName &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isprint(c) != 0; });
}

}  // namespace

Result<Trace> ImportChakra(const std::string& path) {
  Result<ChakraFile> file = ChakraFile::Open(path);
  if (!file) return Failure{file.message()};
  Trace trace;
  trace.path = path;
  trace.origin = TraceOrigin::kChakra;
  trace.info.rank = NumberBeforeEnding(path);
  if (trace.info.rank) trace.info.rank_origin = "file name";
  for (const chakra::AttributeProto& attribute : file->metadata().attr()) {
    const auto number = static_cast<uint32_t>(ChakraNumber(attribute));
    if (attribute.name() == "world_size") trace.info.world_size = number;
    if (attribute.name() == "pid") trace.info.pid = number;
    if (attribute.name() != "rank") continue;
    trace.info.rank = number;
    trace.info.rank_origin = "its metadata";
  }
  ExecutionTables tables(&trace);
  chakra::Node node;
  while (file->Next(&node)) {
    const std::string& values = node.inputs().values();
    if (node.type() == chakra::METADATA_NODE && values.size() > 4) {
      AddExecutionGroups(values.substr(2, values.size() - 4), &trace);
    } else {
      tables.Add(NodeOf(node));
    }
  }
  if (!file->damage().what.empty()) trace.damage.push_back(file->damage());
  if (tables.size() == 0 && !trace.damage.empty()) {
    return Failure{fmt::format("{}: no node in it can be read (at byte {}: {})", path,
                               trace.damage[0].offset, trace.damage[0].what)};
  }
  if (!file->has_metadata()) {
    trace.info.notes.push_back(
        "it begins with a node and not with GlobalMetadata, which Chakra's own readers want: "
        "ranktap export --format chakra writes one");
  }
  ReadGroupsBeside(path, &trace);
  if (tables.Finish()) {
    trace.info.notes.emplace_back(kNodesWithoutStart);
  }
  CloseTrace("Chakra", file->file_bytes(), &trace);
  return trace;
}

// A size, then GlobalMetadata: a version, an attribute with a name, or both; or nothing, or a node.
bool LooksLikeChakra(std::string_view head) {
  if (LooksLikeChakraNode(head.starts_with('\0') ? head.substr(1) : head)) return true;
  size_t at = 0;
  const auto varint = [&] { return TakeVarint(head, &at); };
  // Each of what a name or a version is made of, as far as the head goes.
  const auto text = [&](uint64_t size) {
    if (size > head.size()) size = head.size() > at ? head.size() - at : 0;
    const std::string_view part = head.substr(at, size);
    at += part.size();
    return !part.empty() && std::ranges::all_of(part, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == '+';
    });
  };
  constexpr char kVersion = 0x0a, kAttribute = 0x12, kName = 0x0a;
  const uint64_t size = varint();
  if (size == 0 || size > 1 << 20 || at >= head.size()) return false;
  if (head[at] == kVersion) {
    ++at;
    const uint64_t length = varint();
    if (length >= size || !text(length)) return false;
    if (at >= head.size() || length + 2 == size) return true;
  }
  if (at + 2 >= head.size() || head[at++] != kAttribute) return false;
  if (varint() > size || at >= head.size() || head[at++] != kName) return false;
  return text(varint());
}

}  // namespace ranktap::collector
