#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "collector/facts/collective_types.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/gloo_calls.h"
#include "collector/facts/numbers/duration_distribution.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/reports.h"
#include "collector/trace/file_notes.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

struct CommRow {
  std::string group, type;
  int64_t bytes = 0;
  int64_t calls = 0, members = 0;
  size_t alone = 0;              // calls with one traced member
  DurationDistribution kernels;  // of all members
  int64_t transfer_ns = 0, wait_ns = 0, exposed_ns = 0;
  uint32_t group_size = 0;
  bool has_wait = false;              // some call had two traced members
  bool has_starts = true;             // of all members it is known when they ran
  std::map<uint32_t, int64_t> last;   // arrivals, by trace
  const Trace* last_trace = nullptr;  // that arrived last most often
  int64_t last_arrivals = 0;          // its own
};

using Key = std::tuple<std::string, std::string, int64_t>;  // group, type, bytes

void Add(const Run& run, const CollectiveRun& call,
         const std::vector<std::vector<Interval>>& compute, CommRow* row) {
  const int64_t transfer = call.shortest();
  ++row->calls;
  row->transfer_ns += transfer;
  row->group_size =
      std::max({row->group_size, call.group_size, static_cast<uint32_t>(call.members.size())});
  for (const CollectiveMember& member : call.members) {
    ++row->members;
    row->has_starts &= HasStarts(run.traces[member.trace]);
    row->kernels.Add(member.length());
    row->wait_ns += member.length() - transfer;
    row->exposed_ns +=
        member.length() - Length(Within(compute[member.trace], member.start, member.end));
  }
  if (call.members.size() < 2) {
    ++row->alone;
    return;
  }
  row->has_wait = true;
  ++row->last[call.members[call.last_arriver()].trace];
}

