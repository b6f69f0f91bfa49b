// The devices' side of a Perfetto trace.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/export/cupti_names.h"
#include "collector/export/exporters.h"
#include "collector/export/json_text.h"
#include "collector/export/launch_arrows.h"
#include "collector/export/occupancy.h"
#include "collector/export/perfetto/nested_tracks.h"
#include "collector/export/perfetto/perfetto_annotations.h"
#include "collector/export/perfetto/perfetto_exporter.h"
#include "collector/facts/activity_counters.h"
#include "collector/trace/device_label.h"
#include "collector/trace/symbol_name.h"
#include "collector/trace/table_merge.h"

namespace ranktap::collector {
namespace {

constexpr uint32_t kNoStream = 0xffffffff;         // CUPTI's "not about a stream"
constexpr uint32_t kAllocated = 1, kReleased = 2;  // CUpti_ActivityMemoryOperationType
constexpr uint32_t kDeviceMemory = 3;              // CUpti_ActivityMemoryKind
// Below the threads of a process.
constexpr int kDevicesFrom = 1 << 20;

class DeviceWriter {
 public:
  explicit DeviceWriter(PerfettoTrace* state)
      : state_(*state),
        trace_(state->trace),
        tables_(LaunchArrows::Tables(trace_)),
        packets_(*state->packets),
        arrows_(state->arrows),
        shift_(state->shift_ns) {}

  void Write() {
    if (state_.options.render_stages) {
      WritePerfettoStages(&state_);
    } else {
      WriteStreams();
    }
    WriteSyncs();
    WriteAnnotations();
    for (auto& [key, tracks] : lanes_) tracks->Finish();
    for (auto& [lane, tracks] : annotations_) tracks->Finish();
    WriteMemory();
    WriteAllocator();
    WriteCounters();
    WriteActivity();
  }

 private:
  void WriteStreams() {
    for (size_t i = 0; i < trace_.lanes.size(); ++i) {
      streams_.push_back(Stream(trace_.lanes[i].device, trace_.lanes[i].stream));
    }
    std::vector<MergedTable> tables;
    for (const DeviceWork* const work : tables_) {
      tables.push_back({&work->start, &work->end});
    }
    MergeTables(tables, [this](size_t table, size_t row) { WriteWork(table, row); });
  }

  uint64_t Device(uint32_t device) {
    uint64_t& uuid = devices_[device];
    if (uuid == 0) {
      uuid = packets_.AddGroup(
          {DeviceLabel(trace_, device), state_.process, kDevicesFrom + static_cast<int>(device)});
    }
    return uuid;
  }

  NestedTracks* Tracks(uint32_t device, int64_t order, const std::string& name) {
    auto& tracks = lanes_[{device, order}];
    if (tracks == nullptr) {
      const auto rank = static_cast<int>(std::clamp<int64_t>(order, -1, 1 << 24));
      tracks = std::make_unique<NestedTracks>(
          &packets_, [this, device, name, rank](size_t n, int64_t start) {
            return packets_.AddLane({n == 0 ? name : name + " (overlapping)", Device(device), rank},
                                    start);
          });
    }
    return tracks.get();
  }
  static std::string StreamName(uint32_t stream) {
    return stream == kNone ? "no stream" : fmt::format("stream {}", stream);
  }
  NestedTracks* Stream(uint32_t device, uint32_t stream) {
    return Tracks(device, stream, StreamName(stream));
  }

  void WriteWork(size_t table, size_t row) {
    const DeviceWork& work = *tables_[table];
    const int64_t start = work.start[row], end = work.end[row];
    const uint64_t arrow = arrows_.To(table, row);  // both of its ends are kept
    if (arrow == 0 && (start == kUntimed || !state_.options.Keeps(start, end))) return;
    PerfettoTrack* const track = streams_[work.lane[row]]->Open(start + shift_, end + shift_);
    char arguments[128];
    char* last = arguments;
    if (work.graph.At(row) != 0) last = PutNote(last, Note::kGraph, work.graph.At(row));
    if (work.graph_node.At(row) != 0) {
      last = PutNote(last, Note::kGraphNode, work.graph_node.At(row));
    }
    if (table == 0 && work.channel.At(row) != 0) {
      last = PutNote(last, Note::kChannel, work.channel.At(row));
    }
    const Description what = table == 0 ? Kernel(track, row) : DescribeOther(table, track, row);
    packets_.Begin(track, start + shift_,
                   {.name = what.name,
                    .category = what.category,
                    .correlation = work.correlation[row],
                    .arguments = {arguments, static_cast<size_t>(last - arguments)},
                    .more_arguments = what.arguments,
                    .ending_flows = {&arrow, arrow == 0 ? size_t{0} : 1}});
  }

