#include "collector/facts/device_timeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "collector/facts/communication_kernels.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/sync_calls.h"
#include "collector/trace/sort_rows.h"
#include "collector/trace/symbol_name.h"
#include "collector/trace/table_columns.h"

namespace ranktap::collector {
namespace {

using Table = DeviceSpan::Table;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [text](std::string_view prefix) { return text.starts_with(prefix); });
}

// hta/common/types.py, CommunicateKernelGroupingPattern, Memory..., Compute...
WorkKind HtaKind(std::string_view name) {
  if (StartsWithAny(name, {"nccl", "hip", "hccl"}) || Contains(name, "ncclKernel")) {
    return WorkKind::kCommunication;
  }
  if (StartsWithAny(name, {"Memcpy", "Memset", "dma"})) return WorkKind::kMemory;
  const bool is_other =
      Contains(name, "Memcpy") || Contains(name, "Memset") || Contains(name, "dma") ||
      Contains(name, "Sync") || (name.starts_with("cuda") && Contains(name, "LaunchKernel")) ||
      StartsWithAny(name, {"Stream Wait Event", "runFunction", "job_exe", "packet", "pe_exe",
                           "cpum_exe_subgraph", "collective_subgraph_execution"});
  return is_other ? WorkKind::kOther : WorkKind::kCompute;
}

void AddWork(const Trace& trace, const DeviceWork& work, Table table, WorkKind kind,
             std::vector<DeviceSpan>* spans) {
  for (uint32_t i = 0; i < work.size(); ++i) {
    if (work.start[i] == kUntimed) continue;
    const Lane& lane = trace.lanes[work.lane[i]];
    spans->push_back(
        {work.start[i], work.end[i], lane.device, lane.stream, 0, i, work.launch[i], table, kind});
  }
}

// Whether the operator that launched a kernel communicates.
class LaunchedByCommunication {
 public:
  explicit LaunchedByCommunication(const Trace& trace)
      : trace_(trace), known_(trace.dictionary.strings() + 1, -1) {}
  bool At(uint32_t kernel) {
    const uint32_t op = trace_.kernels.op.At(kernel);
    if (op == 0) return false;
    const uint32_t name = trace_.operators.name[op - 1];
    int8_t& known = known_[std::min<size_t>(name, known_.size() - 1)];
    if (known < 0) known = IsCommunicationOperator(trace_.dictionary.String(name)) ? 1 : 0;
    return known == 1;
  }

 private:
  const Trace& trace_;
  std::vector<int8_t> known_;  // by name
};

// The kinds of kernels: by their records, their names and the operators that launched them.
class KindsOfKernels {
 public:
  KindsOfKernels(const Trace& trace, bool as_hta)
      : trace_(trace),
        as_hta_(as_hta),
        launched_(trace),
        by_name_(trace.dictionary.strings() + 1, -1),
        name_(trace.kernels.name.view()),
        is_named_alone_(as_hta || (trace.kernels.collective.empty() && trace.kernels.op.empty())) {}
  [[gnu::always_inline]] WorkKind Of(uint32_t kernel) {
    if (!is_named_alone_ && Communicates(kernel)) return WorkKind::kCommunication;
    const uint32_t name = name_[kernel];
    int8_t& kind = by_name_[std::min<size_t>(name, by_name_.size() - 1)];
    if (kind < 0) kind = static_cast<int8_t>(Named(name));
    return static_cast<WorkKind>(kind);
  }

 private:
  bool Communicates(uint32_t kernel) {
    return trace_.kernels.collective.At(kernel) != 0 || launched_.At(kernel);
  }
  WorkKind Named(uint32_t id) const {
    const std::string name = ReadableKernelName(trace_.dictionary.String(id));
    return as_hta_                       ? HtaKind(name)
           : IsCommunicationKernel(name) ? WorkKind::kCommunication
           : name.starts_with("dma")     ? WorkKind::kMemory
                                         : WorkKind::kCompute;
  }

  const Trace& trace_;
  const bool as_hta_;
  LaunchedByCommunication launched_;
  std::vector<int8_t> by_name_;
  IdColumn::View name_;
  bool is_named_alone_;  // no kernel has a description or an operator
};

