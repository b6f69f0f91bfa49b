#include "tests/fakes/cupti/cupti_script.h"

#include <cupti.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakes/cupti/callback_names.h"
#include "tests/fakes/cupti/refusal.h"

namespace ranktap::standin {
namespace {

uint64_t Number(const char* name, uint64_t fallback) {
  const char* text = Machine() == nullptr ? nullptr : Machine()->setting(name);
  return text == nullptr ? fallback : strtoull(text, nullptr, 10);
}

bool Is(const char* name, const char* value) {
  const char* text = Machine() == nullptr ? nullptr : Machine()->setting(name);
  return text != nullptr && strcmp(text, value) == 0;
}

bool IsBetween(const CuptiScript& script, uint32_t first, uint32_t end) {
  return script.version >= first && script.version < end;
}

CuptiScript Read() {
  CuptiScript script{};
  script.version = static_cast<uint32_t>(Number("CUPTI_VERSION", kLibraryVersion));
  script.layout = static_cast<uint32_t>(Number("CUPTI_VERSION", kLibraryLayout));
  script.grow_records = Number("GROW_RECORDS", 0);
  script.drop_every = Number("DROP_EVERY", 0);
  script.lose_every = Number("LOSE_EVERY", 0);
  script.unknown_kind_every = Number("UNKNOWN_KIND_EVERY", 0);
  script.zero_times_every = Number("ZERO_TIMES_EVERY", 0);
  script.swap_times_every = Number("SWAP_TIMES_EVERY", 0);
  script.tick_times_every = Number("TICK_TIMES_EVERY", 0);
  script.stale_clock = Number("STALE_CLOCK", 0);
  script.clock_zeroes = Number("CLOCK_ZEROES", 0) != 0;
  script.clock_jitter_ns = Number("CLOCK_JITTER_NS", 0);
  script.fatal_after = Number("FATAL_AFTER", 0);
  script.correlation_by_api_kinds = Is("CORRELATION", "api-kinds");
  script.graph_ids_wrong = Number("GRAPH_IDS_WRONG", 0) != 0;
  script.late_us = Number("LATE_US", 300);
  script.reverse_buffers = Number("REVERSE_BUFFERS", 0) != 0;
  script.reenter_on_request = Number("REENTER_ON_REQUEST", 0) != 0;
  script.device_buffer_records = Number("DEVICE_BUFFER_RECORDS", 100'000);
  // As each version does, or is said to do: from 13.3 on it is late, before 13.4 U1 it takes more
  // and more CPU, from 13.2 on there is a second API, from 13.3 on for several.
  script.late_version = Number("LATE_VERSION", IsBetween(script, 130'300, 140'000)) != 0;
  script.flush_grows_us = Number("FLUSH_GROWS_US", IsBetween(script, 18, 130'401) ? 2 : 0);
  script.one_api = IsBetween(script, 130'200, 140'000);
  script.several_subscribers = IsBetween(script, 130'300, 140'000);
  script.old_graphs_crash = IsBetween(script, 18, 130'200);
  script.old_graphs_silent = Is("OLD_GRAPHS", "silent");
  script.hardware_events = static_cast<int>(Number("HARDWARE_EVENTS", CUPTI_ERROR_NOT_SUPPORTED));
  script.hardware_events_late = static_cast<int>(Number("HARDWARE_EVENTS_LATE", 0));
  script.overhead_of_requests = Number("OVERHEAD_OF_REQUESTS", 0) != 0;
  script.worker_records = Number("WORKER_RECORDS", 0) != 0;
  script.hang_in = Machine() == nullptr ? nullptr : Machine()->setting("HANG_IN");
  script.subscribe_owned = Is("SUBSCRIBE", "owned");
  script.hang_in_fork_child = Number("HANG_IN_FORK_CHILD", 0) != 0;
  return script;
}

}  // namespace

const CuptiScript& Script() {
  static thread_local CuptiScript script;
  static thread_local uint64_t generation = 0;
  uint64_t now = Machine() == nullptr ? 1 : Machine()->settings_generation();
  if (generation != now) {
    script = Read();
    generation = now;
  }
  return script;
}

}  // namespace ranktap::standin
