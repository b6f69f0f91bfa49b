// The host's tables of an SQLite export.
#include <bit>
#include <cstdlib>
#include <string>
#include <vector>

#include "collector/export/cupti_names.h"
#include "collector/export/json_text.h"
#include "collector/export/sqlite/sqlite_trace.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// nsys' event types of NVTX_EVENTS.
constexpr int64_t kMark = 34, kPushPop = 59, kStartEnd = 60, kDomain = 75;
// nvtxPayloadType_t.
constexpr uint32_t kUint64 = 1, kInt64 = 2, kDouble = 3, kUint32 = 4, kInt32 = 5, kFloat = 6;

class HostTables {
 public:
  HostTables(const Trace& trace, const SqlTraceTarget& target) : trace_(trace), to_(target) {
    for (const Writer& writer : trace.writers) {
      threads_.push_back(to_.global_pid | (std::abs(int64_t{writer.thread}) & 0xffffff));
    }
  }

  void Append() {
    AppendCalls(trace_.api_calls);
    AppendCalls(trace_.event_calls);
    AppendRanges(trace_.ranges);
    AppendRanges(trace_.marks);
    AppendAnnotations(trace_.operators);
    AppendDomains();
    AppendThreads();
    AppendOverheads();
  }

 private:
  int64_t ThreadOf(uint16_t writer) const {
    return writer < threads_.size() ? threads_[writer] : to_.global_pid;
  }

  void AppendCalls(const ApiCalls& calls) {
    SqlTable table{.name = "CUPTI_ACTIVITY_KIND_RUNTIME", .columns = {}, .rows = calls.size()};
    table.keeps = [&](size_t i) { return to_.options.Keeps(calls.start[i], calls.end[i]); };
    const auto add = [&table](std::string_view declaration, auto value) {
      table.columns.push_back({declaration, [value](size_t row, SqlValue to) {
                                 to.Set(static_cast<int64_t>(value(row)));
                               }});
    };
    add("start INTEGER NOT NULL", [&](size_t i) { return calls.start[i] + to_.shift_ns; });
    add("end INTEGER NOT NULL", [&](size_t i) { return calls.end[i] + to_.shift_ns; });
    add("eventClass INTEGER NOT NULL", [&](size_t i) {
      return trace_.dictionary.Api(calls.api[i]).domain == proto::ApiDomain::kDriver ? 1 : 0;
    });
    add("globalTid INTEGER", [&](size_t i) { return ThreadOf(calls.writer[i]); });
    add("correlationId INTEGER", [&](size_t i) { return calls.correlation[i]; });
    add("nameId INTEGER NOT NULL", [&](size_t i) { return ApiName(calls.api[i]); });
    add("returnValue INTEGER NOT NULL", [&](size_t i) { return calls.status.At(i); });
    add("callchainId INTEGER", [&](size_t i) { return calls.stack.At(i); });
    to_.file->Append(table);
  }

  int64_t ApiName(uint32_t api) {
    if (api >= api_names_.size()) api_names_.resize(api + 1);
    int64_t& id = api_names_[api];
    if (id == 0) {
      const std::string& name = trace_.dictionary.Api(api).name;
      id = to_.strings->IdOf(name.empty() ? "(name missing)" : name);
    }
    return id;
  }

  int64_t RangeName(uint32_t string) {
    if (string >= range_names_.size()) range_names_.resize(string + 1);
    int64_t& id = range_names_[string];
    if (id == 0) id = to_.strings->IdOf(SanitizedName(trace_.dictionary.String(string)));
    return id;
  }

  static int64_t TypeOf(uint8_t kind) {
    switch (static_cast<RangeKind>(kind)) {
      case RangeKind::kStartEnd:
        return kStartEnd;
      case RangeKind::kMark:
        return kMark;
      default:
        return kPushPop;
    }
  }

