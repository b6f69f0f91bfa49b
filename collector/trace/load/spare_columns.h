// Columns of loaded traces that their reader does not need, for the traces which are loaded next:
// their pages are there already. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "collector/trace/column.h"

namespace ranktap::collector {

class SpareColumns {
 public:
  void Give(Column<uint32_t> column) {
    const std::lock_guard lock(mutex_);
    columns_.push_back(std::move(column));
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

 private:
  std::mutex mutex_;
  std::vector<Column<uint32_t>> columns_;
};

}  // namespace ranktap::collector
