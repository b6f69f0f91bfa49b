// The columns of each table, listed once: what cuts a table back, sorts it and measures it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// Calls visit(column) for every column of the table, optional ones included.
template <typename Visit>
void ForEachColumnOf(DeviceWork& work, Visit&& visit) {
  visit(work.start), visit(work.end), visit(work.correlation), visit(work.lane);
  visit(work.launch), visit(work.graph), visit(work.graph_node), visit(work.channel);
  visit(work.channel_type), visit(work.op), visit(work.external_id);
}
template <typename Visit>
void ForEachColumnOf(Kernels& kernels, Visit&& visit) {
  ForEachColumnOf(static_cast<DeviceWork&>(kernels), visit);
  visit(kernels.name), visit(kernels.shape), visit(kernels.grid_id);
  visit(kernels.device_launched), visit(kernels.collective);
}
template <typename Visit>
void ForEachColumnOf(Copies& copies, Visit&& visit) {
  ForEachColumnOf(static_cast<DeviceWork&>(copies), visit);
  visit(copies.bytes), visit(copies.copy_kind), visit(copies.src_kind), visit(copies.dst_kind);
  visit(copies.flags), visit(copies.peer), visit(copies.src_device), visit(copies.dst_device);
  visit(copies.src_context), visit(copies.dst_context), visit(copies.copies);
  visit(copies.reported_bandwidth), visit(copies.bytes_unknown);
}
template <typename Visit>
void ForEachColumnOf(Memsets& memsets, Visit&& visit) {
  ForEachColumnOf(static_cast<DeviceWork&>(memsets), visit);
  visit(memsets.bytes), visit(memsets.value), visit(memsets.memory_kind), visit(memsets.flags);
  visit(memsets.reported_bandwidth), visit(memsets.bytes_unknown);
}
template <typename Visit>
void ForEachColumnOf(GraphLaunches& launches, Visit&& visit) {
  ForEachColumnOf(static_cast<DeviceWork&>(launches), visit);
  visit(launches.end_device), visit(launches.end_context);
}
template <typename Visit>
void ForEachColumnOf(Syncs& syncs, Visit&& visit) {
  visit(syncs.start), visit(syncs.end), visit(syncs.correlation), visit(syncs.context);
  visit(syncs.stream), visit(syncs.cuda_event), visit(syncs.type);
  visit(syncs.cuda_event_sync_id), visit(syncs.record_correlation), visit(syncs.record_stream),
      visit(syncs.stream_as_unsigned), visit(syncs.status);
}
template <typename Visit>
void ForEachColumnOf(ApiCalls& calls, Visit&& visit) {
  visit(calls.start), visit(calls.end), visit(calls.correlation), visit(calls.api);
  visit(calls.writer), visit(calls.status), visit(calls.stack), visit(calls.external_id);
}
template <typename Visit>
void ForEachColumnOf(EventCalls& calls, Visit&& visit) {
  ForEachColumnOf(static_cast<ApiCalls&>(calls), visit);
  visit(calls.event), visit(calls.stream);
}
template <typename Visit>
void ForEachColumnOf(Ranges& ranges, Visit&& visit) {
  visit(ranges.start), visit(ranges.end), visit(ranges.name), visit(ranges.domain);
  visit(ranges.writer), visit(ranges.depth), visit(ranges.kind), visit(ranges.unfinished);
  visit(ranges.category), visit(ranges.color), visit(ranges.payload_type);
  visit(ranges.payload), visit(ranges.inline_payload), visit(ranges.payload_dropped);
}