  struct Description {
    uint32_t name;  // iid
    PerfettoCategory category;
    std::string_view arguments;
  };

  Description DescribeOther(size_t table, PerfettoTrack* track, size_t row) {
    const collector::Lane& lane = trace_.lanes[tables_[table]->lane[row]];
    if (table == 1) return Copy(track, row, lane);
    if (table == 2) return Memset(track, row, lane);
    return {Own(track, fmt::format("CUDA graph {}", tables_[table]->graph.At(row))),
            PerfettoCategory::kKernel, LaneArguments(lane)};
  }

  Description Kernel(PerfettoTrack* track, size_t row) {
    const uint32_t string = trace_.kernels.name[row];
    const uint32_t name = state_.KernelName(string);
    packets_.Name(track, name, [&] {
      return SanitizedName(ReadableKernelName(trace_.dictionary.String(string)));
    });
    return {name, PerfettoCategory::kKernel,
            ShapeArguments(trace_.kernels.lane[row], trace_.kernels.shape[row])};
  }

  // The same for every launch of a shape on a lane: made once, and mostly found without a search.
  std::string_view ShapeArguments(uint32_t lane_id, uint32_t shape_id) {
    const uint64_t key = uint64_t{lane_id} << 32 | shape_id;
    RecentShape& recent = recent_shapes_[(shape_id + lane_id * 1031) % kRecentShapes];
    if (recent.key == key) return recent.arguments;
    auto [at, is_new] = shapes_.try_emplace(key);
    if (is_new) at->second = EncodeShape(trace_.lanes[lane_id], shape_id);
    return (recent = {key, at->second}).arguments;
  }

  std::string EncodeShape(const collector::Lane& lane, uint32_t shape_id) {
    Annotations arguments;
    AddLane(lane, &arguments);
    const auto* const shape = trace_.dictionary.Shape(shape_id);
    if (shape == nullptr) return arguments.bytes();
    arguments.Add(Note::kRegisters, shape->registers_per_thread);
    arguments.Add(Note::kSharedMemory,
                  uint64_t{shape->static_shared_bytes} + shape->dynamic_shared_bytes);
    arguments.Add(Note::kGrid, shape->grid);
    arguments.Add(Note::kBlock, shape->block);
    if (shape->cluster[0] != 0) arguments.Add(Note::kCluster, shape->cluster);
    for (const v1::Device& device : trace_.hello.devices()) {
      if (device.id() != lane.device) continue;
      const auto occupancy = EstimateOccupancy(device, *shape);
      if (!occupancy) continue;
      arguments.Add(Note::kBlocksPerSm, occupancy->blocks_per_sm);
      arguments.Add(Note::kWarpsPerSm, occupancy->warps_per_sm);
      if (occupancy->percent) {
        arguments.Add(Note::kOccupancy, static_cast<uint64_t>(*occupancy->percent));
      }
    }
    return arguments.bytes();
  }

  static void AddLane(const collector::Lane& lane, Annotations* arguments) {
    arguments->Add(Note::kDevice, lane.device);
    arguments->Add(Note::kContext, lane.context);
    if (lane.stream == kNone) return arguments->Add(NameOf(Note::kStream), int64_t{-1});
    arguments->Add(Note::kStream, lane.stream);
  }
  std::string_view LaneArguments(const collector::Lane& lane) {
    arguments_.Clear();
    AddLane(lane, &arguments_);
    return arguments_.bytes();
  }

  void AddTransfer(uint64_t bytes, int64_t ns) {
    arguments_.Add(Note::kBytes, bytes);
    if (ns <= 0) return;
    arguments_.Add(Note::kBandwidth, static_cast<double>(bytes) / static_cast<double>(ns));
  }

  Description Copy(PerfettoTrack* track, size_t row, const collector::Lane& lane) {
    const Copies& copies = trace_.copies;
    const uint32_t key = uint32_t{copies.copy_kind[row]} << 16 |
                         uint32_t{copies.src_kind[row]} << 8 | copies.dst_kind[row];
    std::string& name = copy_names_[key];
    if (name.empty()) {
      name =
          fmt::format("Memcpy {} ({} -> {})", CopyKindName(copies.copy_kind[row]),
                      MemoryKindName(copies.src_kind[row]), MemoryKindName(copies.dst_kind[row]));
    }
    LaneArguments(lane);
    if (copies.peer.At(row) != 0) {
      arguments_.Add(Note::kFromDevice, copies.src_device.At(row));
      arguments_.Add(Note::kToDevice, copies.dst_device.At(row));
    }
    if (copies.bytes_unknown.At(row) == 0)
      AddTransfer(copies.bytes[row], copies.end[row] - copies.start[row]);
    return {Own(track, name), PerfettoCategory::kCopy, arguments_.bytes()};
  }

