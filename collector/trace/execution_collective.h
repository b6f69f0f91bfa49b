// The fields that PyTorch's ExecutionTraceObserver adds to a node of record_param_comms, the record
// function around each call of NCCL's process group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/trace/execution_trace.h"

namespace ranktap::collector {

inline constexpr std::string_view kRecordedCollective = "record_param_comms";

// The members' names are those of PyTorch's attributes.
struct ExecutionCollective {
  std::string collective_name, dtype;              // dtype as c10::toString(): "Float"
  uint64_t in_msg_nelems = 0, out_msg_nelems = 0;  // of this rank
  std::vector<int64_t> in_split_size, out_split_size;
  int64_t global_rank_start = 0, global_rank_stride = 0;
  std::string pg_name, pg_desc;
  int64_t pg_size = 0;
  std::optional<bool> is_asynchronized_op;  // since PyTorch 2.8
};

// From what the record function took and returned; nothing: these are not its values. Elements are
// those of the tensors, as NCCL's process group counts them too.
std::optional<ExecutionCollective> ReadCollective(const std::vector<TraceValue>& inputs,
                                                  const std::vector<TraceValue>& outputs);

// c10::toString()'s name of a type, "Float", by caffe2::TypeMeta's, "float".
std::string NameOfDtype(std::string_view type);

}  // namespace ranktap::collector
