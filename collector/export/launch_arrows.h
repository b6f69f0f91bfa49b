// Arrows from API calls to the work they launched, numbered.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "collector/export/export_options.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

class LaunchArrows {
 public:
  // Those whose two ends are both kept. `first`: number of the first arrow.
  LaunchArrows(const Trace& trace, const ExportOptions& kept, uint64_t first);

  static constexpr size_t kTables = 4;
  // Kernels, copies, memsets, graph launches.
  static std::array<const DeviceWork*, kTables> Tables(const Trace& trace);

  // The arrow to row `row` of table `table`; 0: it has none.
  uint64_t To(size_t table, size_t row) const {
    return arrows_[table][row] == kNone ? 0 : first_ + arrows_[table][row];
  }
  // The arrows that leave the call; valid until the next call of From.
  std::span<const uint64_t> From(uint32_t call) {
    const uint32_t last = last_of_call_[call];
    if (last == kNone) return {};
    if (last < previous_.size()) return AllFrom(last);
    one_ = first_ + last;
    return {&one_, 1};
  }

 private:
  std::span<const uint64_t> AllFrom(uint32_t last);

  uint64_t first_;
  std::array<std::vector<uint32_t>, kTables> arrows_;
  std::vector<uint32_t> last_of_call_;  // kNone: none
  // Of the same call, by arrow; only as long as the last that has one: most calls launch one piece
  // of work, and 4 bytes an arrow would be written for nothing.
  std::vector<uint32_t> previous_;
  std::vector<uint64_t> from_;
  uint64_t one_ = 0;
};

}  // namespace ranktap::collector
