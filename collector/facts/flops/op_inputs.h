// The inputs of an operator, parsed from the texts that the model keeps. A part of op_flops.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ranktap::collector {

using Dims = std::vector<int64_t>;

struct OpInputs {
  std::vector<Dims> shapes;              // empty for what is no tensor
  std::vector<std::string_view> values;  // as text; empty for tensors

  // `shapes_text`: "[[8, 16], []]"; `values_text`: ["", "[1, 1]", "True"] with quotes, as
  // torch.profiler writes both. Total over any text.
  OpInputs(std::string_view shapes_text, std::string_view values_text);

  // nullptr: there is none, or with fewer dimensions.
  const Dims* Tensor(size_t index, size_t least_rank) const;
  // The shapes in a list of tensors; empty for another input.
  std::vector<Dims> Tensors(size_t index) const;
  Dims Integers(size_t index) const;
  std::vector<double> Reals(size_t index) const;
  bool Flag(size_t index, size_t element, bool otherwise) const;

 private:
  std::vector<std::string_view> lists_;  // by input: the text of a list of tensors
};

// All of them multiplied; 0 when one is negative or the product does not fit.
int64_t Product(const Dims& dims, size_t from = 0);

}  // namespace ranktap::collector