  void AppendRanges(const Ranges& ranges) {
    SqlTable table{.name = "NVTX_EVENTS", .columns = {}, .rows = ranges.size()};
    const auto is_mark = [&ranges](size_t i) { return TypeOf(ranges.kind[i]) == kMark; };
    table.keeps = [&ranges, is_mark, this](size_t i) {
      if (IsBookkeeping(trace_, ranges, i)) return false;
      return is_mark(i) ? to_.options.KeepsMoment(ranges.start[i])
                        : to_.options.Keeps(ranges.start[i], ranges.end[i]);
    };
    const auto add = [&table](std::string_view declaration, auto fill) {
      table.columns.push_back({declaration, fill});
    };
    add("start INTEGER NOT NULL",
        [&](size_t i, SqlValue to) { to.Set(ranges.start[i] + to_.shift_ns); });
    add("end INTEGER", [&ranges, is_mark, this](size_t i, SqlValue to) {
      if (!is_mark(i)) to.Set(ranges.end[i] + to_.shift_ns);
    });
    add("eventType INTEGER NOT NULL",
        [&](size_t i, SqlValue to) { to.Set(TypeOf(ranges.kind[i])); });
    add("rangeId INTEGER", [&](size_t i, SqlValue to) {
      if (TypeOf(ranges.kind[i]) == kStartEnd) to.Set(static_cast<int64_t>(i));
    });
    add("category INTEGER", [&](size_t i, SqlValue to) {
      if (ranges.category.At(i) != 0) to.Set(int64_t{ranges.category.At(i)});
    });
    add("color INTEGER", [&](size_t i, SqlValue to) {
      if (ranges.color.At(i) != 0) to.Set(int64_t{ranges.color.At(i)});
    });
    // Queries ask for `text`, for COALESCE(text, StringIds.value), or join textId.
    add("text TEXT",
        [&](size_t i, SqlValue to) { to.Set(to_.strings->Text(RangeName(ranges.name[i]))); });
    add("globalTid INTEGER", [&](size_t i, SqlValue to) { to.Set(ThreadOf(ranges.writer[i])); });
    add("endGlobalTid INTEGER", [&](size_t, SqlValue) {});
    add("textId INTEGER", [&](size_t i, SqlValue to) { to.Set(RangeName(ranges.name[i])); });
    add("domainId INTEGER", [&](size_t i, SqlValue to) { to.Set(int64_t{ranges.domain[i]}); });
    AddPayload(ranges, &table);
    to_.file->Append(table);
  }

  static void AddPayload(const Ranges& ranges, SqlTable* table) {
    const auto add = [&](std::string_view declaration, uint32_t type, auto value) {
      table->columns.push_back({declaration, [&ranges, type, value](size_t i, SqlValue to) {
                                  if (ranges.payload_type.At(i) == type) {
                                    to.Set(value(ranges.payload.At(i)));
                                  }
                                }});
    };
    add("uint64Value INTEGER", kUint64, [](uint64_t bits) { return static_cast<int64_t>(bits); });
    add("int64Value INTEGER", kInt64, [](uint64_t bits) { return static_cast<int64_t>(bits); });
    add("doubleValue REAL", kDouble, [](uint64_t bits) { return std::bit_cast<double>(bits); });
    add("uint32Value INTEGER", kUint32,
        [](uint64_t bits) { return int64_t{static_cast<uint32_t>(bits)}; });
    add("int32Value INTEGER", kInt32,
        [](uint64_t bits) { return int64_t{static_cast<int32_t>(bits)}; });
    add("floatValue REAL", kFloat,
        [](uint64_t bits) { return double{std::bit_cast<float>(static_cast<uint32_t>(bits))}; });
  }

  // `fill`: gets a column's name, a row, and the value, which is NULL where it sets none.
  template <typename Fill>
  static void AddEventColumns(SqlTable* table, const Fill& fill) {
    for (const std::string_view column :
         {"start", "end", "eventType", "rangeId", "category", "color", "text", "globalTid",
          "endGlobalTid", "textId", "domainId", "uint64Value", "int64Value", "doubleValue",
          "uint32Value", "int32Value", "floatValue"}) {
      table->columns.push_back(
          {column, [column, fill](size_t i, SqlValue to) { fill(column, i, to); }});
    }
  }

