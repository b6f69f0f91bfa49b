// Rows of a report in order. A sort of wide rows is 10 to 20 KiB of code for each kind of row; here
// only their indices are sorted, by code that all share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace ranktap::collector {

// True if row `a` of `rows` comes before row `b`.
using RowBefore = bool (*)(const void* rows, const void* before, uint32_t a, uint32_t b);

// The indices of `count` rows in order; equal rows keep theirs.
std::vector<uint32_t> StableOrder(size_t count, RowBefore row_before, const void* rows,
                                  const void* before);

// Stable, as std::stable_sort. For lists of at most 2^32 rows, and for few enough that an indirect
// call a comparison does not matter: sort events themselves with std::stable_sort.
template <typename Row, typename Before>
void SortRows(std::vector<Row>* rows, const Before& before) {
  const std::vector<uint32_t> order = StableOrder(
      rows->size(),
      [](const void* all, const void* is_before, uint32_t a, uint32_t b) -> bool {
        const auto& list = *static_cast<const std::vector<Row>*>(all);
        return (*static_cast<const Before*>(is_before))(list[a], list[b]);
      },
      rows, &before);
  std::vector<Row> sorted;
  sorted.reserve(rows->size());
  for (const uint32_t i : order) sorted.push_back(std::move((*rows)[i]));
  rows->swap(sorted);
}

// Puts the rows from `middle` on among those before it, which are in order. Stable: of equals those
// before it come first. What is in order already costs one look at each row, a merge an eighth of a
// sort.
template <typename Row, typename Before>
void MergeRows(std::vector<Row>* rows, size_t middle, const Before& before) {
  const auto at = rows->begin() + static_cast<std::ptrdiff_t>(middle);
  if (!std::is_sorted(at, rows->end(), before)) std::stable_sort(at, rows->end(), before);
  if (at == rows->begin() || at == rows->end() || !before(*at, *std::prev(at))) return;
  std::inplace_merge(rows->begin(), at, rows->end(), before);
}

}  // namespace ranktap::collector
