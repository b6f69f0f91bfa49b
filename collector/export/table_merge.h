// Walks several tables, each sorted by start, as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collector/trace/column.h"

namespace ranktap::collector {

struct MergedTable {
  const Column<int64_t>* start;
  const Column<int64_t>* end;
  size_t next = 0;
};

// Calls visit(table's index, row) for every row by start; of rows with one start the longest comes
// first, then the first table's.
template <typename Visit>
void MergeTables(std::vector<MergedTable> tables, Visit visit) {
  for (;;) {
    size_t first = tables.size();
    int64_t start = 0, end = 0;
    for (size_t t = 0; t < tables.size(); ++t) {
      const MergedTable& table = tables[t];
      if (table.next == table.start->size()) continue;
      const int64_t its_start = (*table.start)[table.next];
      const int64_t its_end = (*table.end)[table.next];
      if (first != tables.size() && (its_start > start || (its_start == start && its_end <= end))) {
        continue;
      }
      first = t;
      start = its_start;
      end = its_end;
    }
    if (first == tables.size()) return;
    visit(first, tables[first].next++);
  }
}

}  // namespace ranktap::collector