  // record_function and ProfilerStep#N, as nsys has them where PyTorch emits NVTX.
  void AppendAnnotations(const Operators& ops) {
    SqlTable table{.name = "NVTX_EVENTS", .columns = {}, .rows = ops.size()};
    table.keeps = [&ops, this](size_t i) {
      return static_cast<OperatorKind>(ops.kind[i]) == OperatorKind::kAnnotation &&
             to_.options.Keeps(ops.start[i], ops.end[i]);
    };
    AddEventColumns(&table, [&ops, this](std::string_view column, size_t i, SqlValue to) {
      if (column == "start") to.Set(ops.start[i] + to_.shift_ns);
      if (column == "end") to.Set(ops.end[i] + to_.shift_ns);
      if (column == "eventType") to.Set(kPushPop);
      if (column == "text") to.Set(to_.strings->Text(RangeName(ops.name[i])));
      if (column == "globalTid") to.Set(ThreadOf(ops.writer[i]));
      if (column == "textId") to.Set(RangeName(ops.name[i]));
      if (column == "domainId") to.Set(int64_t{0});
    });
    to_.file->Append(table);
  }

  // nsys tells a domain's name in a row of its own.
  void AppendDomains() {
    std::vector<uint16_t> domains;
    std::vector<std::string> names;
    for (uint32_t id = 1; id < UINT16_MAX && !trace_.dictionary.Domain(id).empty(); ++id) {
      domains.push_back(static_cast<uint16_t>(id));
      names.push_back(SanitizedName(trace_.dictionary.Domain(id)));
    }
    SqlTable table{.name = "NVTX_EVENTS", .columns = {}, .rows = domains.size()};
    AddEventColumns(&table, [&, this](std::string_view column, size_t i, SqlValue to) {
      if (column == "start") to.Set(trace_.first_ns + to_.shift_ns);
      if (column == "eventType") to.Set(kDomain);
      if (column == "text") to.Set(names[i]);
      if (column == "globalTid") to.Set(to_.global_pid);
      if (column == "domainId") to.Set(int64_t{domains[i]});
    });
    to_.file->Append(table);
  }

  void AppendThreads() {
    SqlTable table{.name = "ThreadNames", .columns = {}, .rows = trace_.writers.size()};
    table.keeps = [&](size_t i) { return trace_.writers[i].thread > 0; };
    table.columns = {{"nameId INTEGER NOT NULL",
                      [&](size_t i, SqlValue to) {
                        to.Set(to_.strings->IdOf(SanitizedName(trace_.writers[i].name)));
                      }},
                     {"priority INTEGER", [](size_t, SqlValue) {}},
                     {"globalTid INTEGER", [&](size_t i, SqlValue to) { to.Set(threads_[i]); }}};
    to_.file->Append(table);
  }

  void AppendOverheads() {
    const auto& overheads = trace_.overheads;
    SqlTable table{.name = "PROFILER_OVERHEAD", .columns = {}, .rows = overheads.size()};
    table.columns = {
        {"start INTEGER NOT NULL",
         [&](size_t i, SqlValue to) {
           to.Set(static_cast<int64_t>(overheads[i].start_ns) + to_.shift_ns);
         }},
        {"end INTEGER NOT NULL",
         [&](size_t i, SqlValue to) {
           to.Set(static_cast<int64_t>(overheads[i].end_ns) + to_.shift_ns);
         }},
        {"globalTid INTEGER",
         [&](size_t i, SqlValue to) {
           to.Set(to_.global_pid | static_cast<int64_t>(overheads[i].thread & 0xffffff));
         }},
        {"correlationId INTEGER",
         [&](size_t i, SqlValue to) { to.Set(int64_t{overheads[i].correlation}); }},
        {"nameId INTEGER NOT NULL", [&](size_t i, SqlValue to) {
           to.Set(to_.strings->IdOf(OverheadName(overheads[i].overhead_kind)));
         }}};
    table.keeps = [&](size_t i) {
      return to_.options.Keeps(static_cast<int64_t>(overheads[i].start_ns),
                               static_cast<int64_t>(overheads[i].end_ns));
    };
    to_.file->Append(table);
  }

  const Trace& trace_;
  const SqlTraceTarget& to_;
  std::vector<int64_t> threads_, api_names_, range_names_;
};

}  // namespace

void AppendHostTables(const Trace& trace, const SqlTraceTarget& target) {
  HostTables(trace, target).Append();
}

}  // namespace ranktap::collector
