#include "collector/trace/sort_rows.h"

#include <algorithm>
#include <numeric>

namespace ranktap::collector {

std::vector<uint32_t> StableOrder(size_t count, RowBefore row_before, const void* rows,
                                  const void* before) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [=](uint32_t a, uint32_t b) { return row_before(rows, before, a, b); });
  return order;
}

}  // namespace ranktap::collector
