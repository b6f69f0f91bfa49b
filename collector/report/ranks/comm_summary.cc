
#include <algorithm>
#include <map>
#include <tuple>

#include "collector/analysis/collectives.h"
#include "collector/analysis/device_timeline.h"
#include "collector/analysis/numbers/interval_set.h"
#include "collector/report/cells.h"
#include "collector/report/reports.h"
#include "collector/report/wording.h"

namespace ranktap::collector {
namespace {

struct CommRow {
  int64_t calls = 0, members = 0;
  int64_t kernel_ns = 0, transfer_ns = 0, wait_ns = 0, exposed_ns = 0;
  uint32_t group_size = 0;
  bool has_wait = false;             // some call had two traced members
  std::map<uint32_t, int64_t> last;  // arrivals, by trace
};

using Key = std::tuple<std::string, std::string, int64_t>;  // group, type, bytes

void Add(const CollectiveRun& call, const std::vector<std::vector<Interval>>& compute,
         CommRow* row) {
  const int64_t transfer = call.shortest();
  ++row->calls;
  row->transfer_ns += transfer;
  row->group_size =
      std::max({row->group_size, call.group_size, static_cast<uint32_t>(call.members.size())});
  for (const CollectiveMember& member : call.members) {
    ++row->members;
    row->kernel_ns += member.length();
    row->wait_ns += member.length() - transfer;
    row->exposed_ns +=
        member.length() - Length(Within(compute[member.trace], member.start, member.end));
  }
  if (call.members.size() < 2) return;
  row->has_wait = true;
  ++row->last[call.members[call.last_arriver()].trace];
}

Cell Bandwidth(int64_t bytes, int64_t calls, int64_t ns, double factor) {
  if (bytes == 0 || ns == 0) return {};
  return factor * static_cast<double>(bytes) * static_cast<double>(calls) / static_cast<double>(ns);
}

}  // namespace

Table TabulateComm(const Run& run, const ReportOptions&) {
  std::vector<std::vector<Interval>> compute;
  for (const Trace& trace : run.traces) {
    compute.push_back(MergedIntervals(DeviceTimeline(trace), WorkKind::kCompute));
  }
  std::map<Key, CommRow> by_key;
  size_t alone = 0;
  for (const auto* const calls : {&MatchCollectives(run), &MatchHostCollectives(run)}) {
    for (const CollectiveRun& call : *calls) {
      Add(call, compute, &by_key[{call.group, call.type, call.bytes}]);
      alone += call.members.size() < 2;
    }
  }
  std::vector<std::pair<Key, CommRow>> rows(by_key.begin(), by_key.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.kernel_ns > b.second.kernel_ns;
  });
  Table table{.name = "comm",
              .title = "Communication, by group, type and size",
              .columns = {{"group", Unit::kText},
                          {"type", Unit::kText},
                          {"bytes", Unit::kBytes},
                          {"calls", Unit::kCount},
                          {"group_size", Unit::kCount, Shown::kDetail},
                          {"kernel_ns", Unit::kNs, Shown::kDetail},
                          {"transfer_ns", Unit::kNs},
                          {"wait_ns", Unit::kNs},
                          {"exposed_ns", Unit::kNs, Shown::kDetail},
                          {"algbw_gb_per_s", Unit::kCount, Shown::kDetail},
                          {"busbw_gb_per_s", Unit::kCount},
                          {"last_rank", Unit::kCount, Shown::kDetail},
                          {"last_percent", Unit::kPercent, Shown::kDetail}}};
  for (const auto& [key, row] : rows) {
    const auto& [group, type, bytes] = key;
    const auto mean = [](int64_t ns, int64_t of) { return ns / std::max<int64_t>(of, 1); };
    const auto most =
        std::max_element(row.last.begin(), row.last.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    table.rows.push_back(
        {group, type, bytes == 0 ? Cell() : Cell(bytes), row.calls,
         row.group_size < 2 ? Cell() : Cell(int64_t{row.group_size}),
         mean(row.kernel_ns, row.members),
         row.has_wait ? Cell(mean(row.transfer_ns, row.calls)) : Cell(),
         row.has_wait ? Cell(mean(row.wait_ns, row.members)) : Cell(),
         mean(row.exposed_ns, row.members), Bandwidth(bytes, row.calls, row.transfer_ns, 1),
         Bandwidth(bytes, row.calls, row.transfer_ns, BusFactor(type, row.group_size)),
         row.has_wait ? RankCell(run.traces[most->first]) : Cell(),
         row.has_wait ? Percent(most->second, row.calls) : Cell()});
  }
  if (rows.empty()) {
    table.notes.push_back("no collective ran on a device, and none of gloo's was seen");
    if (HasSeveralProfiledGlooGroups(run)) {
      table.notes.push_back(
          "gloo's calls in torch.profiler's files do not say their group, and here it has several");
    }
  }
  if (alone > 0) {
    table.notes.push_back(Counted(alone, "call") +
                          " with one traced member: waiting and transfer cannot be told apart, "
                          "bandwidths are lower bounds");
  }
  return table;
}

}  // namespace ranktap::collector
