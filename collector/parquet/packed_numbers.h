// Parquet's encodings of whole numbers. Each appends to `out`.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ranktap::collector {

// Bits that `value` needs; 0 of 0.
int BitsOf(uint64_t value);

// RLE / bit-packing hybrid: definition levels, and indices into a dictionary. `bits`: 1 to 32.
void AppendRuns(std::span<const uint64_t> values, int bits, std::string* out);

// DELTA_BINARY_PACKED, of INT64 or of INT32: differences wrap around in that width, which a reader
// undoes by wrapping too.
void AppendDeltas64(std::span<const uint64_t> values, std::string* out);
void AppendDeltas32(std::span<const uint64_t> values, std::string* out);

}  // namespace ranktap::collector
