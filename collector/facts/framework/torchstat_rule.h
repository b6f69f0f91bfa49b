// The counts of a layer by torchstat (github.com/Swall0w/torchstat, b52a3b0): its definition, not
// ours. Multiplications and additions apart, whatever the device fuses; memory is a number of
// values, of which inputs and parameters are read for each sample anew.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collector/facts/flops/op_inputs.h"

namespace ranktap::collector {

struct TorchStatCount {
  int64_t madd = 0;               // of one sample
  int64_t flops = 0;              // of the batch, a multiply-add as one
  int64_t read = 0, written = 0;  // values of the batch
};

// Counts the operator that a layer of one of its classes calls: Conv2d, BatchNorm2d, MaxPool2d,
// AvgPool2d, ReLU, ReLU6, PReLU, ELU, LeakyReLU, Softmax, Linear. nullopt for the other operators:
// torchstat counts 0.
std::optional<TorchStatCount> CountByTorchStat(std::string_view name, const OpInputs& in);

}  // namespace ranktap::collector
