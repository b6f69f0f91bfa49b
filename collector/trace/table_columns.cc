#include "collector/trace/table_columns.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "collector/trace/at_once.h"

namespace ranktap::collector {
namespace {

template <typename T>
void Gather(const void* from, const std::vector<uint32_t>& order, void* to) {
  const T* const values = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (const uint32_t i : order) *out++ = values[i];
}

// The order by start of a few rows, which keeps that of equal starts. Its arrays are used again.
class StartOrder {
 public:
  const std::vector<uint32_t>& Of(const TimeColumn& starts, uint32_t begin, uint32_t rows) {
    start_.resize(rows);
    starts.Read(begin, start_);
    const int64_t* const start = start_.data();
    const auto before = [start](uint32_t a, uint32_t b) {
      return start[a] != start[b] ? start[a] < start[b] : a < b;
    };
    // What is behind the latest so far is sorted alone and merged in, which is several times faster
    // than sorting everything.
    ahead_.resize(rows), behind_.resize(rows);
    size_t ahead = 0, behind = 0;
    int64_t latest = std::numeric_limits<int64_t>::min();
    for (uint32_t i = 0; i < rows; ++i) {  // without a branch, which nobody could foretell
      const bool is_ahead = start[i] >= latest;
      ahead_[ahead] = behind_[behind] = i;
      ahead += is_ahead, behind += !is_ahead;
      latest = std::max(latest, start[i]);
    }
    ahead_.resize(ahead), behind_.resize(behind);
    if (!std::ranges::is_sorted(behind_, before)) std::ranges::sort(behind_, before);
    order_.resize(rows);
    std::merge(ahead_.begin(), ahead_.end(), behind_.begin(), behind_.end(), order_.begin(),
               before);
    return order_;
  }

 private:
  std::vector<int64_t> start_;
  std::vector<uint32_t> ahead_, behind_, order_;
};

// Rows begin + i become what rows begin + order[i] were; `scratch` is reused.
template <typename Table>
void PermuteRows(Table& table, uint32_t begin, const std::vector<uint32_t>& order,
                 std::vector<std::byte>* scratch) {
  scratch->resize(order.size() * sizeof(uint64_t));
  ForEachColumnOf(table, [&](auto& column) {
    if (column.size() <= begin) return;
    column.PadTo(begin + order.size());
    if constexpr (PackedColumn<std::remove_reference_t<decltype(column)>>) {
      column.Permute(begin, order, scratch->data());
    } else {
      auto* const values = column.data() + begin;
      std::memcpy(scratch->data(), values, order.size() * sizeof(*values));
      GatherValues(scratch->data(), sizeof(*values), order, values);
    }
  });
}

constexpr size_t kRowsWorthAThread = 1 << 16;

template <typename Table>
void SortByStart(Table& table) {
  StartOrder start_order;
  std::vector<std::byte> scratch;
  for (const UnsortedRows& rows : FindUnsorted(table.start)) {
    const uint32_t count = rows.end - rows.begin;
    PermuteRows(table, rows.begin, start_order.Of(table.start, rows.begin, count), &scratch);
  }
}

}  // namespace

void GatherValues(const void* from, size_t bytes, const std::vector<uint32_t>& order, void* to) {
  switch (bytes) {
    case 1:
      return Gather<uint8_t>(from, order, to);
    case 2:
      return Gather<uint16_t>(from, order, to);
    case 4:
      return Gather<uint32_t>(from, order, to);
    case 8:
      return Gather<uint64_t>(from, order, to);
  }
}

std::vector<UnsortedRows> FindUnsorted(const TimeColumn& starts) {
  std::vector<UnsortedRows> found;
  const TimeColumn::View start = starts.view();
  int64_t latest = std::numeric_limits<int64_t>::min();
  int64_t least = latest;  // of the rows found last, of those that are behind others
  for (uint32_t i = 0, rows = static_cast<uint32_t>(starts.size()); i < rows; ++i) {
    if (start[i] >= latest) {
      if (starts.RunCountsUp(i)) i += TimeColumn::kRun - 1;
      latest = start[i];
      continue;
    }
    if (!found.empty() && found.back().end == i && start[i] >= least) {  // it changes no other row
      found.back().end = i + 1;
      continue;
    }
    UnsortedRows grown{i, i + 1, latest};
    bool is_merged = false;
    while (true) {  // back to the first row that begins later
      const uint32_t sorted_from = found.empty() ? 0 : found.back().end;
      for (int near = 16; near > 0 && grown.begin > sorted_from; --near) {  // mostly it is there
        if (start[grown.begin - 1] <= start[i]) break;
        --grown.begin;
      }
      if (grown.begin > sorted_from && start[grown.begin - 1] > start[i]) {
        grown.begin = static_cast<uint32_t>(
            std::upper_bound(starts.begin() + sorted_from, starts.begin() + grown.begin, start[i]) -
            starts.begin());
      }
      if (grown.begin > sorted_from || found.empty() || found.back().latest <= start[i]) break;
      grown.begin = found.back().begin;
      found.pop_back();
      is_merged = true;
    }
    least = is_merged ? std::min(least, start[i]) : start[i];
    found.push_back(grown);
  }
  return found;
}

void SortTables(Trace* trace) {
  std::vector<std::function<void()>> large;
  ForEachTable(*trace, [&large](auto& table) {
    if (table.size() < kRowsWorthAThread) return SortByStart(table);
    large.push_back([&table] { SortByStart(table); });
  });
  ForEachOnIdle(large.size(), [&large](size_t i) { large[i](); });
}

void ShrinkTables(Trace* trace) {
  ForEachTable(*trace, [](auto& table) {
    ForEachColumnOf(table, [](auto& column) { column.ShrinkToFit(); });
  });
}

}  // namespace ranktap::collector
