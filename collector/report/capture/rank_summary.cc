#include "collector/report/capture/rank_summary.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "collector/facts/device_timeline.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/framework/memory_blocks.h"
#include "collector/report/columns.h"
#include "collector/trace/file_notes.h"
#include "collector/trace/graph_launch_ids.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

template <typename Visit>
void ForEachWork(const Trace& trace, Visit&& visit) {
  visit(trace.kernels), visit(trace.copies), visit(trace.memsets), visit(trace.graph_launches);
}

void SummarizeDevices(const Trace& trace, RankRow* row) {
  struct Use {
    size_t works = 0;
    int64_t first = 0, last = INT64_MIN, busy = 0;
  };
  std::map<uint32_t, Use> by_device;
  uint32_t device = kNone;
  Use* of_device = nullptr;
  for (const DeviceSpan& work : DeviceTimeline(trace)) {
    if (work.device != device || of_device == nullptr) {
      device = work.device;
      of_device = &by_device.try_emplace(device, Use{.first = work.start}).first->second;
    }
    Use& use = *of_device;
    ++use.works;
    if (work.table == DeviceSpan::Table::kKernel) row->kernel_ns += work.end - work.start;
    if (work.end <= use.last) continue;
    use.busy += work.end - std::max(work.start, use.last);
    use.last = work.end;
  }
  size_t most = 0;
  int64_t busy = 0, span = 0;
  for (const auto& [device, use] : by_device) {
    span += use.last - use.first;
    busy += use.busy;
    if (use.works <= most) continue;
    most = use.works;
    row->device = std::to_string(device);
    for (const v1::Device& known : trace.hello.devices()) {
      if (known.id() == device) row->device += " " + known.name();
    }
  }
  if (by_device.size() > 1) row->device += fmt::format(" +{}", by_device.size() - 1);
  if (span > 0) row->busy = 100.0 * static_cast<double>(busy) / static_cast<double>(span);
}

bool IsLaunch(std::string_view api) {
  if (api.find("LaunchHostFunc") != api.npos) return false;  // runs on the host
  // nvcc 13 compiles <<<>>> to __cudaLaunchKernel.
  api.remove_prefix(std::min(api.find_first_not_of('_'), api.size()));
  for (const std::string_view prefix :
       {"cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cuLaunchKernel",
        "cuLaunchCooperativeKernel", "cudaGraphLaunch", "cuGraphLaunch", "cuLaunch",
        "hipLaunchKernel", "hipLaunchCooperativeKernel", "hipExtLaunchKernel",
        "hipModuleLaunchKernel", "hipModuleLaunchCooperativeKernel", "hipExtModuleLaunchKernel",
        "hipHccModuleLaunchKernel", "hipGraphLaunch"}) {
    if (api.starts_with(prefix)) return true;
  }
  return false;
}

// When graph nodes were made: a launch during which one was only captured, and ran nothing.
std::vector<int64_t> NodeCreations(const Trace& trace) {
  std::vector<int64_t> times;
  for (const proto::ResourceEvent& event : trace.resources) {
    if (event.change == proto::ResourceChange::kNodeCreated) {
      times.push_back(static_cast<int64_t>(event.time_ticks));
    }
  }
  std::sort(times.begin(), times.end());
  return times;
}

bool AnyWithin(const std::vector<int64_t>& times, int64_t start, int64_t end) {
  const auto first = std::lower_bound(times.begin(), times.end(), start);
  return first != times.end() && *first <= end;
}

struct Launch {
  int64_t start = 0;
  bool joined = false;
};

// Launches that capture went off after, before their work ran. Nothing says that any was captured
// if no launch before them has its work.
int64_t CountCutOff(std::vector<Launch> launches, const std::vector<Gap>& gaps) {
  std::ranges::sort(launches, {}, &Launch::start);
  std::set<size_t> cut;
  for (const Gap& gap : gaps) {
    if (gap.reason != v1::Gap::REASON_LEVEL) continue;
    const auto after = std::ranges::upper_bound(launches, gap.start, {}, &Launch::start);
    auto first = after;
    while (first != launches.begin() && !std::prev(first)->joined) --first;
    if (first == launches.begin()) continue;
    for (auto at = first; at != after; ++at) cut.insert(at - launches.begin());
  }
  return static_cast<int64_t>(cut.size());
}

