// Calls record_param_comms as NCCL's process group does, which needs no GPU for it. Built against
// PyTorch's headers by test_execution_collectives.py.
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

namespace {

using Tensors = std::vector<at::Tensor>;
using Sizes = std::vector<int64_t>;

struct Call {
  const char* name;
  int64_t in, out;
  Sizes in_split, out_split;
};

template <typename Inputs, typename Outputs>
void Record(const Call& call, const Inputs& inputs, const Outputs& outputs, at::ScalarType type,
            int rank, int ranks) {
  static int64_t sequence = 0;
  const auto group = std::make_tuple(std::string("0"), std::string("default_pg"));
  const auto number = std::make_tuple(++sequence, false);
  RECORD_PARAM_COMMS_DATA(number, group, inputs, outputs, rank, std::string(call.name), call.in,
                          call.out, type, call.in_split, call.out_split, 0, 1, ranks)
}

}  // namespace

extern "C" void RecordCollectives(int rank, int ranks) {
  const auto make = [](at::IntArrayRef sizes, at::ScalarType type) {
    return at::ones(sizes, at::TensorOptions(type));
  };
  const at::Tensor one = make({4, 3}, at::kFloat);
  const Tensors part = {one}, many(static_cast<size_t>(ranks), one);
  Record({"allreduce", 12, 12, {}, {}}, part, part, at::kFloat, rank, ranks);
  Record({"all_gather", 12, 12 * ranks, {}, {}}, part, std::vector<Tensors>{many}, at::kFloat, rank,
         ranks);
  Record({"reduce_scatter", 12 * ranks, 12, {}, {}}, std::vector<Tensors>{many}, part, at::kFloat,
         rank, ranks);
  // Of all ranks but the root's one side is empty.
  const auto of_root = rank == 0 ? std::vector<Tensors>{many} : std::vector<Tensors>{};
  Record({"gather", 12, 12 * ranks, {}, {}}, part, of_root, at::kFloat, rank, ranks);
  Record({"scatter", 12 * ranks, 12, {}, {}}, of_root, part, at::kFloat, rank, ranks);
  const at::Tensor from = make({5}, at::kBFloat16), to = make({3}, at::kBFloat16);
  Record({"all_to_allv", 5, 3, {2, 3}, {1, 2}}, from, to, at::kBFloat16, rank, ranks);
  const Tensors numbers = {make({2, 8}, at::kLong)};
  Record({"send", 16, 16, {}, {}}, numbers, numbers, at::kLong, rank, ranks);
  const Sizes none;
  const auto group = std::make_tuple(std::string("0"), std::string("default_pg"));
  RECORD_PARAM_COMMS(std::make_tuple(int64_t{9}, false), group, rank, std::string("barrier"), 0, 0,
                     at::kByte, none, none, 0, 1, ranks);
}
