// Work on streams as Perfetto's GpuRenderStageEvent: complete events that may overlap, on the
// hardware queues of a GPU, which trace processors of 2026 show by process and with a table of
// kernels. Calls name what they launched by event id.
#include <fmt/core.h>

#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "collector/export/cupti_names.h"
#include "collector/export/exporters.h"
#include "collector/export/json_text.h"
#include "collector/export/perfetto/perfetto_exporter.h"
#include "collector/export/perfetto/perfetto_fields.h"
#include "collector/trace/symbol_name.h"
#include "collector/trace/table_merge.h"

namespace ranktap::collector {
namespace {

using protozero::pbf_writer;
namespace stage = perfetto::stage;
namespace interned = perfetto::interned;

constexpr uint64_t kQueueId = 5;  // after the kinds of work, which are LaunchArrows::Tables + 1
constexpr uint64_t kNotLaunched = uint64_t{1} << 62;  // event ids of work without an arrow

class StageWriter {
 public:
  explicit StageWriter(PerfettoTrace* state)
      : state_(*state),
        trace_(state->trace),
        packets_(*state->packets),
        sequences_(trace_.lanes.size()) {}

  void Write() {
    std::vector<MergedTable> tables;
    for (const DeviceWork* const work : LaunchArrows::Tables(trace_)) {
      tables.push_back({&work->start, &work->end});
    }
    MergeTables(tables, [this](size_t table, size_t row) { WriteWork(table, row); });
  }

 private:
  static uint64_t ContextId(const Lane& lane) { return lane.context == 0 ? 1 : lane.context; }

  PerfettoTrack* SequenceOf(uint32_t lane_id, int64_t start) {
    PerfettoTrack*& track = sequences_[lane_id];
    if (track != nullptr) return track;
    const Lane& lane = trace_.lanes[lane_id];
    std::string bytes;
    pbf_writer writer(bytes);
    {
      pbf_writer context(writer, interned::kGraphicsContexts);
      context.add_uint64(interned::kId, ContextId(lane));
      context.add_int32(interned::kContextPid, static_cast<int32_t>(state_.pid));
      context.add_enum(interned::kContextApi, interned::kCuda);
    }
    const auto specify = [&writer](uint64_t id, std::string_view name, int category) {
      pbf_writer entry(writer, interned::kGpuSpecifications);
      entry.add_uint64(interned::kId, id);
      perfetto::AddText(&entry, interned::kText, name);
      entry.add_enum(interned::kSpecificationCategory, category);
    };
    specify(1, "Kernel", interned::kComputeStage);
    specify(2, "Memcpy", interned::kOtherStage);
    specify(3, "Memset", interned::kOtherStage);
    specify(4, "CUDA graph", interned::kComputeStage);
    // GPUs of different ranks may have one number.
    const auto rank = trace_.info.rank;
    specify(kQueueId,
            fmt::format("{}stream {}", rank ? fmt::format("rank {} ", *rank) : "",
                        StreamNumber(lane.stream)),
            interned::kOtherStage);
    return track = packets_.AddStages(bytes, start);
  }

  void WriteWork(size_t table, size_t row) {
    const DeviceWork& work = *LaunchArrows::Tables(trace_)[table];
    const int64_t start = work.start[row], end = work.end[row];
    if (start == kUntimed || !state_.options.Keeps(start, end)) return;
    const Lane& lane = trace_.lanes[work.lane[row]];
    PerfettoTrack* const track = SequenceOf(work.lane[row], start + state_.shift_ns);
    const uint64_t arrow = state_.arrows.To(table, row);
    event_.clear();
    pbf_writer event(event_);
    event.add_uint64(stage::kEventId, arrow != 0
                                          ? arrow
                                          : kNotLaunched | static_cast<uint64_t>(state_.pid) << 32 |
                                                ++not_launched_);
    event.add_uint64(stage::kDuration, static_cast<uint64_t>(end - start));
    event.add_uint64(stage::kContext, ContextId(lane));
    event.add_int32(stage::kGpu, static_cast<int32_t>(lane.device));
    event.add_uint64(stage::kQueue, kQueueId);
    event.add_uint64(stage::kStage, table + 1);
    AddExtra(&event, "correlation", work.correlation[row]);
    if (table == 0) {
      AddKernel(track, row, &event);
    } else if (table == 1) {
      const Copies& copies = trace_.copies;
      AddName(
          track,
          fmt::format("Memcpy {} ({} -> {})", CopyKindName(copies.copy_kind[row]),
                      MemoryKindName(copies.src_kind[row]), MemoryKindName(copies.dst_kind[row])),
          &event);
      if (copies.bytes_unknown.At(row) == 0) AddExtra(&event, "bytes", copies.bytes[row]);
    } else if (table == 2) {
      const Memsets& memsets = trace_.memsets;
      AddName(track, fmt::format("Memset ({})", MemoryKindName(memsets.memory_kind[row])), &event);
      if (memsets.bytes_unknown.At(row) == 0) AddExtra(&event, "bytes", memsets.bytes[row]);
    } else {
      AddName(track, fmt::format("CUDA graph {}", work.graph.At(row)), &event);
    }
    packets_.Stage(track, start + state_.shift_ns, event_);
  }