void SummarizeLaunches(const Trace& trace, RankRow* row) {
  std::vector<uint8_t> is_launch(trace.dictionary.apis() + 1), is_graph(is_launch);
  for (uint32_t id = 0; id < trace.dictionary.apis(); ++id) {
    const std::string_view name = trace.dictionary.Api(id).name;
    is_launch[id] = IsLaunch(name) ? 1 : 0;
    is_graph[id] = name.find("GraphLaunch") != std::string_view::npos ? 1 : 0;
  }
  std::vector<uint8_t> joined(trace.api_calls.size());
  ForEachWork(trace, [&](const DeviceWork& work) {
    for (const uint32_t launch : work.launch) {
      if (launch != kNone) joined[launch] = 1;
    }
  });
  const std::vector<int64_t> nodes = NodeCreations(trace);
  const int64_t graph_ids_wrong = GraphIdsWrongFrom(trace);
  std::vector<Launch> launches;
  uint32_t last = kNone;
  const IdColumn::View api_of = trace.api_calls.api.view();
  for (uint32_t i = 0, calls = static_cast<uint32_t>(joined.size()); i < calls; ++i) {
    const uint32_t api = api_of[i];
    if (api >= is_launch.size() || is_launch[api] == 0) continue;
    if (trace.api_calls.status.At(i) != 0) continue;
    if (joined[i] != 0) {
      last = i;
      if (!trace.gaps.empty()) launches.push_back({trace.api_calls.start[i], true});
      continue;
    }
    const int64_t start = trace.api_calls.start[i];
    if (AnyWithin(nodes, start, trace.api_calls.end[i])) continue;
    last = i;
    // Its work is there and says the id of another call.
    if (is_graph[api] != 0 && start >= graph_ids_wrong) continue;
    if (!trace.gaps.empty()) launches.push_back({start, false});
    ++row->launches_without_kernel;
  }
  row->launches_without_kernel -= CountCutOff(std::move(launches), trace.gaps);
  if (last == kNone) return;
  row->last_launch = trace.dictionary.Api(trace.api_calls.api[last]).name;
  for (size_t i = trace.kernels.size(); i-- > 0;) {
    if (trace.kernels.launch[i] != last) continue;
    row->last_launch =
        ShortKernelName(ReadableKernelName(trace.dictionary.String(trace.kernels.name[i])));
    break;
  }
}

// A range of NCCL's NVTX domain is there even where its call's kernel never ran.
void FindLastCollective(const Trace& trace, RankRow* row) {
  int64_t latest = INT64_MIN;
  uint32_t other = kNone;  // a domain
  for (size_t i = trace.ranges.size(); i-- > 0 && latest == INT64_MIN;) {
    if (trace.ranges.domain[i] == other) continue;
    other = trace.ranges.domain[i];
    if (trace.dictionary.Domain(other) != "NCCL") continue;
    latest = trace.ranges.start[i];
    row->last_collective = trace.dictionary.String(trace.ranges.name[i]);
  }
  if (!Communicates(trace)) return;
  const DeviceSpans& spans = DeviceTimeline(trace);
  for (size_t i = spans.size(); i-- > 0 && spans[i].start >= latest;) {
    const DeviceSpan& span = spans[i];
    if (span.table != DeviceSpan::Table::kKernel || span.kind != WorkKind::kCommunication) continue;
    const std::string_view name = trace.dictionary.String(span.name);
    row->last_collective = ShortKernelName(ReadableKernelName(name));
    return;
  }
}

// The range that began last, finished or not.
void FindLastRange(const Trace& trace, RankRow* row) {
  const size_t count = trace.ranges.size();
  if (count > 0) row->last_range = trace.dictionary.String(trace.ranges.name[count - 1]);
}

void SummarizeHost(const Trace& trace, RankRow* row) {
  for (const ApiCalls* const calls :
       {&trace.api_calls, static_cast<const ApiCalls*>(&trace.event_calls)}) {
    row->api_calls += static_cast<int64_t>(calls->size());
    row->api_ns += static_cast<int64_t>(calls->end.Sum() - calls->start.Sum());
  }
  row->ranges = static_cast<int64_t>(trace.ranges.size());
  int64_t latest = INT64_MIN;
  for (size_t i = 0; i < trace.ranges.unfinished.size(); ++i) {
    if (trace.ranges.unfinished[i] == 0) continue;
    ++row->unfinished_ranges;
    if (trace.ranges.start[i] < latest) continue;
    latest = trace.ranges.start[i];
    row->open_range = trace.dictionary.String(trace.ranges.name[i]);
  }
  latest = INT64_MIN;
  for (const OpenCall& call : trace.open_calls) {
    if (call.since < latest) continue;
    latest = call.since;
    row->open_call = trace.dictionary.Api(call.api).name;
  }
}

std::string StatusText(const RankRow& row) {
  std::string text(NameOf(row.info.status));
  if (!row.info.detail.empty()) text += ": " + row.info.detail;
  if (row.damaged > 0) text += " (damaged)";
  return text;
}

