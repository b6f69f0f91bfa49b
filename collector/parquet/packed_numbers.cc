#include "collector/parquet/packed_numbers.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "collector/parquet/thrift_compact.h"

namespace ranktap::collector {
namespace {

// A repetition shorter than this is cheaper among the packed values: they come in groups of 8.
constexpr size_t kGroup = 8;
// Values of a block, and of each miniblock that it is made of.
constexpr size_t kBlock = 128, kMiniblocks = 4, kMiniblock = kBlock / kMiniblocks;

// The least significant bit first; `bits` up to 64. The last byte is filled with zeros.
template <typename Value>
void AppendPacked(std::span<const Value> values, int bits, std::string* out) {
  if (bits == 0) return;
  const size_t begin = out->size();
  // Eight more: whole words are stored.
  out->resize(begin + (values.size() * static_cast<size_t>(bits) + 7) / 8 + 8);
  char* at = out->data() + begin;
  uint64_t word = 0;
  int filled = 0;
  for (const Value value : values) {
    word |= static_cast<uint64_t>(value) << filled;
    filled += bits;
    if (filled < 64) continue;
    std::memcpy(at, &word, 8);
    at += 8;
    filled -= 64;
    word = filled == 0 ? 0 : static_cast<uint64_t>(value) >> (bits - filled);
  }
  std::memcpy(at, &word, 8);
  out->resize(out->size() - 8);
}

size_t Repeats(std::span<const uint64_t> values) {
  size_t count = 1;
  while (count < values.size() && values[count] == values[0]) ++count;
  return count;
}

// `values` filled up with zeros to whole groups.
void AppendPackedRun(std::span<const uint64_t> values, int bits, std::string* out) {
  if (values.empty()) return;
  const size_t groups = (values.size() + kGroup - 1) / kGroup;
  AppendVarint(groups << 1 | 1, out);
  const size_t begin = out->size();
  AppendPacked(values, bits, out);
  out->resize(begin + groups * static_cast<size_t>(bits));
}

template <typename Unsigned, typename Signed>
void AppendBlock(std::span<const uint64_t> values, Unsigned before, std::string* out) {
  Unsigned deltas[kBlock] = {};
  Signed least = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<Unsigned>(values[i]);
    deltas[i] = value - before;
    before = value;
    const auto delta = static_cast<Signed>(deltas[i]);
    least = i == 0 ? delta : std::min(least, delta);
  }
  AppendZigzag(least, out);
  int bits[kMiniblocks] = {};
  for (size_t i = 0; i < values.size(); ++i) {
    deltas[i] -= static_cast<Unsigned>(least);
    bits[i / kMiniblock] = std::max(bits[i / kMiniblock], BitsOf(deltas[i]));
  }
  for (const int width : bits) out->push_back(static_cast<char>(width));
  for (size_t i = 0; i * kMiniblock < values.size(); ++i) {
    AppendPacked(std::span<const Unsigned>(deltas + i * kMiniblock, kMiniblock), bits[i], out);
  }
}

template <typename Unsigned, typename Signed>
void AppendDeltas(std::span<const uint64_t> values, std::string* out) {
  AppendVarint(kBlock, out);
  AppendVarint(kMiniblocks, out);
  AppendVarint(values.size(), out);
  AppendZigzag(values.empty() ? 0 : static_cast<Signed>(values[0]), out);
  for (size_t i = 1; i < values.size(); i += kBlock) {
    AppendBlock<Unsigned, Signed>(values.subspan(i, std::min(kBlock, values.size() - i)),
                                  static_cast<Unsigned>(values[i - 1]), out);
  }
}

}  // namespace

int BitsOf(uint64_t value) { return 64 - std::countl_zero(value); }

void AppendRuns(std::span<const uint64_t> values, int bits, std::string* out) {
  size_t packed = 0;  // values [packed, i) wait to be written packed
  for (size_t i = 0; i < values.size();) {
    const size_t repeats = Repeats(values.subspan(i));
    // Whole groups have to be packed before a repetition.
    const size_t fill = (kGroup - (i - packed) % kGroup) % kGroup;
    if (repeats < kGroup + fill) {
      i += repeats;
      continue;
    }
    AppendPackedRun(values.subspan(packed, i + fill - packed), bits, out);
    AppendVarint((repeats - fill) << 1, out);
    const uint64_t value = values[i];
    for (int byte = 0; byte < (bits + 7) / 8; ++byte) {
      out->push_back(static_cast<char>(value >> 8 * byte));
    }
    i += repeats;
    packed = i;
  }
  AppendPackedRun(values.subspan(packed), bits, out);
}

void AppendDeltas64(std::span<const uint64_t> values, std::string* out) {
  AppendDeltas<uint64_t, int64_t>(values, out);
}

void AppendDeltas32(std::span<const uint64_t> values, std::string* out) {
  AppendDeltas<uint32_t, int32_t>(values, out);
}

}  // namespace ranktap::collector
