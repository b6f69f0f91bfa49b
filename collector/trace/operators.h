// A framework's own records: operators, Python calls, autograd arrows, allocations, and the
// collectives and process groups that its communication belongs to. Filled by the importers of
// torch.profiler's files and by the loader of our own captures; read like the rest of model.h.
//
// Texts (shapes, dtypes, stacks, ...) are Dictionary::String ids of JSON as torch.profiler writes
// it, "[[8, 16], []]": equal texts have equal ids, so that grouping compares numbers.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "collector/trace/column.h"
#include "collector/trace/packed_column.h"

namespace ranktap::collector {

inline constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// Values of `Operators::scope` (at::RecordScope).
inline constexpr uint8_t kFunctionScope = 0, kBackwardScope = 1, kUserScope = 7;

template <typename T>
class OptionalColumn : public Column<T> {
 public:
  T At(size_t i) const { return i < this->size() ? (*this)[i] : T{}; }
};

enum class OperatorKind : uint8_t {
  kOperator,    // aten::mm, autograd nodes, c10d::allreduce_: Kineto's cpu_op
  kAnnotation,  // record_function and ProfilerStep#N: Kineto's user_annotation
};

// Operators and annotations on host threads, by start, of equal starts the longer first.
struct Operators {
  TimeColumn start, end;
  Column<uint32_t> name;    // Dictionary::String
  Column<uint16_t> writer;  // index into Trace::writers: the thread
  Column<uint8_t> kind;     // OperatorKind
  // Row of the operator of the same thread directly around this one; kNone: none. NestOperators().
  Column<uint32_t> parent;
  // What launches and device work name to say who caused them: torch's correlation id ("External
  // id"). Unique within a trace. 0: none.
  OptionalColumn<uint32_t> external_id;
  OptionalColumn<uint64_t> record_function;  // RecordFunction::handle(), as in an execution trace
  // 1 + autograd sequence number. A backward operator has that of the forward one which made it.
  OptionalColumn<uint64_t> sequence;
  OptionalColumn<uint32_t> forward_thread;  // torch's logical id of the forward operator's thread
  OptionalColumn<uint8_t> scope;            // at::RecordScope; 1: a node of the backward pass
  OptionalColumn<uint32_t> shapes, strides, types, values;  // of the inputs
  OptionalColumn<uint32_t> stack;             // Python, innermost first, ';' between the frames
  OptionalColumn<uint32_t> module_hierarchy;  // TorchScript only
  OptionalColumn<uint32_t> collective;        // 1 + index into Trace::collectives
  OptionalColumn<uint32_t> stream;  // 1 + CUDA stream, where an operator names one (Triton)
  OptionalColumn<uint64_t> flops;   // by torch's own formulas
  OptionalColumn<uint32_t> output_shapes, output_types;  // as those of the inputs
  size_t size() const { return start.size(); }
};

// A tensor that an operator took as it started, or returned as it ended; by time, of equal times as
// they were said.
struct TensorUse {
  int64_t time = 0;
  uint32_t op = 0;       // row of Operators
  uint8_t place = 0;     // among the inputs or outputs
  uint16_t element = 0;  // in a list
  bool is_output = false;
  uint64_t tensor = 0;  // address of the c10::TensorImpl: whose it is changes with time
  uint64_t memory = 0;  // where its storage's memory begins
};

// Calls of Python functions and torch.nn.Module.__call__ (with_stack=True).
struct PythonCalls {
  TimeColumn start, end;
  Column<uint32_t> name;  // "train.py(12): step", "nn.Module: Linear_0", "<built-in function ...>"
  Column<uint16_t> writer;
  OptionalColumn<uint32_t> id, parent_id;  // torch's "Python id", 1 more than written; 0: none
  OptionalColumn<uint32_t> module_id;
  // Dictionary::String, "Bert_0.Encoder_0.Linear_3": of a module's call, with those around it.
  OptionalColumn<uint32_t> module_path;
  size_t size() const { return start.size(); }
};

enum class FlowKind : uint8_t { kForwardBackward, kOther };

// Arrows between threads. Those from a launch to its work are not here: DeviceWork::launch is.
struct Flows {
  TimeColumn start, end;
  Column<uint16_t> from_writer, to_writer;
  Column<uint64_t> id;
  Column<uint8_t> kind;
  size_t size() const { return start.size(); }
};

// Annotations on streams (Kineto's gpu_user_annotation): the span of the work launched inside one.
struct DeviceAnnotations {
  TimeColumn start, end;
  Column<uint32_t> name;
  Column<uint32_t> lane;
  OptionalColumn<uint32_t> external_id;
  // 1: the file names a thread for it and no stream, which HTA takes for an event of the host.
  OptionalColumn<uint8_t> stream_unsaid;
  size_t size() const { return start.size(); }
};

// The purpose of a tensor, in the order in which torch's memory timelines number it.
enum class MemoryCategory : uint8_t {
  kParameter,
  kOptimizerState,
  kInput,
  kTemporary,
  kActivation,
  kGradient,
  kAutogradDetail,
  kUnknown,
};

// The allocations of the framework's allocator (profile_memory=True, memory timelines and
// snapshots); `end` equals `start`.
struct Allocations {
  TimeColumn start, end;
  Column<uint16_t> writer;
  Column<int64_t> bytes;  // negative: given back
  OptionalColumn<uint64_t> address;
  OptionalColumn<uint8_t> device_type;           // c10::DeviceType: 0 CPU, 1 CUDA
  OptionalColumn<uint8_t> device;                // 1 + index; 0: none
  OptionalColumn<uint64_t> allocated, reserved;  // of the device, after it
  OptionalColumn<uint8_t> category;              // 1 + MemoryCategory
  OptionalColumn<uint8_t> relabelled;  // 1: bytes changed their category, none were allocated
  OptionalColumn<uint32_t> stack;      // Python and C++, innermost first, ';' between the frames
  // Dictionary::String: what a parameter, buffer, gradient or state is called, else the module that
  // was open.
  OptionalColumn<uint32_t> owner;
  size_t size() const { return start.size(); }
};

// Samples of counters; `end` equals `start`.
struct CounterSamples {
  TimeColumn start, end;
  Column<uint32_t> name;    // Dictionary::String
  Column<uint32_t> device;  // kNone: of the host
  Column<double> value;
  size_t size() const { return start.size(); }
};

// One collective or point-to-point call, as torch.distributed describes it on operators and NCCL
// kernels. Equal descriptions are kept once.
struct Collective {
  std::string name;   // "allreduce", "_allgather_base", "send"
  std::string dtype;  // "Float"
  std::string group, group_description, group_ranks;
  std::string in_split, out_split;
  uint64_t in_elements = 0, out_elements = 0;
  uint32_t group_size = 0;
  int32_t source_rank = -1, destination_rank = -1;
  uint64_t sequence = 0;     // 1 + number of the call in its group
  std::string communicator;  // "Comms Id"
  bool operator==(const Collective&) const = default;
};

struct ProcessGroup {
  std::string name, description, backend;
  uint32_t size = 0;
  std::vector<uint32_t> ranks;
};

}  // namespace ranktap::collector