// As Merged() of interval_set.h; `spans` are sorted already.
template <typename Where>
std::vector<Interval> MergedWhere(const DeviceSpans& spans, Where&& where) {
  std::vector<Interval> merged;
  // As much each time: the next takes the block that this one gives back (KeepLargeBlocks).
  merged.reserve(spans.size());
  for (const DeviceSpan& span : spans) {
    if (where(span)) Append({span.start, span.end}, &merged);
  }
  return merged;
}

bool Before(const DeviceSpan& a, const DeviceSpan& b) { return a.start < b.start; }

// Equals by table, and by row.
DeviceSpans SortedByStart(const Trace& trace, std::vector<DeviceSpan> spans) {
  if (!std::is_sorted(spans.begin(), spans.end(), Before)) {
    std::sort(spans.begin(), spans.end(), [](const DeviceSpan& a, const DeviceSpan& b) {
      return std::tie(a.start, a.table, a.row) < std::tie(b.start, b.table, b.row);
    });
  }
  DeviceSpans sorted(trace);
  sorted.Reserve(spans.size());
  for (const DeviceSpan& span : spans) sorted.Append(span);
  return sorted;
}

// Copies, memsets and whole graphs, by start.
std::vector<DeviceSpan> WorkBesideKernels(const Trace& trace) {
  std::vector<DeviceSpan> spans;
  const auto add = [&](const DeviceWork& work, Table table, WorkKind kind) {
    const size_t first = spans.size();
    AddWork(trace, work, table, kind, &spans);
    MergeRows(&spans, first, Before);
  };
  add(trace.copies, Table::kCopy, WorkKind::kMemory);
  add(trace.memsets, Table::kMemset, WorkKind::kMemory);
  add(trace.graph_launches, Table::kGraphLaunch, WorkKind::kCompute);
  return spans;
}

using LaneWork = std::vector<StreamWork>;  // by lane

[[gnu::always_inline]] inline void Count(WorkKind kind, int64_t start, int64_t end,
                                         StreamWork* work) {
  StreamWork::OfKind& of = work->kinds[static_cast<size_t>(kind)];
  ++of.pieces;
  of.ns += end - start;
  work->last_end = std::max(work->last_end, end);
  work->longest_ns = std::max(work->longest_ns, end - start);
}

// The kernels, and among them the other work, which is by start.
DeviceSpans AddKernels(const Trace& trace, bool as_hta, const std::vector<DeviceSpan>& others,
                       LaneWork* lanes) {
  DeviceSpans spans(trace);
  KindsOfKernels kinds(trace, as_hta);
  const Kernels& kernels = trace.kernels;
  spans.Reserve(kernels.size() + others.size());
  auto other = others.begin();
  const TimeColumn::View start_of = kernels.start.view(), end_of = kernels.end.view();
  const IdColumn::View lane_of = kernels.lane.view();
  std::array<WorkKind, 64> some;  // of kernels in turn, before the next other work
  for (uint32_t i = 0, rows = static_cast<uint32_t>(kernels.size()); i < rows;) {
    if (start_of[i] == kUntimed) {
      ++i;
      continue;
    }
    for (; other != others.end() && other->start < start_of[i]; ++other) spans.Append(*other);
    const int64_t next = other == others.end() ? INT64_MAX : other->start;
    uint32_t count = 0;
    do {
      some[count] = kinds.Of(i + count);
      Count(some[count], start_of[i + count], end_of[i + count], &(*lanes)[lane_of[i + count]]);
      ++count;
    } while (count < some.size() && i + count < rows && start_of[i + count] != kUntimed &&
             start_of[i + count] <= next);
    spans.AppendKernels(i, std::span(some).first(count));
    i += count;
  }
  for (; other != others.end(); ++other) spans.Append(*other);
  return spans;
}

struct Timeline {
  DeviceSpans spans;
  std::vector<StreamWork> streams;
};

