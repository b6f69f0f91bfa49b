// The devices' side of a Kineto trace.
#include <fmt/core.h>

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/export/chrome/chrome_events.h"
#include "collector/export/cupti_names.h"
#include "collector/export/occupancy.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

// CUPTI's "not about a stream", "not about an event".
constexpr uint32_t kNoStream = 0xffffffff;
constexpr uint32_t kNoEvent = 0xffffffff;

class DeviceWriter {
 public:
  DeviceWriter(const Trace& trace, ChromeEvents* events) : trace_(trace), events_(events) {}

  void Write() {
    WriteKernels();
    WriteCopies();
    WriteMemsets();
    WriteGraphLaunches();
    WriteSyncs();
    WriteOverheads();
    WriteFlows();
  }

 private:
  bool Kept(int64_t start, int64_t end) const {
    return start != kUntimed && events_->options().Keeps(start, end);
  }

  // Quoted and escaped once.
  const std::string& KernelName(uint32_t id) {
    if (id >= kernel_names_.size()) kernel_names_.resize(id + 1);
    std::string& name = kernel_names_[id];
    if (name.empty()) {
      JsonText text;
      std::string readable = SanitizedName(ReadableKernelName(trace_.dictionary.String(id)));
      constexpr std::string_view kToday = "ncclDevKernel", kBefore = "ncclKernel";
      if (events_->options().hta_compat && readable.starts_with(kToday)) {
        readable.replace(0, kToday.size(), kBefore);
      }
      text.Text(readable);
      name = text.str();
    }
    return name;
  }

  const v1::Device* DeviceNumbered(uint32_t id) const {
    for (const v1::Device& device : trace_.hello.devices()) {
      if (device.id() == id) return &device;
    }
    return nullptr;
  }

  void WriteExternalId(uint32_t id) {
    if (id != 0) events_->Arg("External id", id);
  }

  void WriteLaneArgs(const Lane& lane, uint32_t correlation) {
    events_->Arg("device", lane.device);
    events_->Arg("context", lane.context);
    events_->Arg("stream", StreamNumber(lane.stream));
    events_->Arg("correlation", correlation);
  }

  void WriteGraphArgs(const DeviceWork& work, size_t i) {
    if (work.graph.At(i) != 0) events_->Arg("graph id", work.graph.At(i));
    if (work.graph_node.At(i) != 0) events_->Arg("graph node id", work.graph_node.At(i));
  }

