// The host's tables of an nsys file.
#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "collector/import/nsys/nsys_rows.h"

namespace ranktap::collector {
namespace {

// nsys' event types of NVTX_EVENTS.
constexpr int64_t kMark = 34, kPushPop = 59, kStartEnd = 60, kDomain = 75;

class HostRows {
 public:
  explicit HostRows(const NsysTarget& target) : to_(target) {}

  void Read() {
    ReadCalls();
    ReadRanges();
    ReadOverheads();
    ReadThreadNames();
  }

 private:
  void ReadCalls() {
    enum { kStart, kEnd, kClass, kThread, kCorrelation, kName, kStatus };
    static constexpr std::string_view kColumns[] = {
        "start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue"};
    to_.file->ForEachRow("CUPTI_ACTIVITY_KIND_RUNTIME", kColumns, [&](const SqlRow& row) {
      int64_t start = 0, end = 0;
      if (!ReadSpan(row, to_, &start, &end)) return;
      NsysProcess* const process = to_.process_of(row.Int(kThread));
      if (process == nullptr) return;
      // Newer versions of nsys leave the class out; driver functions begin with cu, not cuda.
      const std::string_view name = to_.strings->Text(row.Int(kName));
      const bool driver = row.IsNull(kClass) ? name.starts_with("cu") && !name.starts_with("cuda")
                                             : row.Int(kClass) == 1;
      ApiCalls& calls = process->trace().api_calls;
      const size_t at = calls.size();
      if (IsTwin(*process, row.Int(kThread), driver, row.Small(kCorrelation), name, start, end)) {
        return;
      }
      calls.start.push_back(start);
      calls.end.push_back(end);
      calls.correlation.push_back(row.Small(kCorrelation));
      calls.api.push_back(process->ApiOf(
          row.Int(kName), driver ? proto::ApiDomain::kDriver : proto::ApiDomain::kRuntime));
      calls.writer.push_back(process->WriterOf(row.Int(kThread)));
      SetOptional(&calls.status, at, static_cast<int32_t>(row.Int(kStatus)));
      ++process->trace().events;
    });
  }

  // nsys may hold one call under two names, "cudaMemcpy" and "cudaMemcpy_v3020", with one
  // correlation id. The second is left out: its wait would count twice.
  bool IsTwin(NsysProcess& process, int64_t thread, bool driver, uint32_t correlation,
              std::string_view name, int64_t start, int64_t end) {
    ApiCalls& calls = process.trace().api_calls;
    const auto [last, is_first] = last_call_.try_emplace({thread, driver}, calls.size());
    const size_t before = std::exchange(last->second, calls.size());
    if (is_first || correlation == 0 || calls.correlation[before] != correlation ||
        start > calls.end[before] || end < calls.start[before] ||
        process.trace().dictionary.Api(calls.api[before]).name != WithoutVersion(name)) {
      return false;
    }
    last->second = before;
    calls.start.Set(before, std::min(calls.start[before], start));
    calls.end.Set(before, std::max(calls.end[before], end));
    return true;
  }

  enum RangeColumn {
    kStart,
    kEnd,
    kType,
    kCategory,
    kColor,
    kText,
    kThread,
    kTextId,
    kDomainId,
    kPayload
  };

  void ReadRanges() {
    static constexpr std::string_view kColumns[] = {
        "start",      "end",         "eventType",   "category",   "color",
        "text",       "globalTid",   "textId",      "domainId",   "uint64Value",
        "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue"};
    to_.file->ForEachRow("NVTX_EVENTS", kColumns, [&](const SqlRow& row) {
      NsysProcess* const process = to_.process_of(row.Int(kThread));
      if (process == nullptr) return;
      const int64_t type = row.Int(kType);
      if (type == kDomain) {
        process->NameDomain(row.Int(kDomainId), TextOf(row));
      } else if (type == kMark || type == kPushPop || type == kStartEnd) {
        AddRange(row, type, process);
      } else {
        ++(*to_.skipped)["NVTX events of other types"];
      }
    });
  }

