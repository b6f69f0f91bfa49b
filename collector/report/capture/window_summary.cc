
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "collector/report/cells.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

// One window on one rank.
struct Taken {
  const Trace* trace = nullptr;
  int64_t begin = 0, end = 0;  // CLOCK_REALTIME
};

// "window 2" of "window 2: ranktap start".
std::string NameOf(const std::string& detail) { return detail.substr(0, detail.find(": ")); }

std::vector<const Gap*> GapsOfAllSources(const Trace& trace) {
  std::vector<const Gap*> gaps;
  for (const Gap& gap : trace.gaps) {
    if (gap.source.empty()) gaps.push_back(&gap);
  }
  std::sort(gaps.begin(), gaps.end(),
            [](const Gap* a, const Gap* b) { return a->start < b->start; });
  return gaps;
}

// A window begins where a gap ends by an order, and goes on to the next gap.
void AddWindowsOf(const Trace& trace, std::map<std::string, std::vector<Taken>>* windows) {
  const std::vector<const Gap*> gaps = GapsOfAllSources(trace);
  for (size_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i]->open || gaps[i]->reason != v1::Gap::REASON_LEVEL) continue;
    const int64_t end =
        i + 1 < gaps.size() ? gaps[i + 1]->start : std::max(trace.last_ns, gaps[i]->end);
    (*windows)[NameOf(gaps[i]->detail)].push_back(
        {&trace, gaps[i]->end + trace.realtime_offset_ns, end + trace.realtime_offset_ns});
  }
}

}  // namespace

Table TabulateWindows(const Run& run, const ReportOptions&) {
  Table table{.name = "windows",
              .title = "Windows of capture, over the ranks",
              .columns = {{"window", Unit::kText, Shown::kDetail},
                          {"ranks", Unit::kCount},
                          {"duration_ns", Unit::kNs},
                          {"begin_skew_ns", Unit::kNs},
                          {"first", Unit::kText},
                          {"last", Unit::kText},
                          {"end_skew_ns", Unit::kNs}}};
  std::map<std::string, std::vector<Taken>> windows;
  for (const Trace& trace : run.traces) AddWindowsOf(trace, &windows);
  std::vector<std::pair<int64_t, std::vector<Cell>>> rows;  // by the first begin
  for (const auto& [name, ranks] : windows) {
    const auto [first, last] =
        std::minmax_element(ranks.begin(), ranks.end(),
                            [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
    const auto [first_end, last_end] = std::minmax_element(
        ranks.begin(), ranks.end(), [](const Taken& a, const Taken& b) { return a.end < b.end; });
    rows.emplace_back(
        first->begin,
        std::vector<Cell>{name, static_cast<int64_t>(ranks.size()), last_end->end - first->begin,
                          last->begin - first->begin, RankName(*first->trace),
                          RankName(*last->trace), last_end->end - first_end->end});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [begin, row] : rows) table.rows.push_back(std::move(row));
  if (table.rows.empty()) {
    table.notes.push_back("no window was ordered: capture was on from the start, or never");
  }
  return table;
}

}  // namespace ranktap::collector
