// Products of tiles in a processor's matrix unit (AMX): bf16 and int8.
#pragma once

#include <cstdint>

namespace ranktap::collector {

// The processor has the unit, and the kernel lets this process use it: asked once, for all threads.
bool MayUseMatrixUnit();

inline constexpr double kMatrixTiles =
    6;  // chains; a product takes some 52 cycles, one begins each 16
inline constexpr double kBf16OfProduct = 16 * 16 * 32 * 2, kInt8OfProduct = 16 * 16 * 64 * 2;

// The element of one chain at the end, of products of 1 and -1. Of a process that may use the unit.
double Bf16OfTiles(uint64_t rounds);
double Int8OfTiles(uint64_t rounds);

}  // namespace ranktap::collector
