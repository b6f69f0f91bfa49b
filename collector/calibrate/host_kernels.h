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
};
// The widest of each type that this processor has.
std::span<const ArithmeticKernel> ArithmeticKernels();

// a[i] = b[i] + 0.5 * c[i], `rounds` times; `count` is a multiple of 64, arrays begin at 64 bytes.
void Triad(float* a, const float* b, const float* c, uint64_t count, uint64_t rounds);

// Its matrix unit (AMX) multiplies bf16 and int8 faster than any kernel here.
bool HasMatrixUnit();

}  // namespace ranktap::collector