  void WriteKernels() {
    const Kernels& kernels = trace_.kernels;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (!Kept(kernels.start[i], kernels.end[i])) continue;
      const Lane& lane = trace_.lanes[kernels.lane[i]];
      events_->BeginSlice("kernel", KernelName(kernels.name[i]), lane.device,
                          StreamNumber(lane.stream), kernels.start[i], kernels.end[i]);
      WriteExternalId(kernels.external_id.At(i));
      events_->Arg("queued", 0);
      WriteLaneArgs(lane, kernels.correlation[i]);
      events_->json().Raw(ShapeArgs(kernels.shape[i], lane.device));
      WriteGraphArgs(kernels, i);
      WriteCollectiveArgs(trace_, kernels.collective.At(i), events_);
      if (kernels.channel.At(i) != 0 || kernels.channel_type.At(i) != 0) {
        events_->Arg("channel", kernels.channel.At(i));
        events_->Arg("channel_type", kernels.channel_type.At(i));
      }
      events_->EndArgs();
    }
  }

  // The same for every launch of a shape on a device: made once.
  const std::string& ShapeArgs(uint32_t shape_id, uint32_t device_id) {
    auto [at, is_new] = shape_args_.try_emplace(uint64_t{device_id} << 32 | shape_id);
    const proto::LaunchShape* const shape = trace_.dictionary.Shape(shape_id);
    if (!is_new || shape == nullptr) return at->second;
    JsonText text;
    const auto triple = [&text](std::string_view name, const uint32_t(&values)[3]) {
      text.Raw(",\"").Raw(name).Raw("\":[").Number(values[0]).Raw(",").Number(values[1]);
      text.Raw(",").Number(values[2]).Raw("]");
    };
    text.Raw(",\"registers per thread\":").Number(shape->registers_per_thread);
    text.Raw(",\"shared memory\":")
        .Number(uint64_t{shape->static_shared_bytes} + shape->dynamic_shared_bytes);
    const v1::Device* const device = DeviceNumbered(device_id);
    const auto occupancy =
        device != nullptr ? EstimateOccupancy(*device, *shape) : std::optional<Occupancy>();
    if (occupancy) {
      text.Raw(",\"blocks per SM\":").Number(occupancy->blocks_per_sm);
      text.Raw(",\"warps per SM\":").Number(occupancy->warps_per_sm);
    }
    triple("grid", shape->grid);
    triple("block", shape->block);
    if (occupancy && occupancy->percent) {
      text.Raw(",\"est. achieved occupancy %\":").Number(*occupancy->percent);
    }
    if (shape->cluster[0] != 0) triple("cluster", shape->cluster);
    if (shape->priority != 0) text.Raw(",\"priority\":").Number(shape->priority);
    return at->second = text.str();
  }

  void WriteBandwidth(uint64_t bytes, int64_t ns, double reported) {
    events_->Arg("bytes", bytes);
    if (reported != 0) return events_->Arg("memory bandwidth (GB/s)", reported);
    if (ns <= 0) return events_->TextArg("memory bandwidth (GB/s)", "N/A");
    events_->Arg("memory bandwidth (GB/s)", static_cast<double>(bytes) / static_cast<double>(ns));
  }

  void WriteCopies() {
    const Copies& copies = trace_.copies;
    for (size_t i = 0; i < copies.size(); ++i) {
      if (!Kept(copies.start[i], copies.end[i])) continue;
      const Lane& lane = trace_.lanes[copies.lane[i]];
      std::string name = "\"Memcpy ";
      name += CopyKindName(copies.copy_kind[i]);
      name += " (";
      name += MemoryKindName(copies.src_kind[i]);
      name += " -> ";
      name += MemoryKindName(copies.dst_kind[i]);
      name += ")\"";
      events_->BeginSlice("gpu_memcpy", name, lane.device, StreamNumber(lane.stream),
                          copies.start[i], copies.end[i]);
      if (copies.peer.At(i) != 0) {
        events_->Arg("fromDevice", copies.src_device.At(i));
        events_->Arg("inDevice", lane.device);
        events_->Arg("toDevice", copies.dst_device.At(i));
        events_->Arg("fromContext", copies.src_context.At(i));
        events_->Arg("inContext", lane.context);
        events_->Arg("toContext", copies.dst_context.At(i));
      }
      WriteExternalId(copies.external_id.At(i));
      WriteLaneArgs(lane, copies.correlation[i]);
      if (copies.bytes_unknown.At(i) == 0) {
        WriteBandwidth(copies.bytes[i], copies.end[i] - copies.start[i],
                       copies.reported_bandwidth.At(i));
      }
      WriteGraphArgs(copies, i);
      events_->EndArgs();
    }
  }

  void WriteMemsets() {
    const Memsets& memsets = trace_.memsets;
    for (size_t i = 0; i < memsets.size(); ++i) {
      if (!Kept(memsets.start[i], memsets.end[i])) continue;
      const Lane& lane = trace_.lanes[memsets.lane[i]];
      std::string name = "\"Memset (";
      name += MemoryKindName(memsets.memory_kind[i]);
      name += ")\"";
      events_->BeginSlice("gpu_memset", name, lane.device, StreamNumber(lane.stream),
                          memsets.start[i], memsets.end[i]);
      WriteExternalId(memsets.external_id.At(i));
      WriteLaneArgs(lane, memsets.correlation[i]);
      if (memsets.bytes_unknown.At(i) == 0) {
        WriteBandwidth(memsets.bytes[i], memsets.end[i] - memsets.start[i],
                       memsets.reported_bandwidth.At(i));
      }
      WriteGraphArgs(memsets, i);
      events_->EndArgs();
    }
  }

  // A graph that was traced as a whole occupies its stream like one kernel.
  void WriteGraphLaunches() {
    const GraphLaunches& launches = trace_.graph_launches;
    for (size_t i = 0; i < launches.size(); ++i) {
      if (!Kept(launches.start[i], launches.end[i])) continue;
      const Lane& lane = trace_.lanes[launches.lane[i]];
      events_->BeginSlice("kernel", fmt::format("\"CUDA graph {}\"", launches.graph.At(i)),
                          lane.device, StreamNumber(lane.stream), launches.start[i],
                          launches.end[i]);
      events_->Arg("queued", 0);
      WriteLaneArgs(lane, launches.correlation[i]);
      WriteGraphArgs(launches, i);
      events_->EndArgs();
    }
  }

  uint32_t DeviceOfContext(uint32_t context) const {
    for (const Lane& lane : trace_.lanes) {
      if (lane.context == context) return lane.device;
    }
    for (const proto::ContextEvent& event : trace_.contexts) {
      if (event.context == context) return event.device;
    }
    return 0;
  }

  // Where an event was last recorded before the wait, by CUPTI's CUDA_EVENT records.
  const proto::CudaEventEvent* RecordOf(uint32_t cuda_event, uint32_t before) const {
    const proto::CudaEventEvent* latest = nullptr;
    const auto found = events_by_id_.find(cuda_event);
    if (found == events_by_id_.end()) return nullptr;
    for (const proto::CudaEventEvent* const event : found->second) {
      if (event->correlation < before) latest = event;
    }
    return latest;
  }

  void WriteSyncs() {
    for (const proto::CudaEventEvent& event : trace_.cuda_events) {
      events_by_id_[event.cuda_event].push_back(&event);
    }
    const Syncs& syncs = trace_.syncs;
    for (size_t i = 0; i < syncs.size(); ++i) {
      if (!Kept(syncs.start[i], syncs.end[i])) continue;
      const uint32_t device = DeviceOfContext(syncs.context[i]);
      const int64_t tid = syncs.stream[i] == kNoStream ? -1 : int64_t{syncs.stream[i]};
      const std::string kind(SyncTypeName(syncs.type[i]));
      // The host's wait overlaps the stream's kernels; a file of torch.profiler's keeps its tids.
      const int64_t track =
          trace_.origin == TraceOrigin::kKineto
              ? tid
              : events_->TrackApart("waits for stream", device, tid, syncs.start[i], syncs.end[i]);
      events_->BeginSlice("cuda_sync", "\"" + kind + "\"", device, track, syncs.start[i],
                          syncs.end[i]);
      events_->TextArg("cuda_sync_kind", kind);
      if (syncs.record_stream.At(i) != 0) {
        events_->Arg("wait_on_stream", syncs.record_stream.At(i) - 1);
      }
      if (syncs.record_correlation.At(i) != 0) {
        events_->Arg("wait_on_cuda_event_record_corr_id", syncs.record_correlation.At(i));
      }
      if (syncs.cuda_event[i] != kNoEvent) {
        if (const auto* const record = RecordOf(syncs.cuda_event[i], syncs.correlation[i])) {
          events_->Arg("wait_on_stream", record->stream);
          events_->Arg("wait_on_cuda_event_record_corr_id", record->correlation);
        }
        events_->Arg("wait_on_cuda_event_id", syncs.cuda_event[i]);
      }
      const bool as_unsigned = trace_.is_ours() || syncs.stream_as_unsigned.At(i) != 0;
      events_->Arg("stream", as_unsigned ? int64_t{syncs.stream[i]} : tid);
      events_->Arg("correlation", syncs.correlation[i]);
      events_->Arg("device", device);
      events_->Arg("context", syncs.context[i]);
      events_->EndArgs();
    }
  }

  void WriteOverheads() {
    for (const proto::OverheadEvent& event : trace_.overheads) {
      if (!Kept(static_cast<int64_t>(event.start_ns), static_cast<int64_t>(event.end_ns))) continue;
      const std::string name = "\"" + std::string(OverheadName(event.overhead_kind)) + "\"";
      events_->BeginSlice("overhead", name, -1, static_cast<uint32_t>(event.thread),
                          static_cast<int64_t>(event.start_ns), static_cast<int64_t>(event.end_ns));
      events_->EndArgs();
    }
  }

  // Arrows from each launch to what it launched. A viewer that knows no arrow without a beginning
  // gets none: work without a launch has no arrow.
  void WriteFlows() {
    std::vector<bool> started(trace_.api_calls.size());
    for (const DeviceWork* const work : {static_cast<const DeviceWork*>(&trace_.kernels),
                                         static_cast<const DeviceWork*>(&trace_.copies),
                                         static_cast<const DeviceWork*>(&trace_.memsets),
                                         static_cast<const DeviceWork*>(&trace_.graph_launches)}) {
      for (size_t i = 0; i < work->size(); ++i) {
        const uint32_t launch = work->launch[i];
        if (launch == kNone || !Kept(work->start[i], work->end[i]) ||
            !Kept(trace_.api_calls.start[launch], trace_.api_calls.end[launch])) {
          continue;
        }
        if (!started[launch]) {
          events_->Flow("s", work->correlation[i], trace_.info.pid,
                        ThreadOf(trace_, trace_.api_calls.writer[launch]),
                        trace_.api_calls.start[launch], "ac2g");
          started[launch] = true;
        }
        const Lane& lane = trace_.lanes[work->lane[i]];
        events_->Flow("f", work->correlation[i], lane.device, StreamNumber(lane.stream),
                      work->start[i], "ac2g");
      }
    }
  }

  const Trace& trace_;
  ChromeEvents* events_;
  std::vector<std::string> kernel_names_;
  std::unordered_map<uint64_t, std::string> shape_args_;  // by device and shape
  std::map<uint32_t, std::vector<const proto::CudaEventEvent*>> events_by_id_;
};

}  // namespace

void WriteDeviceEvents(const Trace& trace, ChromeEvents* events) {
  DeviceWriter(trace, events).Write();
}

}  // namespace ranktap::collector
