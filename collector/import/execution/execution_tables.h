// Nodes of an execution trace, whatever file they stood in -> rows of a Trace's tables.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct ExecutionTensor {
  bool is_output = false;
  uint8_t place = 0;
  uint16_t element = 0;
  uint64_t tensor = 0, storage = 0;
};

struct ExecutionNode {
  uint64_t id = 0, parent = 0;
  std::string name;
  bool on_device = false;
  bool is_call = false;  // of the CUDA runtime, on the host
  std::optional<int64_t> start_ns;
  int64_t duration_ns = 0;
  uint64_t thread = 0, record_function = 0, forward_thread = 0, scope = 0;
  int64_t sequence = -1, stream = 0;
  uint64_t bytes = 0;  // of copies and memsets
  // As torch.profiler writes them; empty where the node has none.
  std::string shapes, strides, types, values, output_shapes, output_types;
  std::vector<ExecutionTensor> tensors;
  std::optional<Collective> collective;
};

// One thread.
class ExecutionTables {
 public:
  explicit ExecutionTables(Trace* trace) : trace_(trace) {}

  void Add(ExecutionNode node) { nodes_.push_back(std::move(node)); }
  size_t size() const { return nodes_.size(); }
  // Fills the trace. Nodes of a file without times stand in the order of their ids, a node inside
  // its parent, device work behind its launch; each without a duration lasts 1 us. True: so it was.
  bool Finish();

 private:
  void LayOut();
  void AddOperator(const ExecutionNode& node);
  void AddCall(const ExecutionNode& node);
  void AddWork(const ExecutionNode& node);
  void AddTensors();
  uint32_t TextOf(const std::string& text);
  uint16_t WriterOf(uint64_t thread);
  uint32_t CollectiveOf(const ExecutionNode& node);

  Trace* trace_;
  std::vector<ExecutionNode> nodes_;
  std::unordered_map<std::string, uint32_t> texts_, apis_;
  std::unordered_map<uint64_t, uint16_t> writers_;
  std::map<int64_t, uint32_t> lanes_;  // by stream
};

// "[pytorch|profiler|execution_trace|thread]" and "...|process]": no work of anybody.
bool IsExecutionRoot(const std::string& name);
inline constexpr const char* kGroupsNode = "## process_group:init ##";
// The process groups in a text that torch wrote as JSON, both of its dialects.
void AddExecutionGroups(const std::string& json, Trace* trace);
// "host.3.json", "run.3.et": the number before the endings.
std::optional<uint32_t> NumberBeforeEnding(const std::string& path);

}  // namespace ranktap::collector