  Description Memset(PerfettoTrack* track, size_t row, const collector::Lane& lane) {
    const Memsets& memsets = trace_.memsets;
    LaneArguments(lane);
    if (memsets.bytes_unknown.At(row) == 0)
      AddTransfer(memsets.bytes[row], memsets.end[row] - memsets.start[row]);
    return {Own(track, fmt::format("Memset ({})", MemoryKindName(memsets.memory_kind[row]))),
            PerfettoCategory::kMemset, arguments_.bytes()};
  }

  // The iid of a name that is not in the dictionary.
  uint32_t Own(PerfettoTrack* track, const std::string& name) {
    const auto known = own_names_.try_emplace(name, own_names_.size()).first->second;
    const uint32_t iid = state_.OwnName(2 * known + 1);  // the host's side has the even ones
    packets_.Name(track, iid, [&]() -> std::string_view { return name; });
    return iid;
  }

  uint32_t DeviceOfContext(uint32_t context) const {
    for (const collector::Lane& lane : trace_.lanes) {
      if (lane.context == context) return lane.device;
    }
    for (const proto::ContextEvent& event : trace_.contexts) {
      if (event.context == context) return event.device;
    }
    return 0;
  }

  // On tracks of their own: a wait overlaps the work that it waits for.
  void WriteSyncs() {
    const Syncs& syncs = trace_.syncs;
    for (size_t i = 0; i < syncs.size(); ++i) {
      const int64_t start = syncs.start[i], end = syncs.end[i];
      if (start == kUntimed || !state_.options.Keeps(start, end)) continue;
      const uint32_t device = DeviceOfContext(syncs.context[i]);
      PerfettoTrack* const track =
          Tracks(device, -1, "synchronization")->Open(start + shift_, end + shift_);
      arguments_.Clear();
      arguments_.Add(Note::kCorrelation, syncs.correlation[i]);
      arguments_.Add(Note::kContext, syncs.context[i]);
      if (syncs.stream[i] != kNoStream) arguments_.Add(Note::kStream, syncs.stream[i]);
      if (syncs.cuda_event[i] != kNone) arguments_.Add(Note::kEvent, syncs.cuda_event[i]);
      packets_.Begin(track, start + shift_,
                     {.name = Own(track, std::string(SyncTypeName(syncs.type[i]))),
                      .category = PerfettoCategory::kSync,
                      .arguments = arguments_.bytes()});
    }
  }

  // The program's memory on each device, from its allocations and releases.
  void WriteMemory() {
    std::map<uint32_t, std::pair<PerfettoTrack*, int64_t>> counters;
    for (const proto::MemoryEvent& event : trace_.memory) {
      if (event.memory_kind != kDeviceMemory) continue;
      auto& [track, bytes] = counters[event.device];
      if (event.operation == kAllocated) bytes += static_cast<int64_t>(event.bytes);
      if (event.operation == kReleased) bytes -= static_cast<int64_t>(event.bytes);
      const auto time = static_cast<int64_t>(event.time_ns);
      if (!state_.options.KeepsMoment(time)) continue;
      if (track == nullptr) {
        track = packets_.AddCounter({"device memory", Device(event.device), 1 << 25},
                                    PerfettoPackets::Unit::kBytes, time + shift_);
      }
      packets_.Count(track, time + shift_, bytes);
    }
  }

  // Beside their streams: an annotation's span is that of its work, and may cross another's.
  void WriteAnnotations() {
    const DeviceAnnotations& all = trace_.device_annotations;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!state_.options.Keeps(all.start[i], all.end[i])) continue;
      auto& tracks = annotations_[all.lane[i]];
      if (tracks == nullptr) {
        const collector::Lane lane = trace_.lanes[all.lane[i]];
        tracks = std::make_unique<NestedTracks>(&packets_, [this, lane](size_t, int64_t start) {
          return packets_.AddLane({StreamName(lane.stream) + " annotations", Device(lane.device),
                                   static_cast<int>(std::min<uint32_t>(lane.stream, 1 << 24))},
                                  start);
        });
      }
      PerfettoTrack* const track = tracks->Open(all.start[i] + shift_, all.end[i] + shift_);
      const uint32_t string = all.name[i];
      const PerfettoEvent event{.name = state_.StringName(string),
                                .category = PerfettoCategory::kDeviceAnnotation};
      packets_.Name(track, event.name,
                    [&] { return SanitizedName(trace_.dictionary.String(string)); });
      packets_.Begin(track, all.start[i] + shift_, event);
    }
  }

