// Runs on: any thread of the agent or the collector.  May not: allocate.
#include "proto/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>

#include <atomic>
#endif

namespace ranktap::proto {
namespace {

constexpr uint32_t kReflectedPolynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? kReflectedPolynomial : 0);
    }
    table[i] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t ByTable(const std::byte* data, size_t size, uint32_t crc) {
  for (size_t i = 0; i < size; ++i) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint32_t>(data[i])) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)
// One instruction has a latency of 3 cycles and a throughput of 1, so that three parts of the bytes
// are summed beside each other.
constexpr size_t kPart = 1024;

// The checksum of bytes with kPart zeros behind them is the sum of what each of its bytes becomes.
constexpr std::array<std::array<uint32_t, 256>, 4> MakeZerosBehind() {
  std::array<std::array<uint32_t, 256>, 4> behind{};
  for (uint32_t bit = 0; bit < 32; ++bit) {
    uint32_t value = uint32_t{1} << bit;
    for (size_t i = 0; i < kPart; ++i) value = (value >> 8) ^ kTable[value & 0xff];
    std::array<uint32_t, 256>& of_byte = behind[bit / 8];
    const uint32_t own = uint32_t{1} << bit % 8;
    for (uint32_t i = 0; i < 256; ++i) of_byte[i] ^= (i & own) != 0 ? value : 0;
  }
  return behind;
}
constexpr std::array<std::array<uint32_t, 256>, 4> kZerosBehind = MakeZerosBehind();

uint32_t PutZerosBehind(uint32_t crc) {
  return kZerosBehind[0][crc & 0xff] ^ kZerosBehind[1][crc >> 8 & 0xff] ^
         kZerosBehind[2][crc >> 16 & 0xff] ^ kZerosBehind[3][crc >> 24];
}

__attribute__((target("sse4.2"))) uint32_t ByInstruction(const std::byte* data, size_t size,
                                                         uint32_t crc) {
  uint64_t wide = crc;
  for (; size >= 3 * kPart; data += 3 * kPart, size -= 3 * kPart) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kPart; i += 8) {
      uint64_t words[3];
      for (size_t part = 0; part < 3; ++part) {
        std::memcpy(&words[part], data + part * kPart + i, sizeof(words[part]));
      }
      wide = _mm_crc32_u64(wide, words[0]);
      second = _mm_crc32_u64(second, words[1]);
      third = _mm_crc32_u64(third, words[2]);
    }
    wide = PutZerosBehind(static_cast<uint32_t>(wide)) ^ second;
    wide = PutZerosBehind(static_cast<uint32_t>(wide)) ^ third;
  }
  while (size >= 8) {
    uint64_t word;
    std::memcpy(&word, data, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
    data += 8;
    size -= 8;
  }
  uint32_t narrow = static_cast<uint32_t>(wide);
  while (size > 0) {
    narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(*data));
    ++data;
    --size;
  }
  return narrow;
}
#endif

#if defined(__x86_64__)
// Asked at the first checksum. Not __builtin_cpu_supports: that puts a constructor into the
// library, whose thirty CPUID instructions took 60 us in every process of a virtual machine.
bool HasInstruction() {
  static constinit std::atomic<int> known{-1};
  int has = known.load(std::memory_order_relaxed);
  if (has < 0) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    has = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_SSE4_2) != 0;
    known.store(has, std::memory_order_relaxed);
  }
  return has != 0;
}
#endif

}  // namespace

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc) {
#if defined(__x86_64__)
  if (HasInstruction()) return ~ByInstruction(bytes.data(), bytes.size(), ~crc);
#endif
  return ~ByTable(bytes.data(), bytes.size(), ~crc);
}

}  // namespace ranktap::proto
