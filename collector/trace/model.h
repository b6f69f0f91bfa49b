// A trace in memory: one table per kind of event, one column per field, sorted by start.
//
// All times are nanoseconds of the rank's CLOCK_MONOTONIC_RAW. Rows refer to each other and to
// names by number (kNone: to nothing). An OptionalColumn is as long as its last value that is not
// 0. Filled by trace_loader.h, then read-only: any number of threads may read.
//
// High-volume tables hold at most 40 B an event. Rare kinds keep the structs of proto/events.h,
// with host and device times mapped in place and ArenaRef members holding dictionary ids.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "collector/file/run_info.h"
#include "collector/file/trace_reader.h"
#include "collector/trace/clock_map.h"
#include "collector/trace/column.h"
#include "collector/trace/dictionary.h"
#include "collector/trace/kernel_counters.h"
#include "collector/trace/memo.h"
#include "collector/trace/operators.h"
#include "collector/trace/packed_column.h"
#include "collector/trace/symbol_table.h"
#include "proto/events.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/trace.pb.h"

namespace ranktap::collector {

// Start and end of a device record that CUPTI delivered without times. They sort first.
inline constexpr int64_t kUntimed = std::numeric_limits<int64_t>::min();

// The place where work of a device runs. Numbers are CUPTI's; a stream may be kNone.
struct Lane {
  uint32_t device = 0, context = 0, stream = 0;
  bool operator==(const Lane&) const = default;
};
// As other tools write it: -1 where a file says that work ran on none.
inline int64_t StreamNumber(uint32_t stream) { return stream == kNone ? -1 : int64_t{stream}; }

// Columns of everything that occupies a stream.
struct DeviceWork {
  TimeColumn start, end;
  Column<uint32_t> correlation;
  IdColumn lane;            // index into Trace::lanes
  Column<uint32_t> launch;  // row of api_calls that caused it
  OptionalColumn<uint32_t> graph;
  OptionalColumn<uint64_t> graph_node;
  OptionalColumn<uint32_t> channel;
  OptionalColumn<uint8_t> channel_type;
  // 1 + row of the operator or annotation that caused it; 0: none is known. JoinOperators().
  OptionalColumn<uint32_t> op;
  OptionalColumn<uint32_t> external_id;  // Operators::external_id, where the record names one
  size_t size() const { return start.size(); }
};

struct Kernels : DeviceWork {
  IdColumn name;   // Dictionary::String, mangled
  IdColumn shape;  // Dictionary::Shape
  OptionalColumn<uint64_t> grid_id;
  OptionalColumn<uint8_t> device_launched;
  OptionalColumn<uint32_t> collective;  // 1 + index into Trace::collectives
};

struct Copies : DeviceWork {
  Column<uint64_t> bytes;
  Column<uint8_t> copy_kind, src_kind, dst_kind;
  OptionalColumn<uint8_t> flags, peer;
  OptionalColumn<uint32_t> src_device, dst_device, src_context, dst_context;
  OptionalColumn<uint64_t> copies;
  OptionalColumn<double> reported_bandwidth;  // GB/s, where the file of another tool names one
  OptionalColumn<uint8_t> bytes_unknown;      // 1: the file of another tool does not say `bytes`
};

struct Memsets : DeviceWork {
  Column<uint64_t> bytes;
  OptionalColumn<uint32_t> value;
  Column<uint16_t> memory_kind;
  OptionalColumn<uint16_t> flags;
  OptionalColumn<double> reported_bandwidth;
  OptionalColumn<uint8_t> bytes_unknown;
};

struct GraphLaunches : DeviceWork {  // `graph` is the graph that ran
  OptionalColumn<uint32_t> end_device, end_context;
};

struct Syncs {
  TimeColumn start, end;
  Column<uint32_t> correlation, context, stream, cuda_event;
  Column<uint8_t> type;
  OptionalColumn<uint64_t> cuda_event_sync_id;
  // 1: an older Kineto wrote the stream of a whole context as 2^32 - 1, which HTA takes for one.
  OptionalColumn<uint8_t> stream_as_unsigned;
  OptionalColumn<uint32_t> record_correlation;  // of the cudaEventRecord that is waited for
  OptionalColumn<uint32_t> record_stream;       // 1 + the stream it was called for
  OptionalColumn<int32_t> status;
  size_t size() const { return start.size(); }
};

struct ApiCalls {
  TimeColumn start, end;
  Column<uint32_t> correlation;
  IdColumn api;             // Dictionary::Api
  Column<uint16_t> writer;  // index into Trace::writers
  OptionalColumn<int32_t> status;
  OptionalColumn<uint32_t> stack;
  OptionalColumn<uint32_t> external_id;  // Operators::external_id
  size_t size() const { return start.size(); }
};

struct EventCalls : ApiCalls {
  OptionalColumn<uint64_t> event, stream;
};

enum class RangeKind : uint8_t { kPushPop, kStartEnd, kMark };

// NVTX ranges, and marks (in a table of their own, end == start).
struct Ranges {
  TimeColumn start, end;
  IdColumn name;            // Dictionary::String
  Column<uint16_t> domain;  // Dictionary::Domain
  Column<uint16_t> writer;
  Column<uint16_t> depth;  // open ranges of the writer and domain when this one began
  Column<uint8_t> kind;    // RangeKind
  // 1: its end was never seen (death, gap, lost events); `end` is then the last moment it can have
  // been open.
  OptionalColumn<uint8_t> unfinished;
  OptionalColumn<uint32_t> category, color, payload_type;
  OptionalColumn<uint64_t> payload;          // the value, by payload_type
  OptionalColumn<uint32_t> inline_payload;   // 1 + index into Trace::payloads
  OptionalColumn<uint32_t> payload_dropped;  // bytes
  size_t size() const { return start.size(); }
};

struct Writer {
  uint32_t id = 0;
  uint32_t kind = 0;  // proto::WriterKind
  int32_t thread = 0;
  std::string name;
  uint64_t events = 0;       // stored
  uint64_t first_event = 0;  // position of the first one in this file
  uint64_t next_event = 0;
  proto::LossCounts lost{};      // the agent's own counters, the largest seen
  proto::LossCounts declared{};  // positions that the collector declared lost (v1.LostRange)
  bool has_account = false;
  v1::Account account;
};

struct Gap {
  int64_t start = 0, end = 0;
  bool open = false;  // `end` is the end of the trace
  v1::Gap::Reason reason{};
  std::string source, detail;
};

struct OpenCall {
  uint32_t writer = 0;  // index
  uint32_t api = 0;
  uint32_t correlation = 0;
  int64_t since = 0;
};

// The origin of a trace. Only captures have writers with accounts, gaps and losses. kExecution: an
// execution trace without times of its own; its rows stand in their order. kChakra: an .et file.
enum class TraceOrigin : uint8_t { kCapture, kKineto, kNsys, kMemory, kExecution, kChakra };

struct Trace {
  Trace();
  Trace(Trace&&) noexcept;
  Trace& operator=(Trace&&) noexcept;
  ~Trace();