  // The memory of each device that the framework's allocator has given out and reserved, as it
  // says.
  void WriteAllocator() {
    const Allocations& all = trace_.allocations;
    std::map<uint32_t, std::array<PerfettoTrack*, 2>> counters;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!state_.options.KeepsMoment(all.start[i])) continue;
      const int64_t time = all.start[i] + shift_;
      const bool on_gpu = all.device.At(i) != 0 && all.device_type.At(i) != 0;
      const uint32_t device = on_gpu ? all.device.At(i) : 0;
      const uint64_t values[] = {all.allocated.At(i), all.reserved.At(i)};
      const OptionalColumn<uint64_t>* const columns[] = {&all.allocated, &all.reserved};
      for (size_t which = 0; which < 2; ++which) {
        if (columns[which]->empty()) continue;
        PerfettoTrack*& track = counters[device][which];
        if (track == nullptr) {
          const std::string name = which == 0 ? "allocator: allocated" : "allocator: reserved";
          track = packets_.AddCounter(
              {on_gpu ? name : "CPU " + name, on_gpu ? Device(device - 1) : state_.process,
               (1 << 25) + 1 + static_cast<int>(which)},
              PerfettoPackets::Unit::kBytes, time);
        }
        packets_.Count(track, time, static_cast<int64_t>(values[which]));
      }
    }
  }

  void WriteCounters() {
    const CounterSamples& samples = trace_.counters;
    std::map<std::pair<uint32_t, uint32_t>, PerfettoTrack*> counters;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (!state_.options.KeepsMoment(samples.start[i])) continue;
      const int64_t time = samples.start[i] + shift_;
      const uint32_t device = samples.device[i];
      PerfettoTrack*& track = counters[{device, samples.name[i]}];
      if (track == nullptr) {
        const std::string name(SanitizedName(trace_.dictionary.String(samples.name[i])));
        track = packets_.AddCounter(
            {name, device == kNone ? state_.process : Device(device), (1 << 25) + 3},
            PerfettoPackets::Unit::kNone, time);
      }
      packets_.Count(track, time, samples.value[i]);
    }
  }

  void WriteActivity() {
    if (!trace_.is_ours()) return;
    for (const ActivityCounter& counter : ActivityCounters(trace_)) {
      PerfettoTrack* track = nullptr;
      for (const auto& [time, value] : counter.points) {
        if (!state_.options.KeepsMoment(time)) continue;
        if (track == nullptr) {
          track = packets_.AddCounter(
              {counter.name, counter.device == kNone ? state_.process : Device(counter.device),
               (1 << 25) + 4},
              PerfettoPackets::Unit::kNone, time + shift_);
        }
        packets_.Count(track, time + shift_, value);
      }
    }
  }

  PerfettoTrace& state_;
  const Trace& trace_;
  const std::array<const DeviceWork*, LaunchArrows::kTables> tables_;
  PerfettoPackets& packets_;
  LaunchArrows& arrows_;
  int64_t shift_;
  Annotations arguments_;
  std::map<uint32_t, uint64_t> devices_;
  std::map<std::pair<uint32_t, int64_t>, std::unique_ptr<NestedTracks>> lanes_;
  std::vector<NestedTracks*> streams_;                             // by lane
  std::map<uint32_t, std::unique_ptr<NestedTracks>> annotations_;  // by lane
  std::unordered_map<uint64_t, std::string> shapes_;
  static constexpr size_t kRecentShapes = 4096;
  struct RecentShape {
    uint64_t key = UINT64_MAX;
    std::string_view arguments = {};
  };
  std::vector<RecentShape> recent_shapes_ = std::vector<RecentShape>(kRecentShapes);
  std::map<uint32_t, std::string> copy_names_;
  std::map<std::string, uint32_t> own_names_;
};

}  // namespace

void WritePerfettoDevices(PerfettoTrace* state) { DeviceWriter(state).Write(); }

}  // namespace ranktap::collector