// Contexts share the numbers of streams.
std::vector<StreamWork> JoinLanes(const Trace& trace, const LaneWork& lanes,
                                  const std::vector<DeviceSpan>& others) {
  std::map<std::pair<uint32_t, uint32_t>, StreamWork> streams;
  const auto of = [&streams](uint32_t device, uint32_t stream) -> StreamWork& {
    StreamWork& work = streams[{device, stream}];
    work.device = device;
    work.stream = stream;
    return work;
  };
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    StreamWork& work = of(trace.lanes[lane].device, trace.lanes[lane].stream);
    for (size_t kind = 0; kind < work.kinds.size(); ++kind) {
      work.kinds[kind].pieces += lanes[lane].kinds[kind].pieces;
      work.kinds[kind].ns += lanes[lane].kinds[kind].ns;
    }
    work.last_end = std::max(work.last_end, lanes[lane].last_end);
    work.longest_ns = std::max(work.longest_ns, lanes[lane].longest_ns);
  }
  for (const DeviceSpan& span : others) {
    Count(span.kind, span.start, span.end, &of(span.device, span.stream));
  }
  std::vector<StreamWork> list;
  for (const auto& [stream, work] : streams) {
    if (work.pieces() > 0) list.push_back(work);
  }
  return list;
}

Timeline MakeTimeline(const Trace& trace) {
  const std::vector<DeviceSpan> others = WorkBesideKernels(trace);
  LaneWork lanes(trace.lanes.size());
  Timeline timeline{.spans = AddKernels(trace, false, others, &lanes),
                    .streams = JoinLanes(trace, lanes, others)};
  if (!FindUnsorted(trace.kernels.start).empty()) {
    timeline.spans = SortedByStart(trace, {timeline.spans.begin(), timeline.spans.end()});
  }
  return timeline;
}

const Timeline& TimelineOf(const Trace& trace) {
  return trace.memo.Get<Timeline>([&trace] { return MakeTimeline(trace); });
}

// Triton's launches are operators that name the stream; HTA takes them for GPU work.
void AddHtaExtras(const Trace& trace, std::vector<DeviceSpan>* spans) {
  for (uint32_t i = 0; i < trace.syncs.size(); ++i) {
    if (trace.syncs.stream[i] == kNone && trace.syncs.stream_as_unsigned.At(i) == 0) continue;
    spans->push_back({trace.syncs.start[i], trace.syncs.end[i], 0, trace.syncs.stream[i], 0, i,
                      kNone, Table::kSync, WorkKind::kOther});
  }
}
void AddHtaOperators(const Trace& trace, std::vector<DeviceSpan>* spans) {
  for (uint32_t i = 0; i < trace.operators.stream.size(); ++i) {
    if (trace.operators.stream[i] == 0) continue;
    const uint32_t name = trace.operators.name[i];
    spans->push_back({trace.operators.start[i], trace.operators.end[i], 0,
                      trace.operators.stream[i] - 1, name, i, kNone, Table::kOperator,
                      HtaKind(trace.dictionary.String(name))});
  }
}

}  // namespace

std::string_view NameOf(WorkKind kind) {
  switch (kind) {
    case WorkKind::kCompute:
      return "compute";
    case WorkKind::kCommunication:
      return "communication";
    case WorkKind::kMemory:
      return "memory";
    case WorkKind::kOther:
      return "other";
  }
  return "";
}

int64_t HtaCutoff(const Trace& trace) {
  std::set<uint32_t> names;
  int64_t last = INT64_MAX;
  for (size_t i = 0; i < trace.operators.size(); ++i) {
    if (!trace.dictionary.String(trace.operators.name[i]).starts_with("ProfilerStep#")) continue;
    names.insert(trace.operators.name[i]);
    last = trace.operators.start[i];  // operators are sorted
  }
  const DeviceAnnotations& annotations = trace.device_annotations;
  for (size_t i = 0; i < annotations.size() && !names.empty(); ++i) {
    const std::string_view name = trace.dictionary.String(annotations.name[i]);
    if (annotations.stream_unsaid.At(i) == 0 || !name.starts_with("ProfilerStep#")) continue;
    names.insert(annotations.name[i]);
    last = std::max(last, annotations.start[i]);
  }
  return names.size() > 1 ? last : INT64_MAX;
}

