// The loops that calibrate runs: chains of multiply-adds that wait for nothing, and STREAM's triad.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ranktap::collector {

struct ArithmeticKernel {
  std::string_view type, instruction;
  double operations_a_round;  // a multiply-add is two
  double (*run)(uint64_t rounds);
  // What `run` returns after so many rounds, of 1s and -1s; 0: it ends at its fixed point instead.
  double first = 0, a_round = 0;
};
// All that this processor has, the widest of each type first.
std::span<const ArithmeticKernel> EveryArithmeticKernel();
// The first of each type.
std::span<const ArithmeticKernel> ArithmeticKernels();

// a[i] = b[i] + 0.5 * c[i], `rounds` times; `count` is a multiple of 64, arrays begin at 64 bytes.
void Triad(float* a, const float* b, const float* c, uint64_t count, uint64_t rounds);

}  // namespace ranktap::collector