void FindLastArriver(const Run& run, CommRow* row) {
  if (row->last.empty()) return;
  const auto most =
      std::max_element(row->last.begin(), row->last.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  row->last_trace = &run.traces[most->first];
  row->last_arrivals = most->second;
}

std::map<Key, CommRow> CountCalls(const Run& run) {
  std::vector<std::vector<Interval>> compute;
  for (const Trace& trace : run.traces) {
    compute.push_back(MergedIntervals(DeviceTimeline(trace), WorkKind::kCompute));
  }
  std::map<Key, CommRow> by_key;
  for (const auto* const calls : {&MatchCollectives(run), &MatchHostCollectives(run)}) {
    for (const CollectiveRun& call : *calls) {
      Add(run, call, compute, &by_key[{call.group(), call.type(), call.bytes}]);
    }
  }
  return by_key;
}

// The longest in kernels first.
std::vector<CommRow> SummarizeComm(const Run& run) {
  std::vector<CommRow> rows;
  for (auto& [key, row] : CountCalls(run)) {
    std::tie(row.group, row.type, row.bytes) = key;
    FindLastArriver(run, &row);
    rows.push_back(std::move(row));
  }
  SortRows(&rows, [](const CommRow& a, const CommRow& b) {
    return a.kernels.total_ns > b.kernels.total_ns;
  });
  return rows;
}

size_t CountAlone(const std::vector<CommRow>& rows) {
  size_t alone = 0;
  for (const CommRow& row : rows) alone += row.alone;
  return alone;
}

int64_t Mean(int64_t ns, int64_t of) { return ns / std::max<int64_t>(of, 1); }

Cell Bandwidth(const CommRow& row, double factor) {
  if (row.bytes == 0 || row.transfer_ns == 0) return {};
  return factor * static_cast<double>(row.bytes) * static_cast<double>(row.calls) /
         static_cast<double>(row.transfer_ns);
}

const ColumnsOf<CommRow> kCommColumns = {
    {"group", Unit::kText, "The process group.", [](const CommRow& row) { return row.group; }},
    {"type", Unit::kText, "The kind of collective: allreduce, allgather, ...",
     [](const CommRow& row) { return row.type; }},
    {"bytes", Unit::kBytes, "The bytes of one call; empty if the trace does not say.",
     [](const CommRow& row) { return row.bytes == 0 ? Cell() : Cell(row.bytes); }},
    {"calls", Unit::kCount, "The number of collectives; a call of 8 ranks counts once.",
     [](const CommRow& row) { return row.calls; }},
    {"group_size", Unit::kCount, "The number of ranks in the group.",
     [](const CommRow& row) { return row.group_size < 2 ? Cell() : Cell(int64_t{row.group_size}); },
     Shown::kDetail},
    {"kernel_ns", Unit::kNs, "The mean duration of the members' kernels, waiting included.",
     [](const CommRow& row) { return Mean(row.kernels.total_ns, row.members); }, Shown::kDetail},
    {"transfer_ns", Unit::kNs,
     "The mean duration of the shortest member's kernel; the last to arrive does not wait.",
     [](const CommRow& row) {
       return row.has_wait ? Cell(Mean(row.transfer_ns, row.calls)) : Cell();
     }},
    {"wait_ns", Unit::kNs, "The mean time that a member's kernel waited for the last to arrive.",
     [](const CommRow& row) {
       return row.has_wait ? Cell(Mean(row.wait_ns, row.members)) : Cell();
     }},
    {"exposed_ns", Unit::kNs,
     "The mean time of a member's kernel in which its device computed nothing.",
     [](const CommRow& row) {
       return row.has_starts ? Cell(Mean(row.exposed_ns, row.members)) : Cell();
     },
     Shown::kDetail},
    {"kernel_median_ns", Unit::kNs, "The median duration of the members' kernels.",
     [](const CommRow& row) { return row.kernels.median_ns(); }, Shown::kDetail},
    {"kernel_p95_ns", Unit::kNs, "The 95th percentile of the durations of the members' kernels.",
     [](const CommRow& row) { return row.kernels.p95_ns(); }, Shown::kDetail},
    {"kernel_stddev_ns", Unit::kNs,
     "The sample standard deviation of the durations of the members' kernels.",
     [](const CommRow& row) { return row.kernels.stddev_ns(); }, Shown::kDetail},
    {"algbw_gb_per_s", Unit::kGbPerSecond,
     "The bytes divided by the transfer time, as nccl-tests defines it.",
     [](const CommRow& row) { return Bandwidth(row, 1); }, Shown::kDetail},
    {"busbw_gb_per_s", Unit::kGbPerSecond,
     "algbw times the factor that nccl-tests gives this type.",
     [](const CommRow& row) { return Bandwidth(row, BusFactor(row.type, row.group_size)); }},
    {"last_rank", Unit::kCount, "The rank that arrived last most often.",
     [](const CommRow& row) { return row.has_wait ? RankCell(*row.last_trace) : Cell(); },
     Shown::kDetail},
    {"last_percent", Unit::kPercent, "The share of the calls in which that rank arrived last.",
     [](const CommRow& row) {
       return row.has_wait ? Percent(row.last_arrivals, row.calls) : Cell();
     },
     Shown::kDetail},
};

}  // namespace

Table TabulateComm(const Run& run, const ReportOptions&) {
  const std::vector<CommRow> rows = SummarizeComm(run);
  Table table = TableOf("Communication, by group, type and size; times are means of a call",
                        kCommColumns, rows);
  if (rows.empty()) {
    table.notes.push_back("no collective ran on a device, and none of gloo's was seen");
    if (HasSeveralProfiledGlooGroups(run)) {
      table.notes.push_back(
          "gloo's calls in torch.profiler's files do not say their group, and here it has several");
    }
  }
  if (const size_t alone = CountAlone(rows); alone > 0) {
    table.notes.push_back(
        fmt::format("{} with one traced member: waiting and transfer cannot be told apart, "
                    "bandwidths are lower bounds",
                    Counted(alone, "call")));
  }
  return table;
}

}  // namespace ranktap::collector