// How far a rank came that did not end in good order; empty for one that did.
std::string LastWords(const RankRow& row) {
  if (row.info.status != TraceStatus::kDied && row.info.status != TraceStatus::kOpen) return {};
  std::string text = row.info.rank ? fmt::format("rank {}", *row.info.rank) : row.info.file;
  text += " " + StatusText(row);
  const auto add = [&text](std::string_view what, const std::string& name) {
    if (!name.empty()) text += fmt::format("; {} {}", what, name);
  };
  add("inside the call", row.open_call);
  add("in the range", row.open_range);
  if (row.open_range.empty()) add("last range", row.last_range);
  add("last launch", row.last_launch);
  add("last collective", row.last_collective);
  if (row.unfinished_ranges > 0) {
    text += fmt::format("; ranges that never ended: {}", row.unfinished_ranges);
  }
  if (row.launches_without_kernel > 0) {
    text += fmt::format("; launches without a kernel record: {}", row.launches_without_kernel);
  }
  return text;
}

void AddNotes(const RankRow& row, Table* table) {
  if (std::string words = LastWords(row); !words.empty()) table->notes.push_back(std::move(words));
  for (const std::string& note : row.info.notes) {
    table->notes.push_back(fmt::format("{}: {}", row.info.file, note));
  }
}

const ColumnsOf<RankRow> kRankColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const RankRow& row) { return row.info.rank ? Cell(int64_t{*row.info.rank}) : Cell(); }},
    {"pid", Unit::kCount, "The process id.",
     [](const RankRow& row) { return int64_t{row.info.pid}; }, Shown::kDetail},
    {"device", Unit::kText, "The device that did most of the rank's work.",
     [](const RankRow& row) { return row.device; }, Shown::kProse},
    {"gpu_busy_percent", Unit::kPercent,
     "The share of the time in which the device works, from its first work to its last.",
     [](const RankRow& row) { return row.busy ? Cell(*row.busy) : Cell(); }},
    {"kernels", Unit::kCount, "The kernels that the rank's devices ran.",
     [](const RankRow& row) { return row.kernels; }},
    {"kernel_ns", Unit::kNs, "The durations of the rank's kernels, added up.",
     [](const RankRow& row) { return row.kernel_ns; }, Shown::kDetail},
    {"copies", Unit::kCount, "The copies between memories.",
     [](const RankRow& row) { return row.copies; }, Shown::kDetail},
    {"api_ns", Unit::kNs, "The time that the rank's threads spent in CUDA calls, added up.",
     [](const RankRow& row) { return row.api_ns; }},
    {"ranges", Unit::kCount, "The NVTX ranges and record_function blocks.",
     [](const RankRow& row) { return row.ranges; }, Shown::kDetail},
    {"span_ns", Unit::kNs, "The time from the rank's first event to its last.",
     [](const RankRow& row) { return row.span_ns; }, Shown::kDetail},
    {"events", Unit::kCount, "The events that ranktap recorded.",
     [](const RankRow& row) { return static_cast<int64_t>(row.events); }},
    {"lost", Unit::kCount, "The events that are missing.",
     [](const RankRow& row) { return static_cast<int64_t>(row.lost); }},
    {"launches_without_kernel", Unit::kCount,
     "The launches for which the trace has no record of work.",
     [](const RankRow& row) { return row.launches_without_kernel; }, Shown::kDetail},
    {"unfinished_ranges", Unit::kCount, "The ranges that had not ended when the trace ended.",
     [](const RankRow& row) { return row.unfinished_ranges; }, Shown::kDetail},
    {"loaded_by", Unit::kText,
     "How the agent was loaded into the process: preload, environment or attach.",
     [](const RankRow& row) { return row.info.loaded_by; }, Shown::kDetail},
    {"status", Unit::kText, "How the process ended.",
     [](const RankRow& row) { return StatusText(row); }, Shown::kProse},
    {"last_launch", Unit::kText, "The last launch that the rank made.",
     [](const RankRow& row) { return row.last_launch; }, Shown::kDetail},
    {"last_collective", Unit::kText, "The last collective that the rank began.",
     [](const RankRow& row) { return row.last_collective; }, Shown::kDetail},
    {"last_range", Unit::kText, "The last range that the rank was in.",
     [](const RankRow& row) { return row.last_range; }, Shown::kDetail},
    {"open_call", Unit::kText, "The CUDA call that had not returned when the trace ended.",
     [](const RankRow& row) { return row.open_call; }, Shown::kDetail},
    {"open_range", Unit::kText, "The range that had not ended when the trace ended.",
     [](const RankRow& row) { return row.open_range; }, Shown::kDetail},
    {"rank_origin", Unit::kText,
     "Where ranktap read the rank from: a variable, the file's name, ...",
     [](const RankRow& row) { return row.info.rank_origin; }, Shown::kDetail},
    {"file", Unit::kText, "The trace file that the row was read from.",
     [](const RankRow& row) { return row.info.file; }, Shown::kDetail},
};

