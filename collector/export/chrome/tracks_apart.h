// Tracks of a Kineto trace beside a thread's or a stream's own: slices of one track nest, and what
// would not nest in the others' is laid there.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace ranktap::collector {

class TracksApart {
 public:
  struct Track {
    int64_t tid;
    std::string name;
    bool is_new;
  };

  // The track for a slice of these times beside `tid`; slices of one `what` come by their start.
  Track At(std::string_view what, int64_t pid, int64_t tid, int64_t start, int64_t end) {
    std::vector<Row>& rows = rows_[{pid, tid, std::string(what)}];
    for (Row& row : rows) {
      while (!row.ends.empty() && row.ends.back() <= start) row.ends.pop_back();
      if (!row.ends.empty() && end > row.ends.back()) continue;
      row.ends.push_back(end);
      return {row.tid, "", false};
    }
    rows.push_back({next_++, {end}});
    return {rows.back().tid, fmt::format("{} {}", what, tid), true};
  }

 private:
  struct Row {
    int64_t tid;
    std::vector<int64_t> ends;  // of the open slices, the innermost last
  };

  int64_t next_ = int64_t{1} << 22;  // no thread of Linux has this number or a higher one
  std::map<std::tuple<int64_t, int64_t, std::string>, std::vector<Row>> rows_;
};

}  // namespace ranktap::collector