  std::string_view TextOf(const SqlRow& row) const {
    return row.IsNull(kText) ? to_.strings->Text(row.Int(kTextId)) : row.Text(kText);
  }

  void AddRange(const SqlRow& row, int64_t type, NsysProcess* process) {
    int64_t start = 0, end = 0;
    if (!ReadSpan(row, to_, &start, &end)) return;
    const bool mark = type == kMark;
    Ranges& ranges = mark ? process->trace().marks : process->trace().ranges;
    const size_t at = ranges.size();
    ranges.start.push_back(start);
    ranges.end.push_back(mark ? start : end);
    ranges.name.push_back(row.IsNull(kText) ? process->NameOf(row.Int(kTextId))
                                            : process->NameOf(row.Text(kText)));
    ranges.domain.push_back(process->DomainOf(row.Int(kDomainId)));
    ranges.writer.push_back(process->WriterOf(row.Int(kThread)));
    ranges.depth.push_back(0);
    const RangeKind kind = mark               ? RangeKind::kMark
                           : type == kPushPop ? RangeKind::kPushPop
                                              : RangeKind::kStartEnd;
    ranges.kind.push_back(static_cast<uint8_t>(kind));
    SetOptional(&ranges.unfinished, at, static_cast<uint8_t>(!mark && row.IsNull(kEnd)));
    SetOptional(&ranges.category, at, row.Small(kCategory));
    SetOptional(&ranges.color, at, static_cast<uint32_t>(row.Int(kColor)));
    AddPayload(row, at, &ranges);
    ++process->trace().events;
  }

  // nvtxPayloadType_t counts from 1 in the order of the columns.
  static void AddPayload(const SqlRow& row, size_t at, Ranges* ranges) {
    for (uint32_t type = 1; type <= 6; ++type) {
      const int column = kPayload + static_cast<int>(type) - 1;
      if (row.IsNull(column)) continue;
      auto bits = static_cast<uint64_t>(row.Int(column));
      if (type == 3) bits = std::bit_cast<uint64_t>(row.Real(column));
      if (type == 6) bits = std::bit_cast<uint32_t>(static_cast<float>(row.Real(column)));
      SetOptional(&ranges->payload_type, at, type);
      SetOptional(&ranges->payload, at, bits);
      return;
    }
  }

  void ReadOverheads() {
    enum { kThread = 2, kCorrelation };
    static constexpr std::string_view kColumns[] = {"start", "end", "globalTid", "correlationId"};
    to_.file->ForEachRow("PROFILER_OVERHEAD", kColumns, [&](const SqlRow& row) {
      int64_t start = 0, end = 0;
      if (!ReadSpan(row, to_, &start, &end)) return;
      NsysProcess* const process = to_.process_of(row.Int(kThread));
      if (process == nullptr) return;
      proto::OverheadEvent event{};
      event.start_ns = static_cast<uint64_t>(start);
      event.end_ns = static_cast<uint64_t>(end);
      event.thread = static_cast<uint64_t>(row.Int(kThread)) & 0xffffff;
      event.correlation = row.Small(kCorrelation);
      process->trace().overheads.push_back(event);
      ++process->trace().events;
    });
  }

  void ReadThreadNames() {
    enum { kName, kThread };
    static constexpr std::string_view kColumns[] = {"nameId", "globalTid"};
    to_.file->ForEachRow("ThreadNames", kColumns, [&](const SqlRow& row) {
      // nsys tells of all processes that it watched, launchers too: those without events are not
      // ranks.
      if (NsysProcess* const process = to_.known_process(row.Int(kThread))) {
        process->NameThread(row.Int(kThread), to_.strings->Text(row.Int(kName)));
      }
    });
  }

  const NsysTarget& to_;
  std::map<std::pair<int64_t, bool>, size_t> last_call_;  // by thread and whether the driver's
};

}  // namespace

void ReadNsysHost(const NsysTarget& target) { HostRows(target).Read(); }

}  // namespace ranktap::collector
