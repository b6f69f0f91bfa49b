// What the stand-in's CUPTI was told to do: the settings of tests/fakes/README.md that concern it.
#pragma once

#include <cstdint>

namespace ranktap::standin {

struct CuptiScript {
  uint32_t version;               // CUPTI_VERSION
  uint32_t layout;                // the version whose records are written
  uint64_t grow_records;          // GROW_RECORDS, bytes
  uint64_t drop_every;            // DROP_EVERY: each n-th record is lost, and counted as dropped
  uint64_t lose_every;            // LOSE_EVERY: lost without a word
  uint64_t unknown_kind_every;    // UNKNOWN_KIND_EVERY: a record of another kind before each n-th
  uint64_t zero_times_every;      // ZERO_TIMES_EVERY
  uint64_t swap_times_every;      // SWAP_TIMES_EVERY: end before start
  uint64_t tick_times_every;      // TICK_TIMES_EVERY: of another clock, as if they were nanoseconds
  uint64_t stale_clock;           // STALE_CLOCK: device records after a late timestamp callback
  bool clock_zeroes;              // CLOCK_ZEROES: device records without times after one
  uint64_t clock_jitter_ns;       // CLOCK_JITTER_NS
  uint64_t fatal_after;           // FATAL_AFTER: records, then CUPTI ends itself
  bool correlation_by_api_kinds;  // CORRELATION=api-kinds
  bool graph_ids_wrong;           // GRAPH_IDS_WRONG: from the second subscription on
  uint64_t late_us;               // LATE_US: so long after a flush buffers come
  bool reverse_buffers;           // REVERSE_BUFFERS: newest buffer first
  bool reenter_on_request;        // REENTER_ON_REQUEST: a callback from inside bufferRequested
  uint64_t device_buffer_records;  // DEVICE_BUFFER_RECORDS: of which so many fit into 3.2 MB
  uint64_t flush_grows_us;         // FLUSH_GROWS_US: of CPU, with each flush
  bool late_version;               // LATE_VERSION
  bool old_graphs_silent;          // OLD_GRAPHS=silent
  bool old_graphs_crash;           // beside whole graphs, as 12.4 to 13.0 do on an H200
  bool one_api;                    // there is a second API, and after it no first
  bool several_subscribers;        // of the second API
  int hardware_events;             // HARDWARE_EVENTS: the answer to whoever asks for them
  int hardware_events_late;   // HARDWARE_EVENTS_LATE: the error told with the first work after it
  bool overhead_of_requests;  // OVERHEAD_OF_REQUESTS: an overhead record per buffer request
  bool worker_records;        // WORKER_RECORDS: device records come in buffers of a thread of ours
  const char* hang_in;        // HANG_IN, or null
  bool subscribe_owned;       // SUBSCRIBE=owned
  bool hang_in_fork_child;    // HANG_IN_FORK_CHILD
};

// This thread's copy, brought up to date when a setting has changed.
const CuptiScript& Script();

}  // namespace ranktap::standin
