// Walks several tables, each sorted by start, as one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "collector/trace/packed_column.h"

namespace ranktap::collector {

struct MergedTable {
  const TimeColumn* start;
  const TimeColumn* end;
};

// Calls visit(table's index, row) for every row by start; of rows with one start the longest comes
// first, then the first table's.
template <typename Visit>
void MergeTables(const std::vector<MergedTable>& tables, Visit visit) {
  struct Head {
    size_t table, next, rows;
    TimeColumn::View starts, ends;
    int64_t start, end;  // of row `next`
  };
  std::vector<Head> heads;
  for (size_t t = 0; t < tables.size(); ++t) {
    const MergedTable& table = tables[t];
    if (table.start->empty()) continue;
    heads.push_back({t, 0, table.start->size(), table.start->view(), table.end->view(),
                     (*table.start)[0], (*table.end)[0]});
  }
  while (!heads.empty()) {
    Head* first = &heads[0];
    for (size_t i = 1; i < heads.size(); ++i) {
      Head& head = heads[i];
      if (head.start < first->start || (head.start == first->start && head.end > first->end)) {
        first = &head;
      }
    }
    int64_t others = std::numeric_limits<int64_t>::max();  // until there no other table has a row
    for (const Head& head : heads) {
      if (&head != first) others = std::min(others, head.start);
    }
    const size_t table = first->table, rows = first->rows;
    const TimeColumn::View starts = first->starts;
    size_t next = first->next;
    do visit(table, next);
    while (++next < rows && starts[next] < others);
    if (next == rows) {
      heads.erase(heads.begin() + (first - heads.data()));
    } else {
      first->next = next;
      first->start = starts[next];
      first->end = first->ends[next];
    }
  }
}

}  // namespace ranktap::collector
