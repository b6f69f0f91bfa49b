// Runs on: any thread of the agent or the collector.  May not: allocate.
#include "proto/varint.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include <atomic>
#endif

namespace ranktap::proto {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kPiece = kVarintsAtOnce, kWord = sizeof(uint64_t);

// Bit i is set where byte i of the piece is the last of a varint.
uint64_t EndsIn(const std::byte* piece) {
  uint64_t ends = 0;
  for (size_t i = 0; i < kPiece; i += kWord) {
    uint64_t word;
    std::memcpy(&word, piece + i, kWord);
    // The high bits of eight bytes, side by side.
    const uint64_t last = ~word >> 7 & 0x0101010101010101;
    ends |= (last * 0x0102040810204080 >> 56) << i;
  }
  return ends;
}

// What is left of four bytes when a varint ends after the first, the second, ...
constexpr uint32_t kOwnBits[] = {0, 0x7f, 0x7fff, 0x7fffff, 0x7fffffff};

// The varints that end where `ends` says, from `at` on; `*in` as ReadVarints leaves it.
using ReadPiece = size_t(const std::byte* at, uint64_t ends, const std::byte** in,
                         const std::byte* end, uint64_t (&values)[kVarintsAtOnce]);

size_t ByShifts(const std::byte* at, uint64_t ends, const std::byte** in, const std::byte* end,
                uint64_t (&values)[kVarintsAtOnce]) {
  size_t count = 0, from = 0;
  for (; ends != 0; ends &= ends - 1) {
    const auto to = static_cast<size_t>(std::countr_zero(ends)) + 1;
    if (to - from <= sizeof(uint32_t)) [[likely]] {
      uint32_t word;
      std::memcpy(&word, at + from, sizeof(word));
      word &= kOwnBits[to - from];
      values[count++] =
          (word & 0x7f) | (word >> 1 & 0x3f80) | (word >> 2 & 0x1fc000) | (word >> 3 & 0xfe00000);
    } else if (ReadVarint(at + from, end, &values[count++]) == nullptr) {
      break;
    }
    from = to;
  }
  *in = ends == 0 && from != 0 ? at + from : nullptr;
  return count;
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2"))) size_t ByExtraction(const std::byte* at, uint64_t ends,
                                                        const std::byte** in, const std::byte* end,
                                                        uint64_t (&values)[kVarintsAtOnce]) {
  size_t count = 0, from = 0;
  for (; ends != 0; ends &= ends - 1) {
    const auto to = static_cast<size_t>(std::countr_zero(ends)) + 1;
    if (to - from <= kWord) [[likely]] {
      uint64_t word;
      std::memcpy(&word, at + from, kWord);
      values[count++] =
          _pext_u64(_bzhi_u64(word, static_cast<unsigned>(8 * (to - from))), 0x7f7f7f7f7f7f7f7f);
    } else if (ReadVarint(at + from, end, &values[count++]) == nullptr) {
      break;
    }
    from = to;
  }
  *in = ends == 0 && from != 0 ? at + from : nullptr;
  return count;
}

// AMD's processors before family 19h (Zen 3), and Hygon's, have the instruction in microcode: it
// takes them longer than the shifts.
bool ExtractsQuickly() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((ebx & bit_BMI) == 0 || (ebx & bit_BMI2) == 0) return false;
  __get_cpuid(0, &eax, &ebx, &ecx, &edx);
  if (ebx == signature_INTEL_ebx) return true;
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  const unsigned family = (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
  return family >= 0x19;
}
#endif

ReadPiece* QuickestPiece() {
#if defined(__x86_64__)
  static constinit std::atomic<ReadPiece*> known{nullptr};
  ReadPiece* quickest = known.load(std::memory_order_relaxed);
  if (quickest == nullptr) {
    quickest = ExtractsQuickly() ? &ByExtraction : &ByShifts;
    known.store(quickest, std::memory_order_relaxed);
  }
  return quickest;
#else
  return &ByShifts;
#endif
}

size_t Read(const std::byte** in, const std::byte* end, size_t most,
            uint64_t (&values)[kVarintsAtOnce], ReadPiece* piece) {
  const std::byte* at = *in;
  size_t count = 0;
  if (most < kPiece || end - at < static_cast<ptrdiff_t>(kPiece + kWord)) {
    for (most = std::min(most, kPiece); count < most && at != end && at != nullptr; ++count) {
      at = ReadVarint(at, end, &values[count]);
    }
    *in = at;
    return count;
  }
  const uint64_t ends = EndsIn(at);
  if (ends != ~uint64_t{0}) return piece(at, ends, in, end, values);
  for (; count < kPiece; ++count) values[count] = static_cast<uint8_t>(at[count]);
  *in = at + kPiece;
  return count;
}

}  // namespace

size_t ReadVarints(const std::byte** in, const std::byte* end, size_t most,
                   uint64_t (&values)[kVarintsAtOnce]) {
  return Read(in, end, most, values, QuickestPiece());
}

size_t ReadVarintsByShifts(const std::byte** in, const std::byte* end, size_t most,
                           uint64_t (&values)[kVarintsAtOnce]) {
  return Read(in, end, most, values, &ByShifts);
}

}  // namespace ranktap::proto