RankRow Summarize(const Trace& trace) {
  RankRow row;
  row.info = trace.info;
  row.kernels = static_cast<int64_t>(trace.kernels.size());
  row.copies = static_cast<int64_t>(trace.copies.size());
  row.memsets = static_cast<int64_t>(trace.memsets.size());
  row.graph_launches = static_cast<int64_t>(trace.graph_launches.size());
  SummarizeDevices(trace, &row);
  SummarizeLaunches(trace, &row);
  SummarizeHost(trace, &row);
  FindLastCollective(trace, &row);
  FindLastRange(trace, &row);
  row.span_ns = trace.last_ns - trace.first_ns;
  row.events = trace.events;
  for (const Writer& writer : trace.writers) {
    row.lost += proto::Total(writer.lost) + proto::Total(writer.declared);
  }
  row.damaged = trace.damage.size();
  row.cost_cpu_ns = static_cast<int64_t>(trace.cost.drain_cpu_ns() + trace.cost.sender_cpu_ns());
  row.cost_callback_ns = static_cast<int64_t>(static_cast<double>(trace.cost.callback_ticks()) *
                                              trace.host_ns_per_tick);
  return row;
}

}  // namespace

const RankRow& SummarizeRank(const Trace& trace) {
  return trace.memo.Get<RankRow>([&trace] { return Summarize(trace); });
}

bool HasRangesAlone(const Trace& trace) {
  if (trace.is_ours()) {
    return trace.hello.level() == v1::LEVEL_RANGES || trace.hello.level() == v1::LEVEL_DORMANT;
  }
  const size_t others = trace.kernels.size() + trace.copies.size() + trace.memsets.size() +
                        trace.graph_launches.size() + trace.api_calls.size() +
                        trace.operators.size() + trace.python_calls.size();
  return trace.ranges.size() > 0 && others == 0;
}

constexpr std::string_view kNoStarts = "the file does not say when anything ran";

// A device gave out memory, so that it did something, and nobody recorded what.
bool HasDeviceMemoryAlone(const Trace& trace) {
  if (trace.is_ours() || trace.origin == TraceOrigin::kMemory) return false;
  size_t works = 0;
  ForEachWork(trace, [&works](const DeviceWork& work) { works += work.size(); });
  if (works > 0) return false;
  const Allocations& all = trace.allocations;
  for (size_t i = 0; i < all.size(); ++i) {
    if (MemoryDeviceOf(all, i) != kNone) return true;
  }
  return !trace.memory.empty();
}

std::string_view WhyNoWork(const Trace& trace) {
  if (!HasStarts(trace)) return kNoStarts;
  if (HasRangesAlone(trace)) return "only ranges are recorded";
  if (SummarizeRank(trace).launches_without_kernel > 0) {
    return "the work of its launches is not in this file";
  }
  return HasDeviceMemoryAlone(trace) ? "memory of a device is in this file, its work is not"
                                     : "nothing ran on a device";
}

std::string WhyNoWork(const Run& run, std::string_view otherwise) {
  if (!run.traces.empty() && std::ranges::none_of(run.traces, HasStarts)) {
    return std::string(kNoStarts);
  }
  int64_t launches = 0;
  for (const Trace& trace : run.traces) launches += SummarizeRank(trace).launches_without_kernel;
  const bool ranges_alone = std::ranges::any_of(run.traces, HasRangesAlone);
  if (launches == 0 && ranges_alone) return "only ranges are recorded";
  if (launches == 0) {
    return std::ranges::any_of(run.traces, HasDeviceMemoryAlone)
               ? "memory of a device is in this file, its work is not"
               : std::string(otherwise);
  }
  return fmt::format("the work of {} launch{} is not in this file", launches,
                     launches == 1 ? "" : "es");
}

Table TabulateRanks(const Run& run, const ReportOptions&) {
  ForEachTraceAtOnce(run, [&run](uint32_t t) { SummarizeRank(run.traces[t]); });
  std::vector<std::reference_wrapper<const RankRow>> rows;
  for (const Trace& trace : run.traces) rows.emplace_back(SummarizeRank(trace));
  Table table = TableOf("Ranks", kRankColumns, rows);
  bool simulated = false;
  for (const RankRow& row : rows) {
    simulated |= row.info.simulated;
    AddNotes(row, &table);
  }
  if (simulated) table.notes.push_back("device records come from a simulated GPU");
  for (const std::string& problem : run.problems) table.notes.push_back(problem);
  return table;
}

}  // namespace ranktap::collector
