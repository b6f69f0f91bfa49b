// How to leave a frame, by its instruction pointer: learnt once from the unwind table (about 3 us),
// then a look-up. One table for all threads.
// Runs on: any thread.  May not: allocate, lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace ranktap::agent::stacks {

enum class FrameType : uint8_t {
  kUnknown = 0,   // not learnt yet
  kStandard = 1,  // CFA = rsp or rbp + offset, return address at CFA - 8
  kOther = 2,     // only the walk of the whole stack can leave it
  kLast = 3,      // the outermost
};

struct FrameRule {
  FrameType type = FrameType::kUnknown;
  bool cfa_is_rsp = false;
  bool rbp_saved = false;
  int32_t cfa_offset = 0;  // within 24 bits, signed
  int32_t rbp_offset = 0;  // of the CFA, within 16 bits, signed
};

class FrameRules {
 public:
  // False: no memory.
  [[nodiscard]] bool Create();

  FrameRule Find(uint64_t ip) const {
    const Cell* cell = CellFor(ip);
    for (uint32_t i = 0; i < kProbes; ++i, ++cell) {
      const uint64_t found = cell->ip.load(std::memory_order_acquire);
      if (found == ip) return Unpack(cell->rule.load(std::memory_order_acquire));
      if (found == 0) break;
    }
    return {};
  }
  // Kept unless the table is full there. `generation`: as it was before the rule was learnt.
  void Keep(uint64_t ip, const FrameRule& rule, uint32_t generation);

  // A module is gone, and another may come to the same addresses.
  void ForgetAll() { generation_.fetch_add(1, std::memory_order_acq_rel); }
  uint32_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  static constexpr uint32_t kProbes = 16;
  // By the top 16 bits of a product, and room for the probes of the last.
  static constexpr uint32_t kCells =
      (1u << 16) + kProbes;  // 1 MiB; a PyTorch process has 5,000 addresses
  struct Cell {
    std::atomic<uint64_t> ip;
    std::atomic<uint64_t> rule;
  };

  Cell* CellFor(uint64_t ip) const { return cells_ + (ip * 0x9e3779b97f4a7c15 >> 48); }
  static uint64_t Pack(const FrameRule& rule, uint32_t generation);
  // kUnknown when it is of another generation.
  FrameRule Unpack(uint64_t packed) const {
    if (static_cast<uint16_t>(packed >> 48) !=
        static_cast<uint16_t>(generation_.load(std::memory_order_relaxed))) {
      return {};
    }
    return {.type = static_cast<FrameType>(packed & 3),
            .cfa_is_rsp = (packed & 4) != 0,
            .rbp_saved = (packed & 8) != 0,
            .cfa_offset = static_cast<int32_t>(static_cast<uint32_t>(packed)) >> 8,
            .rbp_offset = static_cast<int16_t>(packed >> 32)};
  }

  Cell* cells_ = nullptr;
  std::atomic<uint32_t> generation_{1};
};

}  // namespace ranktap::agent::stacks