template <typename Visit>
void ForEachColumnOf(Operators& ops, Visit&& visit) {
  visit(ops.start), visit(ops.end), visit(ops.name), visit(ops.writer), visit(ops.kind);
  visit(ops.parent), visit(ops.external_id), visit(ops.record_function), visit(ops.sequence);
  visit(ops.forward_thread), visit(ops.scope), visit(ops.shapes), visit(ops.strides);
  visit(ops.types), visit(ops.values), visit(ops.stack), visit(ops.module_hierarchy);
  visit(ops.collective), visit(ops.stream), visit(ops.flops), visit(ops.output_shapes);
  visit(ops.output_types);
}
template <typename Visit>
void ForEachColumnOf(PythonCalls& calls, Visit&& visit) {
  visit(calls.start), visit(calls.end), visit(calls.name), visit(calls.writer), visit(calls.id);
  visit(calls.parent_id), visit(calls.module_id), visit(calls.module_path);
}
template <typename Visit>
void ForEachColumnOf(Flows& flows, Visit&& visit) {
  visit(flows.start), visit(flows.end), visit(flows.from_writer), visit(flows.to_writer);
  visit(flows.id), visit(flows.kind);
}
template <typename Visit>
void ForEachColumnOf(DeviceAnnotations& annotations, Visit&& visit) {
  visit(annotations.start), visit(annotations.end), visit(annotations.name);
  visit(annotations.lane), visit(annotations.external_id), visit(annotations.stream_unsaid);
}
template <typename Visit>
void ForEachColumnOf(Allocations& allocations, Visit&& visit) {
  visit(allocations.start), visit(allocations.end), visit(allocations.writer);
  visit(allocations.bytes), visit(allocations.address), visit(allocations.device_type);
  visit(allocations.device), visit(allocations.allocated), visit(allocations.reserved);
  visit(allocations.category), visit(allocations.relabelled), visit(allocations.stack);
  visit(allocations.owner);
}
template <typename Visit>
void ForEachColumnOf(CounterSamples& samples, Visit&& visit) {
  visit(samples.start), visit(samples.end), visit(samples.name), visit(samples.device);
  visit(samples.value);
}

// Calls visit(table) for every table, or visit(rows) for every kind kept as structs.
template <typename AnyTrace, typename Visit>  // Trace or const Trace
void ForEachTable(AnyTrace& trace, Visit&& visit) {
  visit(trace.kernels), visit(trace.copies), visit(trace.memsets), visit(trace.graph_launches);
  visit(trace.syncs), visit(trace.api_calls), visit(trace.event_calls);
  visit(trace.ranges), visit(trace.marks), visit(trace.operators), visit(trace.python_calls);
  visit(trace.flows), visit(trace.device_annotations), visit(trace.allocations);
  visit(trace.counters);
}
inline constexpr size_t kTables = 15;
template <typename Visit>
void ForEachRows(Trace& trace, Visit&& visit) {
  visit(trace.cuda_events), visit(trace.names), visit(trace.memory), visit(trace.memory_pools);
  visit(trace.overheads), visit(trace.contexts), visit(trace.streams), visit(trace.resources);
  visit(trace.jits);
}
inline constexpr size_t kRowKinds = 9;

template <typename Table>
void TruncateTable(Table& table, size_t rows) {
  ForEachColumnOf(table, [rows](auto& column) { column.Truncate(rows); });
}

// to[i] = from[order[i]], of values of `bytes` bytes each: 1, 2, 4 or 8.
void GatherValues(const void* from, size_t bytes, const std::vector<uint32_t>& order, void* to);

// Row i becomes what row order[i] was. Columns shorter than the table read as zero beyond their
// end.
template <typename Table>
void PermuteTable(Table& table, const std::vector<uint32_t>& order) {
  const size_t rows = table.size();
  ForEachColumnOf(table, [&](auto& column) {
    if (column.empty()) return;
    column.PadTo(rows);
    std::remove_reference_t<decltype(column)> sorted;
    if constexpr (PackedColumn<decltype(sorted)>) {
      std::vector<typename decltype(sorted)::Value> values(order.size());
      for (size_t i = 0; i < order.size(); ++i) values[i] = column[order[i]];
      sorted.Append(values);
    } else {
      auto* const out = sorted.Grow(order.size());
      GatherValues(column.data(), sizeof(*out), order, out);
    }
    column = std::move(sorted);
  });
}

// Rows [begin, end) that are not sorted by start, while all before them begin no later than any of
// them, and all behind them no earlier.
struct UnsortedRows {
  uint32_t begin = 0, end = 0;
  int64_t latest = 0;  // start
};

// Few and short in traces: a trace is a few sorted rows woven together.
std::vector<UnsortedRows> FindUnsorted(const TimeColumn& starts);

// Sorts each table by start; rows of equal start keep their order. Columns that are not as long as
// their table (optional, or not filled yet) read as zero beyond their end.
void SortTables(Trace* trace);

// Nested things: by start, of equal starts the longer first; equal spans keep their order.
template <typename Table>
void SortNested(Table& table) {
  const auto before = [&table](uint32_t a, uint32_t b) {
    return table.start[a] != table.start[b] ? table.start[a] < table.start[b]
                                            : table.end[a] > table.end[b];
  };
  std::vector<uint32_t> order(table.size());
  std::iota(order.begin(), order.end(), 0u);
  if (std::is_sorted(order.begin(), order.end(), before)) return;
  std::stable_sort(order.begin(), order.end(), before);
  PermuteTable(table, order);
}

// Gives back what the columns of all tables reserved and do not use.
void ShrinkTables(Trace* trace);

}  // namespace ranktap::collector
