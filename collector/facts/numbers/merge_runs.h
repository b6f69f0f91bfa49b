// Sorts a list that is a few sorted ones, one behind the other: a merge for each doubling of a
// run's length, where a sort has one for each doubling of one value's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace ranktap::collector {

// Stable.
template <typename T>
void MergeRuns(std::vector<T>* list) {
  const auto at = [list](size_t i) { return list->begin() + static_cast<std::ptrdiff_t>(i); };
  std::vector<size_t> bounds = {0};  // of runs: from each to the next
  while (bounds.back() < list->size()) {
    const auto end = std::is_sorted_until(at(bounds.back()), list->end());
    bounds.push_back(static_cast<size_t>(end - list->begin()));
  }
  while (bounds.size() > 2) {
    std::vector<size_t> merged;
    for (size_t i = 0; i < bounds.size(); i += 2) {
      merged.push_back(bounds[i]);
      if (i + 2 < bounds.size()) {
        std::inplace_merge(at(bounds[i]), at(bounds[i + 1]), at(bounds[i + 2]));
      }
    }
    if (merged.back() != list->size()) merged.push_back(list->size());
    bounds = std::move(merged);
  }
}

}  // namespace ranktap::collector
