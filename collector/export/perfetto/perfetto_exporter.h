#pragma once

#include <optional>
#include <span>
#include <string>

#include "collector/export/export_options.h"
#include "collector/export/launch_arrows.h"
#include "collector/export/perfetto/perfetto_packets.h"
#include "collector/file/result.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The state of one trace that the exporter's parts share.
struct PerfettoTrace {
  const Trace& trace;
  int64_t shift_ns;       // to be added to the trace's times
  ExportOptions options;  // the window on the trace's own clock
  int64_t pid;            // in the file
  uint64_t process;       // uuid of the process' track
  int order_in_process = 0;
  LaunchArrows arrows;
  uint64_t first_framework_arrow;
  PerfettoPackets* packets;

  // Event names have one number each: the dictionary's strings as kernel names and as others, then
  // API functions, then those that are made up here.
  uint32_t KernelName(uint32_t string) const { return 1 + 2 * string; }
  uint32_t StringName(uint32_t string) const { return 2 + 2 * string; }
  uint32_t ApiName(uint32_t api) const {
    return 1 + 2 * static_cast<uint32_t>(trace.dictionary.strings()) + api;
  }
  uint32_t OwnName(uint32_t n) const {
    return ApiName(static_cast<uint32_t>(trace.dictionary.apis())) + n;
  }
};

// The program's threads, and the beginnings of the arrows.
void WritePerfettoHost(PerfettoTrace* state);
// The devices' work, and the ends of the arrows.
void WritePerfettoDevices(PerfettoTrace* state);
// The part of that which is work on streams, as GpuRenderStageEvent.
void WritePerfettoStages(PerfettoTrace* state);

}  // namespace ranktap::collector