  std::string path;
  TraceOrigin origin = TraceOrigin::kCapture;
  bool is_ours() const { return origin == TraceOrigin::kCapture; }
  TraceInfo info;
  v1::Hello hello;
  v1::Ending ending;
  Dictionary dictionary;
  SymbolTable symbols;  // of the stacks; empty until collector/symbols fills it
  // Start of the first slice in a file of Kineto's; kUntimed: not read from one. For --hta-compat.
  int64_t first_in_file = kUntimed;
  std::vector<Lane> lanes;
  std::vector<Writer> writers;

  Kernels kernels;
  Copies copies;
  Memsets memsets;
  GraphLaunches graph_launches;
  Syncs syncs;
  ApiCalls api_calls;
  EventCalls event_calls;
  Ranges ranges, marks;
  Operators operators;
  std::vector<TensorUse> tensor_uses;
  PythonCalls python_calls;
  Flows flows;
  DeviceAnnotations device_annotations;
  Allocations allocations;
  CounterSamples counters;
  KernelCounters kernel_counters;
  std::vector<Collective> collectives;
  std::vector<ProcessGroup> process_groups;
  std::vector<proto::CudaEventEvent> cuda_events;
  std::vector<proto::NameEvent> names;
  std::vector<proto::MemoryEvent> memory;
  std::vector<proto::MemoryPoolEvent> memory_pools;
  std::vector<proto::OverheadEvent> overheads;
  std::vector<proto::ContextEvent> contexts;
  std::vector<proto::StreamEvent> streams;
  std::vector<proto::ResourceEvent> resources;
  std::vector<proto::JitEvent> jits;
  // {u64 schema id, u64 bytes, data padded to 8}*, as the agent copied them.
  std::vector<std::string> payloads;

  std::vector<Gap> gaps;
  std::vector<OpenCall> open_calls;
  v1::Cost cost;  // the last one
  bool after_death = false;
  std::vector<Damage> damage;
  bool closed = false;

  ClockMap host_clock, device_clock;
  double host_ns_per_tick = 1.0;
  int64_t realtime_offset_ns = 0;  // CLOCK_REALTIME - CLOCK_MONOTONIC_RAW at the last reading
  bool has_clock = false;
  // What the importer took off a trace's times, so that the first day of them fits a double's
  // precision; CLOCK_REALTIME where the file says what its times count from.
  int64_t base_time_ns = 0;
  int64_t first_ns = 0, last_ns = 0;  // of all events with times; both 0 when there are none
  uint64_t events = 0;                // stored in the file
  bool dropped_before = false;        // by --keep; what began before and lasts is there
  uint64_t unmatched_pops = 0;        // ends of ranges that began before the trace
  uint64_t unknown_events = 0;        // of kinds newer than this build
  // Events that the importer does not know what to do with, and which they are most ("device events
  // of category x").
  uint64_t not_read = 0;
  std::string not_read_most;

  Memo memo;  // of the analyses; reset by whoever changes a table after one has run
};

}  // namespace ranktap::collector
