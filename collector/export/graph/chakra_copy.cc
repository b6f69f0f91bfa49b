#include "collector/export/graph/chakra_copy.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/export/graph/chakra_text.h"
#include "collector/export/output_file.h"
#include "collector/file/read_run_info.h"
#include "collector/import/execution/chakra_file.h"
#include "collector/import/importers.h"

namespace ranktap::collector {
namespace {

using Ids = google::protobuf::RepeatedField<uint64_t>;

bool Communicates(const chakra::Node& node) {
  return node.type() == chakra::COMM_COLL_NODE || node.type() == chakra::COMM_SEND_NODE ||
         node.type() == chakra::COMM_RECV_NODE;
}

class Copy {
 public:
  explicit Copy(std::vector<chakra::Node> nodes) : nodes_(std::move(nodes)) {
    for (size_t i = 0; i < nodes_.size(); ++i) index_.emplace(nodes_[i].id(), i);
    for (const chakra::Node& node : nodes_) {
      if (Stays(node)) numbers_.emplace(node.id(), numbers_.size() + 1);
    }
  }

  void Write(OutputFile* file) {
    for (const chakra::Node& from : nodes_) {
      if (!Stays(from)) continue;
      chakra::Node node = from;
      node.set_id(numbers_.at(from.id()));
      *node.mutable_ctrl_deps() = Resolved(from.ctrl_deps(), from.id());
      *node.mutable_data_deps() = Resolved(from.data_deps(), from.id());
      Mend(&node);
      WriteMessage(node, file);
    }
  }

 private:
  static bool Stays(const chakra::Node& node) { return node.type() != chakra::METADATA_NODE; }
  Ids Resolved(const Ids& from, uint64_t self) const {
    Ids ids;
    std::vector<uint64_t> seen = {self};
    const std::function<void(const Ids&)> add = [&](const Ids& list) {
      for (const uint64_t id : list) {
        const auto at = index_.find(id);
        if (at == index_.end() || std::ranges::find(seen, id) != seen.end()) continue;
        seen.push_back(id);
        const chakra::Node& node = nodes_[at->second];
        if (Stays(node)) {
          ids.Add(numbers_.at(id));
        } else {
          add(&list == &from ? node.data_deps() : Ids());
          add(&list == &from ? node.ctrl_deps() : Ids());
        }
      }
    };
    add(from);
    return ids;
  }
  static void Mend(chakra::Node* node) {
    const bool sends = node->type() == chakra::COMM_SEND_NODE;
    const bool receives = node->type() == chakra::COMM_RECV_NODE;
    if ((sends && FindChakraAttribute(*node, "comm_dst") == nullptr) ||
        (receives && FindChakraAttribute(*node, "comm_src") == nullptr)) {
      node->set_type(chakra::COMP_NODE);
    }
    if (FindChakraAttribute(*node, "is_cpu_op") == nullptr) {
      ChakraAttribute("is_cpu_op", node)
          ->set_bool_val(!Communicates(*node) && FindChakraAttribute(*node, "stream") == nullptr);
    }
  }

  std::vector<chakra::Node> nodes_;
  std::unordered_map<uint64_t, size_t> index_;
  std::unordered_map<uint64_t, uint64_t> numbers_;
};

}  // namespace

namespace {

// False: rows were taken from it, for --steps.
bool HasEveryRow(const Trace& trace) {
  return trace.events == trace.operators.size() + trace.api_calls.size() + trace.kernels.size() +
                             trace.copies.size() + trace.memsets.size();
}

// Metadata of any writer, without values that look like credentials.
chakra::GlobalMetadata Shareable(chakra::GlobalMetadata metadata, std::set<std::string>* names) {
  for (chakra::AttributeProto& attribute : *metadata.mutable_attr()) {
    if (names != nullptr) names->insert(attribute.name());
    if (attribute.has_string_val()) {
      RedactValue(attribute.name(), attribute.mutable_string_val());
    }
  }
  return metadata;
}

}  // namespace

bool CanCopyChakra(const Trace& trace, const ExportOptions& options, const std::string& path) {
  std::error_code error;
  const bool is_whole = options.from == std::numeric_limits<int64_t>::min() &&
                        options.to == std::numeric_limits<int64_t>::max() &&
                        options.min_duration == 0;
  return trace.origin == TraceOrigin::kChakra && trace.damage.empty() && is_whole &&
         HasEveryRow(trace) && !std::filesystem::equivalent(trace.path, path, error) &&
         ChakraFile::Open(trace.path);
}

std::optional<Failure> CopyChakra(const Trace& trace, const ExportOptions& options,
                                  const std::string& path) {
  Result<ChakraFile> source = ChakraFile::Open(trace.path);
  if (!source) return Failure{source.message()};
  std::vector<chakra::Node> nodes;
  for (chakra::Node node; source->Next(&node);) nodes.push_back(node);
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  WriteMessage(Shareable(source->metadata(), options.handed_on), &*file);
  Copy(std::move(nodes)).Write(&*file);
  return file->Close();
}

}  // namespace ranktap::collector