  void AddKernel(PerfettoTrack* track, size_t row, pbf_writer* event) {
    const uint32_t string = trace_.kernels.name[row];
    const uint32_t iid = state_.KernelName(string);
    packets_.Name(track, iid, [&] {
      const std::string_view mangled = trace_.dictionary.String(string);
      std::string name(SanitizedName(ReadableKernelName(mangled)));
      std::string bytes;
      {
        pbf_writer writer(bytes);
        pbf_writer kernel(writer, interned::kComputeKernels);
        kernel.add_uint64(interned::kId, iid);
        perfetto::AddText(&kernel, interned::kText, SanitizedName(mangled));
        perfetto::AddText(&kernel, interned::kDemangled, name);
      }
      packets_.Intern(track, bytes);
      return name;
    });
    event->add_uint64(stage::kKernel, iid);
    event->add_uint64(stage::kNameId, iid);
    const proto::LaunchShape* const shape = trace_.dictionary.Shape(trace_.kernels.shape[row]);
    if (shape == nullptr) return;
    pbf_writer launch(*event, stage::kLaunch);
    for (const auto& [tag, sides] :
         {std::pair(stage::kGrid, shape->grid), std::pair(stage::kBlock, shape->block)}) {
      pbf_writer dim(launch, tag);
      for (perfetto::Tag side = 1; side <= 3; ++side) dim.add_uint32(side, sides[side - 1]);
    }
    AddArgument(&launch, "registers_per_thread", shape->registers_per_thread);
    AddArgument(&launch, "shared_mem_static", shape->static_shared_bytes);
    AddArgument(&launch, "shared_mem_dynamic", shape->dynamic_shared_bytes);
  }

  static void AddArgument(pbf_writer* launch, std::string_view name, uint64_t value) {
    pbf_writer argument(*launch, stage::kArguments);
    perfetto::AddText(&argument, stage::kArgumentName, name);
    argument.add_uint64(stage::kArgumentUint, value);
  }
  static void AddExtra(pbf_writer* event, std::string_view name, uint64_t value) {
    pbf_writer extra(*event, stage::kExtraData);
    perfetto::AddText(&extra, stage::kExtraName, name);
    perfetto::AddText(&extra, stage::kExtraValue, std::to_string(value));
  }

  // A name that is not in the dictionary.
  void AddName(PerfettoTrack* track, const std::string& name, pbf_writer* event) {
    const auto known = own_names_.try_emplace(name, own_names_.size()).first->second;
    const uint32_t iid = state_.OwnName(2 * static_cast<uint32_t>(known) + 1);
    packets_.Name(track, iid, [&]() -> std::string_view { return name; });
    event->add_uint64(stage::kNameId, iid);
  }

  PerfettoTrace& state_;
  const Trace& trace_;
  PerfettoPackets& packets_;
  std::vector<PerfettoTrack*> sequences_;  // by lane
  std::map<std::string, size_t> own_names_;
  std::string event_;
  uint64_t not_launched_ = 0;
};

}  // namespace

void WritePerfettoStages(PerfettoTrace* state) { StageWriter(state).Write(); }

}  // namespace ranktap::collector
