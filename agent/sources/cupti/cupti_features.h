// The calls to make and to avoid with a CUPTI of a given version: one table, read once a session.
#pragma once

#include <cstdint>

#include "agent/sources/cupti/cupti_abi.h"

namespace ranktap::agent::cupti {

struct Features {
  // A null buffer is a refusal from 12.9 on; before, CUPTI writes to it.
  bool may_refuse_buffers;
  // A buffer for each thread instead of one that all lock. The attribute came with 12.3, but until
  // 12.6 U2 a flush was not safe beside it, and U1 and U2 have one number: on from 12.8. From 13.0
  // CUPTI does so by itself, but PyTorch's profiler switches it off as it ends.
  bool ask_for_buffers_per_thread;
  // Until 12.3 the type of thread ids may be set once only: a change raced with records being made.
  bool thread_id_type_once;
  // A callback when an error makes CUPTI finalize itself (12.2).
  bool tells_its_end;
  // API records for single entry points (12.5); before, it is all of a domain or none.
  bool api_records_by_call;
  // 12.6 to 12.9 and 13.0 want no timestamp callback (kernels without times): none is ever used, so
  // it is no column here.
  //
  // Correlation ids of graph launches are wrong in the second session of a process (13.1 U1 mends
  // it; since when is not said: 13.0 is our reading).
  bool graph_ids_wrong_in_later_sessions;
  // A launch by the runtime calls the driver's: callbacks for both cost four a launch. True: those
  // of the driver alone, two a launch, and the trace names its functions. Whether CUPTI tells of
  // every driver call inside a runtime's, and under the id that the kernel's record has, only a GPU
  // can show: so it is false everywhere, and RANKTAP_DRIVER_LAUNCHES makes it true to find out.
  bool launches_by_driver_alone;
  // To disable the kernel kind while kernels run may deadlock the program (13.0 U1 mends it): it
  // stays on between windows, and what it gives is thrown away.
  bool kernel_kind_stays;
  // Once whole graphs are recorded, the launch of a graph that was instantiated before ends the
  // process (12.4, 12.9 and 13.0 beside an H100 and an H200; 13.2 to 13.5 pass).
  bool whole_graphs_crash;
  // Every call into CUPTI is slower than the last (13.2, mended in 13.3): flush less often.
  bool calls_slow_down;
  // A long trace takes more and more CPU (13.4 U1 mends it): flush less often once it does.
  bool cpu_use_grows;
  // Beside a client of the second API, as one of several subscribers (cupti_second_api.h). NVIDIA's
  // guide promises that from 13.3 on, with a driver r610; only a GPU can show that both get all
  // their records. So it is false everywhere, and RANKTAP_SHARE_CUPTI makes it true to find out.
  bool shares_second_api;
  // Hardware tracing: before 13.4 U1 it corrupts the heap, leaks and gives zero times.
  bool may_use_hardware_events;
};

// Pure. A version between two known ones is treated as the older.
constexpr Features FeaturesOf(uint32_t version) {
  return {.may_refuse_buffers = version >= kVersion129,
          .ask_for_buffers_per_thread = version >= kVersion128,
          .thread_id_type_once = version < kVersion123,
          .tells_its_end = version >= kVersion122,
          .api_records_by_call = version >= kVersion125,
          .graph_ids_wrong_in_later_sessions = version >= kVersion130 && version < kVersion131u1,
          .launches_by_driver_alone = false,
          .kernel_kind_stays = version < kVersion130u1,
          .whole_graphs_crash = version < kVersion132,
          .calls_slow_down = version >= kVersion132 && version < kVersion133,
          .cpu_use_grows = version < kVersion134u1,
          .shares_second_api = false,
          .may_use_hardware_events = version >= kVersion134u1};
}

}  // namespace ranktap::agent::cupti
