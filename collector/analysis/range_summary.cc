#include "collector/analysis/range_summary.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace ranktap::collector {
namespace {

// How much GPU time a thread had launched up to a moment: a range's share is a difference.
class LaunchedWork {
 public:
  explicit LaunchedWork(const Trace& trace) : writers_(trace.writers.size()) {
    std::vector<int64_t> by_call(trace.api_calls.size(), 0);
    Add(trace.kernels, &by_call);
    Add(trace.copies, &by_call);
    Add(trace.memsets, &by_call);
    Add(trace.graph_launches, &by_call);
    for (size_t i = 0; i < by_call.size(); ++i) {
      if (by_call[i] == 0 || trace.api_calls.writer[i] >= writers_.size()) continue;
      Launches& launches = writers_[trace.api_calls.writer[i]];
      const int64_t before = launches.total.empty() ? 0 : launches.total.back();
      launches.start.push_back(trace.api_calls.start[i]);
      launches.total.push_back(before + by_call[i]);
    }
  }

  int64_t Between(uint16_t writer, int64_t start, int64_t end) const {
    if (writer >= writers_.size()) return 0;
    return Before(writers_[writer], end) - Before(writers_[writer], start);
  }

 private:
  struct Launches {
    std::vector<int64_t> start, total;  // total: of all launches up to and with this one
  };
  static void Add(const DeviceWork& work, std::vector<int64_t>* by_call) {
    for (size_t i = 0; i < work.size(); ++i) {
      if (work.launch[i] != kNone) (*by_call)[work.launch[i]] += work.end[i] - work.start[i];
    }
  }
  static int64_t Before(const Launches& launches, int64_t time) {
    const auto at = std::lower_bound(launches.start.begin(), launches.start.end(), time);
    return at == launches.start.begin() ? 0 : launches.total[at - launches.start.begin() - 1];
  }

  std::vector<Launches> writers_;
};

using Key = std::pair<std::string, std::string>;

void AddTrace(const Trace& trace, std::map<Key, RangeRow>* rows) {
  const LaunchedWork work(trace);
  std::unordered_map<uint64_t, RangeRow> by_id;  // by name and domain
  const Ranges& ranges = trace.ranges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    RangeRow& row = by_id[uint64_t{ranges.name[i]} << 16 | ranges.domain[i]];
    row.time.Add(ranges.end[i] - ranges.start[i]);
    row.unfinished += ranges.unfinished.At(i);
    row.gpu_ns += work.Between(ranges.writer[i], ranges.start[i], ranges.end[i]);
  }
  std::map<Key, RangeRow> of_trace;
  for (const auto& [id, counted] : by_id) {
    const Key key{trace.dictionary.String(static_cast<uint32_t>(id >> 16)),
                  trace.dictionary.Domain(static_cast<uint32_t>(id & 0xffff))};
    RangeRow& row = of_trace[key];
    row.time.Add(counted.time);
    row.unfinished += counted.unfinished;
    row.gpu_ns += counted.gpu_ns;
  }
  for (const auto& [key, counted] : of_trace) {
    RangeRow& row = (*rows)[key];
    std::tie(row.name, row.domain) = key;
    row.time.Add(counted.time);
    row.unfinished += counted.unfinished;
    row.gpu_ns += counted.gpu_ns;
    ++row.ranks;
  }
}

}  // namespace

std::vector<RangeRow> SummarizeRanges(const std::vector<Trace>& traces) {
  std::map<Key, RangeRow> rows;
  for (const Trace& trace : traces) AddTrace(trace, &rows);
  std::vector<RangeRow> sorted;
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  std::sort(sorted.begin(), sorted.end(), [](const RangeRow& a, const RangeRow& b) {
    return std::tie(b.time.total_ns, a.name, a.domain) <
           std::tie(a.time.total_ns, b.name, b.domain);
  });
  return sorted;
}

Table TabulateRanges(const Run& run) {
  Table table{.name = "ranges",
              .title = "NVTX ranges, all ranks",
              .columns = {{"name", Unit::kText},
                          {"domain", Unit::kText, true},
                          {"calls", Unit::kCount},
                          {"total_ns", Unit::kNs},
                          {"gpu_ns", Unit::kNs},
                          {"mean_ns", Unit::kNs},
                          {"min_ns", Unit::kNs, true},
                          {"max_ns", Unit::kNs, true},
                          {"ranks", Unit::kCount, true},
                          {"unfinished", Unit::kCount, true}}};
  uint64_t unmatched = 0;
  for (const Trace& trace : run.traces) unmatched += trace.unmatched_pops;
  for (const RangeRow& row : SummarizeRanges(run.traces)) {
    table.rows.push_back({row.name, row.domain, row.time.count, row.time.total_ns, row.gpu_ns,
                          row.time.mean_ns(), row.time.shortest_ns(), row.time.max_ns, row.ranks,
                          row.unfinished});
  }
  if (table.rows.empty()) table.notes.push_back("the program used no NVTX range");
  if (unmatched > 0) {
    table.notes.push_back(std::to_string(unmatched) +
                          " ranges ended that had begun before capture did; they are not counted");
  }
  return table;
}

}  // namespace ranktap::collector
