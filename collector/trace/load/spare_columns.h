// Columns of loaded traces that their reader does not need, for the traces which are loaded next:
// their pages are there already. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "collector/trace/column.h"

namespace ranktap::collector {

class SpareColumns {
 public:
  // More than traces that are loaded at once could take are given back to the kernel.
  void Give(Column<uint32_t> column) {
    const std::lock_guard lock(mutex_);
    if (columns_.size() < kMost && !column.empty()) columns_.push_back(std::move(column));
  }
  // Empty, with the memory of one that was given, where there is any.
  Column<uint32_t> Take() {
    const std::lock_guard lock(mutex_);
    if (columns_.empty()) return {};
    Column<uint32_t> column = std::move(columns_.back());
    columns_.pop_back();
    column.Truncate(0);
    return column;
  }
  // What it takes becomes the memory of a column that is empty; of another kind's it does nothing.
  template <typename T>
  void Lend(Column<T>* column) {
    if constexpr (std::is_same_v<T, uint32_t>) *column = Take();
  }

 private:
  static constexpr size_t kMost = 64;

  std::mutex mutex_;
  std::vector<Column<uint32_t>> columns_;
};

}  // namespace ranktap::collector