namespace {

DeviceSpans MakeHtaTimeline(const Trace& trace) {
  LaneWork lanes(trace.lanes.size());
  const DeviceSpans kernels = AddKernels(trace, true, {}, &lanes);
  std::vector<DeviceSpan> spans(kernels.begin(), kernels.end());
  AddWork(trace, trace.copies, Table::kCopy, WorkKind::kMemory, &spans);
  AddWork(trace, trace.memsets, Table::kMemset, WorkKind::kMemory, &spans);
  AddHtaExtras(trace, &spans);
  const int64_t cutoff = HtaCutoff(trace);
  if (cutoff == INT64_MAX) {
    AddHtaOperators(trace, &spans);
  } else {
    std::set<uint32_t> launched_in_time;  // correlations, for synchronisations
    for (const auto& [row, correlation] : CallsOfSyncRecords(trace)) {
      if (trace.api_calls.start[row] < cutoff) launched_in_time.insert(correlation);
    }
    std::erase_if(spans, [&](const DeviceSpan& span) {
      if (span.table == Table::kSync) {
        return !launched_in_time.contains(trace.syncs.correlation[span.row]);
      }
      return span.launch == kNone || trace.api_calls.start[span.launch] >= cutoff;
    });
  }
  return SortedByStart(trace, std::move(spans));
}

}  // namespace

const DeviceSpans& DeviceTimeline(const Trace& trace) { return TimelineOf(trace).spans; }

const std::vector<StreamWork>& WorkOfStreams(const Trace& trace) {
  return TimelineOf(trace).streams;
}

bool Communicates(const Trace& trace) {
  return std::ranges::any_of(WorkOfStreams(trace), [](const StreamWork& stream) {
    return stream.Of(WorkKind::kCommunication).pieces > 0;
  });
}

const DeviceSpans& HtaDeviceTimeline(const Trace& trace) {
  struct HtaTimeline {
    DeviceSpans spans;
  };
  return trace.memo.Get<HtaTimeline>([&trace] { return HtaTimeline{MakeHtaTimeline(trace)}; })
      .spans;
}

uint32_t LaunchingOperator(const Trace& trace, const DeviceSpan& span) {
  const DeviceWork* work = &trace.kernels;
  if (span.table == Table::kCopy) work = &trace.copies;
  if (span.table == Table::kMemset) work = &trace.memsets;
  if (span.table == Table::kGraphLaunch) work = &trace.graph_launches;
  const uint32_t op = work->op.At(span.row);
  return op == 0 ? kNone : op - 1;
}

uint64_t BytesMoved(const Trace& trace, const DeviceSpan& span) {
  return span.table == Table::kCopy     ? trace.copies.bytes[span.row]
         : span.table == Table::kMemset ? trace.memsets.bytes[span.row]
                                        : 0;
}

std::string NameOf(const Trace& trace, const DeviceSpan& span) {
  static constexpr std::array<std::string_view, 11> kCopies = {
      "<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
  static constexpr std::array<std::string_view, 9> kMemories = {
      "Unknown", "Pageable",      "Pinned",         "Device", "Array",
      "Managed", "Device Static", "Managed Static", "Host"};
  static constexpr std::array<std::string_view, 5> kSyncs = {
      "Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"};
  const auto pick = [](const auto& names, size_t i) {
    return std::string(i < names.size() ? names[i] : names[0]);
  };
  switch (span.table) {
    case Table::kKernel:
      return ReadableKernelName(trace.dictionary.String(span.name));
    case Table::kOperator:
      return std::string(trace.dictionary.String(span.name));
    case Table::kCopy:
      return fmt::format("Memcpy {} ({} -> {})", pick(kCopies, trace.copies.copy_kind[span.row]),
                         pick(kMemories, trace.copies.src_kind[span.row]),
                         pick(kMemories, trace.copies.dst_kind[span.row]));
    case Table::kMemset:
      return fmt::format("Memset ({})", pick(kMemories, trace.memsets.memory_kind[span.row]));
    case Table::kSync:
      return pick(kSyncs, trace.syncs.type[span.row]);
    case Table::kGraphLaunch:
      return fmt::format("CUDA graph {}", trace.graph_launches.graph.At(span.row));
  }
  return "";
}

std::vector<Interval> MergedIntervals(const DeviceSpans& spans) {
  return MergedWhere(spans, [](const DeviceSpan&) { return true; });
}

std::vector<Interval> MergedIntervals(const DeviceSpans& spans, WorkKind kind) {
  return MergedWhere(spans, [kind](const DeviceSpan& span) { return span.kind == kind; });
}

}  // namespace ranktap::collector
