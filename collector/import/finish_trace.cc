#include "collector/import/finish_trace.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "collector/trace/launch_join.h"
#include "collector/trace/operator_join.h"
#include "collector/trace/table_columns.h"

namespace ranktap::collector {

namespace {

// Rows of equal start, in an order that does not come from the file: files of whole microseconds
// have many. `key(row)` is compared where starts are equal.
template <typename Table, typename Key>
void SortTies(Table* table, Key&& key) {
  const auto rows = static_cast<uint32_t>(table->size());
  std::vector<uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0u);
  bool any = false;
  for (uint32_t first = 0, end = 0; first < rows; first = end) {
    for (end = first + 1; end < rows && table->start[end] == table->start[first];) ++end;
    if (end == first + 1) continue;
    any = true;
    std::stable_sort(order.begin() + first, order.begin() + end,
                     [&key](uint32_t a, uint32_t b) { return key(a) < key(b); });
  }
  if (any && !std::is_sorted(order.begin(), order.end())) PermuteTable(*table, order);
}

void SortWorkTies(const Trace& trace, DeviceWork* work, auto&& sort) {
  sort([&trace, work](uint32_t i) {
    const Lane& lane = trace.lanes[work->lane[i]];
    return std::tuple(work->end[i], work->correlation[i], lane.device, lane.stream);
  });
}

void SortAllTies(Trace* trace) {
  const auto thread = [trace](uint16_t writer) {
    return writer < trace->writers.size() ? trace->writers[writer].thread : 0;
  };
  SortWorkTies(*trace, &trace->kernels, [&](auto&& key) { SortTies(&trace->kernels, key); });
  SortWorkTies(*trace, &trace->copies, [&](auto&& key) { SortTies(&trace->copies, key); });
  SortWorkTies(*trace, &trace->memsets, [&](auto&& key) { SortTies(&trace->memsets, key); });
  const Syncs& syncs = trace->syncs;
  SortTies(&trace->syncs, [&syncs](uint32_t i) {
    return std::tuple(syncs.end[i], syncs.correlation[i], syncs.stream[i]);
  });
  // Among things that nest the longer first; among equal spans the one that began first, as torch
  // numbers them.
  const ApiCalls& calls = trace->api_calls;
  SortTies(&trace->api_calls, [&, trace](uint32_t i) {
    return std::tuple(-calls.end[i], calls.correlation[i], thread(calls.writer[i]),
                      trace->dictionary.Api(calls.api[i]).name);
  });
  const Operators& ops = trace->operators;
  SortTies(&trace->operators, [&, trace](uint32_t i) {
    return std::tuple(-ops.end[i], ops.external_id.At(i), thread(ops.writer[i]),
                      trace->dictionary.String(ops.name[i]));
  });
  const PythonCalls& python = trace->python_calls;
  SortTies(&trace->python_calls, [&, trace](uint32_t i) {
    return std::tuple(-python.end[i], python.id.At(i), thread(python.writer[i]),
                      trace->dictionary.String(python.name[i]));
  });
}

}  // namespace

void FinishTrace(Trace* trace) {
  SortTables(trace);
  SortAllTies(trace);
  JoinLaunches(trace);
  NestOperators(trace);
  JoinOperators(trace);
  bool any = false;
  ForEachTable(*trace, [&](auto& table) {
    for (size_t i = 0; i < table.size(); ++i) {
      trace->first_ns = any ? std::min(trace->first_ns, table.start[i]) : table.start[i];
      trace->last_ns = any ? std::max(trace->last_ns, table.end[i]) : table.end[i];
      any = true;
    }
  });
  ShrinkTables(trace);
}

void CloseTrace(const std::string& writer, uint64_t file_bytes, Trace* trace) {
  trace->closed = true;
  trace->info.events = trace->events;
  trace->info.bytes = file_bytes;
  trace->info.status = TraceStatus::kClosed;
  if (trace->info.executable.empty()) trace->info.executable = writer;
}

}  // namespace ranktap::collector
