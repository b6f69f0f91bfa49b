// Work of the host as Parquet tables: apis, ranges (with marks).
#include "collector/export/parquet/parquet_tables.h"
#include "collector/export/thread_number.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// A row of two tables laid end to end.
template <typename Table>
struct Pair {
  const Table* first;
  const Table* second;
  const Table& Of(uint32_t row) const { return row < first->size() ? *first : *second; }
  uint32_t RowOf(uint32_t row) const {
    return row < first->size() ? row : row - static_cast<uint32_t>(first->size());
  }
  std::vector<MergedTable> tables() const {
    return {{&first->start, &first->end}, {&second->start, &second->end}};
  }
};

ParquetTable ApiTable(const Trace& trace, const ParquetTarget& to) {
  const Pair<ApiCalls> of{&trace.api_calls, &trace.event_calls};
  ParquetTable table{.name = "apis", .rows = RowsByTime(of.tables(), [&](uint32_t row) {
                                       const ApiCalls& calls = of.Of(row);
                                       return to.options.Keeps(calls.start[of.RowOf(row)],
                                                               calls.end[of.RowOf(row)]);
                                     })};
  const auto start = [of](uint32_t row) { return of.Of(row).start[of.RowOf(row)]; };
  table.Integer("start_ns",
                [start, shift = to.shift_ns](uint32_t row) { return start(row) + shift; });
  table.Integer("duration_ns",
                [of, start](uint32_t row) { return of.Of(row).end[of.RowOf(row)] - start(row); });
  table.Name(
      "name", [of](uint32_t row) { return of.Of(row).api[of.RowOf(row)]; },
      [&trace](uint32_t api) {
        const std::string& name = trace.dictionary.Api(api).name;
        return name.empty() ? std::string("(name missing)") : name;
      });
  table.Text("domain", [of, &trace](uint32_t row) -> std::string_view {
    const ApiFunction& api = trace.dictionary.Api(of.Of(row).api[of.RowOf(row)]);
    return api.domain == proto::ApiDomain::kDriver ? "driver" : "runtime";
  });
  table.Integer(
      "thread",
      [of, &trace](uint32_t row) { return ThreadOf(trace, of.Of(row).writer[of.RowOf(row)]); },
      kInt32);
  table.Integer("correlation",
                [of](uint32_t row) { return of.Of(row).correlation[of.RowOf(row)]; });
  table.Integer(
      "status", [of](uint32_t row) { return of.Of(row).status.At(of.RowOf(row)); }, kInt32);
  table.Optional("step", [start, &trace](uint32_t row) { return StepNumberAt(trace, start(row)); });
  return table;
}

std::string_view NameOf(RangeKind kind) {
  switch (kind) {
    case RangeKind::kStartEnd:
      return "start/end";
    case RangeKind::kMark:
      return "mark";
    default:
      return "push/pop";
  }
}

ParquetTable RangeTable(const Trace& trace, const ParquetTarget& to) {
  const Pair<Ranges> of{&trace.ranges, &trace.marks};
  const auto is_mark = [of](uint32_t row) {
    return of.Of(row).kind[of.RowOf(row)] == static_cast<uint8_t>(RangeKind::kMark);
  };
  ParquetTable table{.name = "ranges",
                     .rows = RowsByTime(of.tables(), [&](uint32_t row) {
                       const Ranges& ranges = of.Of(row);
                       const uint32_t at = of.RowOf(row);
                       if (IsBookkeeping(trace, ranges, at)) return false;
                       return is_mark(row) ? to.options.KeepsMoment(ranges.start[at])
                                           : to.options.Keeps(ranges.start[at], ranges.end[at]);
                     })};
  const auto start = [of](uint32_t row) { return of.Of(row).start[of.RowOf(row)]; };
  table.Integer("start_ns",
                [start, shift = to.shift_ns](uint32_t row) { return start(row) + shift; });
  table.Integer("duration_ns",
                [of, start](uint32_t row) { return of.Of(row).end[of.RowOf(row)] - start(row); });
  table.Name(
      "name", [of](uint32_t row) { return of.Of(row).name[of.RowOf(row)]; },
      [&trace](uint32_t id) { return trace.dictionary.String(id); });
  table.Text("domain", [of, &trace](uint32_t row) {
    return trace.dictionary.Domain(of.Of(row).domain[of.RowOf(row)]);
  });
  table.Text("kind", [of](uint32_t row) {
    return NameOf(static_cast<RangeKind>(of.Of(row).kind[of.RowOf(row)]));
  });
  table.Integer(
      "thread",
      [of, &trace](uint32_t row) { return ThreadOf(trace, of.Of(row).writer[of.RowOf(row)]); },
      kInt32);
  table.Integer(
      "depth", [of](uint32_t row) { return of.Of(row).depth[of.RowOf(row)]; }, kInt32);
  table.Bool("unfinished",
             [of](uint32_t row) { return of.Of(row).unfinished.At(of.RowOf(row)) != 0; });
  table.Optional("category", [of](uint32_t row) -> std::optional<int64_t> {
    const uint32_t category = of.Of(row).category.At(of.RowOf(row));
    if (category == 0) return std::nullopt;
    return category;
  });
  table.Optional("step", [start, &trace](uint32_t row) { return StepNumberAt(trace, start(row)); });
  return table;
}

}  // namespace

void AddHostTables(const Trace& trace, const ParquetTarget& target, const AddParquetTable& add) {
  add(ApiTable(trace, target));
  add(RangeTable(trace, target));
}

}  // namespace ranktap::collector
