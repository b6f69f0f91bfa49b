
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/trace/sort_rows.h"

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

// One window over the ranks.
struct Window {
  std::string name;
  int64_t ranks = 0;
  const Trace* first = nullptr;  // that began
  const Trace* last = nullptr;
  int64_t first_begin = 0, last_begin = 0, first_end = 0, last_end = 0;
};

const ColumnsOf<Window> kWindowColumns = {
    {"window", Unit::kText, "The name of the window of capture.",
     [](const Window& window) { return window.name; }, Shown::kDetail},
    {"ranks", Unit::kCount, "The number of ranks that captured it.",
     [](const Window& window) { return window.ranks; }},
    {"duration_ns", Unit::kNs, "The time from the first rank's begin to the last rank's end.",
     [](const Window& window) { return window.last_end - window.first_begin; }},
    {"begin_skew_ns", Unit::kNs, "The time between the first rank to begin and the last.",
     [](const Window& window) { return window.last_begin - window.first_begin; }},
    {"first", Unit::kText, "The rank that began first.",
     [](const Window& window) { return RankName(*window.first); }},
    {"last", Unit::kText, "The rank that began last.",
     [](const Window& window) { return RankName(*window.last); }},
    {"end_skew_ns", Unit::kNs, "The time between the first rank to end and the last.",
     [](const Window& window) { return window.last_end - window.first_end; }},
};

Window Summarize(const std::string& name, const std::vector<Taken>& ranks) {
  const auto [first, last] = std::minmax_element(
      ranks.begin(), ranks.end(), [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  const auto [first_end, last_end] = std::minmax_element(
      ranks.begin(), ranks.end(), [](const Taken& a, const Taken& b) { return a.end < b.end; });
  return {.name = name,
          .ranks = static_cast<int64_t>(ranks.size()),
          .first = first->trace,
          .last = last->trace,
          .first_begin = first->begin,
          .last_begin = last->begin,
          .first_end = first_end->end,
          .last_end = last_end->end};
}

}  // namespace

Table TabulateWindows(const Run& run, const ReportOptions&) {
  std::map<std::string, std::vector<Taken>> by_name;
  for (const Trace& trace : run.traces) AddWindowsOf(trace, &by_name);
  std::vector<Window> windows;
  for (const auto& [name, ranks] : by_name) windows.push_back(Summarize(name, ranks));
  SortRows(&windows,
           [](const Window& a, const Window& b) { return a.first_begin < b.first_begin; });
  Table table = TableOf("Windows of capture, over the ranks", kWindowColumns, windows);
  if (windows.empty()) {
    table.notes.push_back("no window was ordered: capture was on from the start, or never");
  }
  return table;
}

}  // namespace ranktap::collector
