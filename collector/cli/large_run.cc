#include "collector/cli/large_run.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "collector/facts/each_trace.h"
#include "collector/facts/sync_calls.h"
#include "collector/report/human_units.h"
#include "collector/report/run_filter.h"
#include "collector/stacks/proc_files.h"
#include "collector/trace/load/run_reader.h"
#include "collector/trace/load/trace_loader.h"
#include "collector/trace/table_columns.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

// Measured (docs/measurements/analysis.md), an event: what tables take; what is kept of each rank
// with them; and what the analyses take beside that of the ranks that they work on.
constexpr uint64_t kTableBytes = 20, kKeptBytes = 20, kWorkBytes = 70;
constexpr size_t kPage = 4096, kPagesWorthACall = 64;
// A third of what is free is worth a word.
constexpr uint64_t kMuch = 3;

std::optional<uint64_t> NumberIn(const std::string& text, std::string_view before) {
  const size_t at = before.empty() ? 0 : text.find(before);
  if (at == text.npos) return std::nullopt;
  const size_t from = text.find_first_of("0123456789m", at + before.size());  // "max"
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  if (from == text.npos || std::from_chars(text.data() + from, end, number).ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

// "rank-00003.trace", "rank-00003.1.trace.part"
std::optional<int64_t> RankOf(const RunFiles& files, const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  for (const TraceInfo& trace : files.info.traces) {
    if (trace.file == name && trace.rank) return *trace.rank;
  }
  constexpr std::string_view kBefore = "rank-";
  if (!name.starts_with(kBefore)) return std::nullopt;
  const std::optional<uint64_t> number = NumberIn(name, kBefore);
  return number ? std::optional(static_cast<int64_t>(*number)) : std::nullopt;
}

struct Sizes {
  uint64_t events = 0, largest = 0;
  std::map<int64_t, uint64_t> by_rank;

  void Add(uint64_t more) {
    events += more;
    largest = std::max(largest, more);
  }
  uint64_t Bytes(size_t at_once) const {
    return events * kKeptBytes +
           std::min(events, largest * std::max<size_t>(at_once, 1)) * kWorkBytes;
  }
};

// "--ranks 0-21": the first that take no more than `most` together; empty: no part of them.
std::string RanksWithin(const Sizes& sizes, uint64_t most, size_t at_once) {
  std::set<int64_t> ranks;
  Sizes first;
  for (const auto& [rank, events] : sizes.by_rank) {
    first.Add(events);
    if (first.Bytes(at_once) > most) break;
    ranks.insert(rank);
  }
  return ranks.empty() || ranks.size() == sizes.by_rank.size() ? "" : "--ranks " + ListOf(ranks);
}

void DropFrom(const ReportOptions& options, Trace* trace, SpareColumns* spare) {
  CallsOfSyncRecords(*trace);
  if (!options.by_grid) trace->kernels.shape = {};
  spare->Give(std::exchange(trace->api_calls.correlation, {}));
  spare->Give(std::exchange(trace->kernels.correlation, {}));
  trace->copies.correlation = {};
  trace->memsets.correlation = {};
  trace->graph_launches.correlation = {};
}

}  // namespace

uint64_t FreeMemory(const std::string& root) {
  const std::string machine = ReadProcFile(root + "/proc/meminfo").value_or("");
  uint64_t free_bytes = NumberIn(machine, "MemAvailable:").value_or(UINT64_MAX >> 10) << 10;
  std::string group = ReadProcFile(root + "/proc/self/cgroup").value_or("");
  const size_t at = group.find("0::/");
  if (at == group.npos) return free_bytes;
  group = group.substr(at + 3, group.find('\n', at) - at - 3);
  for (;; group.resize(group.rfind('/'))) {
    if (group == "/") group.clear();
    const std::string folder = root + "/sys/fs/cgroup" + group;
    const auto limit = NumberIn(ReadProcFile(folder + "/memory.max").value_or(""), "");
    // The rest of what it holds is cached files, which give way.
    const auto used = NumberIn(ReadProcFile(folder + "/memory.stat").value_or(""), "anon ");
    if (limit) free_bytes = std::min(free_bytes, *limit - std::min(*limit, used.value_or(0)));
    if (group.empty()) return free_bytes;
  }
}

RunRoom RoomFor(const std::vector<std::string>& paths, const RunSelection& selection,
                bool names_tables, uint64_t free_bytes, size_t at_once) {
  RunRoom room;
  if (paths.size() != 1) return room;
  const Result<RunFiles> files = FindTraces(paths[0]);
  if (!files) return room;
  Sizes all, wanted;
  const std::optional<NumberSet> ranks = ParseNumberSet(selection.ranks);
  for (const std::string& path : files->traces) {
    const uint64_t events = CountEvents(path);
    const std::optional<int64_t> rank = RankOf(*files, path);
    const bool is_wanted = !ranks || !rank || ranks->contains(*rank);
    for (Sizes* const sizes : {&all, is_wanted ? &wanted : nullptr}) {
      if (sizes == nullptr) continue;
      sizes->Add(events);
      if (rank) sizes->by_rank[*rank] += events;
    }
  }
  const bool is_part = names_tables || !selection.steps.empty() || !selection.window.empty();
  const auto bytes_of = [&](const Sizes& sizes) {
    return is_part ? sizes.events * kTableBytes : sizes.Bytes(at_once);
  };
  if (bytes_of(all) <= free_bytes / kMuch) return room;
  // Files whose rank is not known are loaded, and left out afterwards.
  if (ranks && !wanted.by_rank.empty() && selection.job == 0 && selection.window.empty()) {
    room.wants = [files = *files, ranks = *ranks](const std::string& path) {
      const std::optional<int64_t> rank = RankOf(files, path);
      return !rank || ranks.contains(*rank);
    };
  } else {
    wanted = all;
  }
  const uint64_t needed = bytes_of(wanted);
  if (needed <= free_bytes / kMuch) return room;
  room.fits = needed <= free_bytes;
  room.sentence =
      fmt::format("{}: {} events take {} {} of memory, and {} are free", paths[0],
                  FormatCount(static_cast<int64_t>(wanted.events)), is_part ? "at least" : "about",
                  FormatBytes(needed), FormatBytes(free_bytes));
  const std::string fewer =
      RanksWithin(wanted, room.fits ? free_bytes / kMuch : free_bytes, at_once);
  const bool steps_help = !is_part && wanted.events * kTableBytes <= free_bytes;
  if (fewer.empty() && !steps_help) {
    room.sentence += room.fits ? "" : ": record fewer steps, or take a machine with more";
    return room;
  }
  room.sentence += fmt::format("; {} with {}{}{}", room.fits ? "less" : "it fits", fewer,
                               fewer.empty() || !steps_help ? "" : " or ",
                               steps_help ? "with some of its steps (--steps 10-19)" : "");
  return room;
}

void DropUnread(const ReportOptions& options, Run* run) {
  SpareColumns spare;
  ForEachTraceAtOnce(*run, [&](uint32_t t) { DropFrom(options, &run->traces[t], &spare); });
}

LeaveOut DropsUnread(const ReportOptions& options, const RunSelection& selection) {
  const bool is_all = selection.ranks.empty() && selection.steps.empty() &&
                      selection.window.empty() && selection.job == 0 && selection.ncu.empty();
  if (!is_all) return {};
  return [&options](Trace* trace, SpareColumns* spare) { DropFrom(options, trace, spare); };
}

void ReturnColumns(Run* run) {
  std::vector<std::pair<uintptr_t, size_t>> pages;  // from, bytes
  const auto add = [&pages](const auto& array) {
    const size_t whole = array.bytes() / kPage;
    if (whole < kPagesWorthACall) return;
    const uintptr_t from = (reinterpret_cast<uintptr_t>(array.data()) + kPage - 1) / kPage * kPage;
    pages.emplace_back(from, (whole - 1) * kPage);
  };
  for (Trace& trace : run->traces) {
    ForEachTable(trace, [&add](auto& table) {
      ForEachColumnOf(table, [&add](auto& column) {
        if constexpr (PackedColumn<std::remove_reference_t<decltype(column)>>) {
          add(column.array());
        } else {
          add(column);
        }
      });
    });
  }
  ForEachAtOnce(pages.size(), [&pages](size_t i) {
    ::madvise(reinterpret_cast<void*>(pages[i].first), pages[i].second, MADV_DONTNEED);
  });
}

}  // namespace ranktap::collector
