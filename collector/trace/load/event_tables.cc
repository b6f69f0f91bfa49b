#include "collector/trace/load/event_tables.h"

#include <algorithm>

namespace ranktap::collector {
namespace {

using proto::Section;

// The rows of kinds that are rare enough to stay structs; nullptr for those with a table.
template <typename Event>
std::vector<Event>* RowsOf(Trace* trace) {
  if constexpr (std::is_same_v<Event, proto::CudaEventEvent>) return &trace->cuda_events;
  if constexpr (std::is_same_v<Event, proto::NameEvent>) return &trace->names;
  if constexpr (std::is_same_v<Event, proto::MemoryEvent>) return &trace->memory;
  if constexpr (std::is_same_v<Event, proto::MemoryPoolEvent>) return &trace->memory_pools;
  if constexpr (std::is_same_v<Event, proto::OverheadEvent>) return &trace->overheads;
  if constexpr (std::is_same_v<Event, proto::ContextEvent>) return &trace->contexts;
  if constexpr (std::is_same_v<Event, proto::StreamEvent>) return &trace->streams;
  if constexpr (std::is_same_v<Event, proto::ResourceEvent>) return &trace->resources;
  if constexpr (std::is_same_v<Event, proto::JitEvent>) return &trace->jits;
  return nullptr;
}

template <typename Event, typename... Events>
constexpr bool kIsOneOf = (std::is_same_v<Event, Events> || ...);

// What threads of the host emit, with their times: all that has a writer or a payload.
template <typename Event>
constexpr bool kIsOfHost =
    kIsOneOf<Event, proto::ApiCallEvent, proto::EventCallEvent, proto::RangePushEvent,
             proto::RangePopEvent, proto::RangeStartEvent, proto::RangeEndEvent, proto::MarkEvent,
             proto::NameEvent, proto::ResourceEvent>;

}  // namespace

EventTables::Sizes EventTables::Measure() {
  Sizes sizes;
  size_t i = 0;
  ForEachTable(*trace_, [&](const auto& table) { sizes.tables[i++] = table.size(); });
  i = 0;
  ForEachRows(*trace_, [&](const auto& rows) { sizes.rows[i++] = rows.size(); });
  sizes.ranges = matcher_.position();
  sizes.payloads = trace_->payloads.size();
  sizes.lanes = trace_->lanes.size();
  return sizes;
}

void EventTables::Restore(const Sizes& sizes) {
  size_t i = 0;
  ForEachTable(*trace_, [&](auto& table) { TruncateTable(table, sizes.tables[i++]); });
  i = 0;
  ForEachRows(*trace_, [&](auto& rows) { rows.resize(sizes.rows[i++]); });
  matcher_.Rewind(sizes.ranges);
  trace_->payloads.resize(sizes.payloads);
  trace_->lanes.resize(sizes.lanes);
}

bool EventTables::AddFrame(const EventFrame& frame) {
  const Sizes before = Measure();
  const bool ok = DecodeOfHost(frame) && AddOfDevice(frame);
  if (!ok) Restore(before);
  // A frame that could not be read leaves a hole like one that was lost.
  matcher_.EndFrame(frame.writer, first_push_, ok ? push_count_ : 0, before.ranges.pops,
                    frame.events_missing || !ok);
  return ok;
}

bool EventTables::AddOfHost(const EventFrame& frame) {
  const size_t first_pop = matcher_.position().pops;
  if (!DecodeOfHost(frame)) return false;
  matcher_.EndFrame(frame.writer, first_push_, push_count_, first_pop, frame.events_missing);
  return true;
}

bool EventTables::DecodeOfHost(const EventFrame& frame) {
  writer_ = frame.writer;
  first_push_ = trace_->ranges.size();
  push_count_ = 0;
  return proto::DecodeEvents(frame.payload, frame.events,
                             [this]<typename Event>(const Section<Event>& section) {
                               if constexpr (kIsOfHost<Event>) return AddSection(section);
                               return true;
                             });
}

bool EventTables::AddOfDevice(const EventFrame& frame) {
  return proto::DecodeEvents(frame.payload, frame.events,
                             [this]<typename Event>(const Section<Event>& section) {
                               if constexpr (!kIsOfHost<Event>) return AddSection(section);
                               return true;
                             });
}

template <typename Event>
bool EventTables::AddSection(const Section<Event>& section) {
  if (std::vector<Event>* const rows = RowsOf<Event>(trace_)) {
    const size_t before = rows->size();
    const bool ok = proto::DecodeRows(section, rows);
    if constexpr (std::is_same_v<Event, proto::ResourceEvent>) {
      // It has no text: in a decoded row the field says who wrote it (an index into writers).
      for (size_t i = before; i < rows->size(); ++i) (*rows)[i].header.text_bytes = writer_;
    }
    return ok;
  }
  if constexpr (requires { this->Add(section); }) return Add(section);
  return true;
}

uint32_t EventTables::LaneOf(uint32_t device, uint32_t context, uint32_t stream) {
  const Lane lane{device, context, stream};
  uint32_t& last = last_lanes_[stream % last_lanes_.size()];
  if (last < trace_->lanes.size() && trace_->lanes[last] == lane) return last;
  std::vector<uint32_t>& candidates = lanes_[uint64_t{device} << 32 | stream];
  for (const uint32_t candidate : candidates) {
    if (candidate < trace_->lanes.size() && trace_->lanes[candidate] == lane) {
      return last = candidate;
    }
  }
  last = static_cast<uint32_t>(trace_->lanes.size());
  trace_->lanes.push_back(lane);
  candidates.push_back(last);
  return last;
}

template <uint32_t Device, uint32_t Context, uint32_t Stream, typename Event>
bool EventTables::AddWork(const Section<Event>& section, DeviceWork* work) {
  const std::span<uint32_t> device = device_.Take(section.count);
  const std::span<uint32_t> context = context_.Take(section.count);
  const std::span<uint32_t> stream = stream_.Take(section.count);
  if (!AppendSpan(section, &of_device_, &work->start, &work->end) ||
      !Append<4>(section, &work->correlation) || !DecodeInto<Device>(section, device.data()) ||
      !DecodeInto<Context>(section, context.data()) ||
      !DecodeInto<Stream>(section, stream.data())) {
    return false;
  }
  const std::span<uint32_t> lane = of_device_.ids.Take(section.count);
  for (uint32_t i = 0; i < section.count; ++i) {
    const bool as_before = i > 0 && device[i] == device[i - 1] && context[i] == context[i - 1] &&
                           stream[i] == stream[i - 1];
    lane[i] = as_before ? lane[i - 1] : LaneOf(device[i], context[i], stream[i]);
  }
  work->lane.Append(lane);
  return true;
}

bool EventTables::Add(const Section<proto::KernelEvent>& section) {
  Kernels& kernels = trace_->kernels;
  const size_t rows = kernels.size();
  return AddWork<5, 6, 7>(section, &kernels) && AppendIds<8>(section, &of_device_, &kernels.name) &&
         AppendIds<9>(section, &of_device_, &kernels.shape) &&
         AppendOptional<10>(section, rows, &kernels.graph) &&
         AppendOptional<11>(section, rows, &kernels.graph_node) &&
         AppendOptional<12>(section, rows, &kernels.grid_id) &&
         AppendOptional<13>(section, rows, &kernels.channel) &&
         AppendOptional<14>(section, rows, &kernels.channel_type) &&
         AppendOptional<15>(section, rows, &kernels.device_launched);
}

bool EventTables::Add(const Section<proto::CopyEvent>& section) {
  Copies& copies = trace_->copies;
  const size_t rows = copies.size();
  return AddWork<5, 6, 7>(section, &copies) && Append<8>(section, &copies.bytes) &&
         Append<9>(section, &copies.copy_kind) && Append<10>(section, &copies.src_kind) &&
         Append<11>(section, &copies.dst_kind) &&
         AppendOptional<12>(section, rows, &copies.flags) &&
         AppendOptional<13>(section, rows, &copies.graph) &&
         AppendOptional<14>(section, rows, &copies.graph_node) &&
         AppendOptional<15>(section, rows, &copies.peer) &&
         AppendOptional<16>(section, rows, &copies.src_device) &&
         AppendOptional<17>(section, rows, &copies.dst_device) &&
         AppendOptional<18>(section, rows, &copies.src_context) &&
         AppendOptional<19>(section, rows, &copies.dst_context) &&
         AppendOptional<20>(section, rows, &copies.copies) &&
         AppendOptional<21>(section, rows, &copies.channel) &&
         AppendOptional<22>(section, rows, &copies.channel_type);
}

bool EventTables::Add(const Section<proto::MemsetEvent>& section) {
  Memsets& memsets = trace_->memsets;
  const size_t rows = memsets.size();
  return AddWork<5, 6, 7>(section, &memsets) && Append<8>(section, &memsets.bytes) &&
         AppendOptional<9>(section, rows, &memsets.value) &&
         Append<10>(section, &memsets.memory_kind) &&
         AppendOptional<11>(section, rows, &memsets.flags) &&
         AppendOptional<12>(section, rows, &memsets.graph) &&
         AppendOptional<13>(section, rows, &memsets.graph_node) &&
         AppendOptional<14>(section, rows, &memsets.channel) &&
         AppendOptional<15>(section, rows, &memsets.channel_type);
}

bool EventTables::Add(const Section<proto::GraphLaunchEvent>& section) {
  GraphLaunches& launches = trace_->graph_launches;
  const size_t rows = launches.size();
  return AddWork<5, 6, 7>(section, &launches) &&
         AppendOptional<8>(section, rows, &launches.graph) &&
         AppendOptional<9>(section, rows, &launches.end_device) &&
         AppendOptional<10>(section, rows, &launches.end_context);
}

bool EventTables::Add(const Section<proto::SyncEvent>& section) {
  Syncs& syncs = trace_->syncs;
  const size_t rows = syncs.size();
  return AppendSpan(section, &of_device_, &syncs.start, &syncs.end) &&
         Append<4>(section, &syncs.correlation) && Append<5>(section, &syncs.type) &&
         Append<6>(section, &syncs.context) && Append<7>(section, &syncs.stream) &&
         Append<8>(section, &syncs.cuda_event) &&
         AppendOptional<9>(section, rows, &syncs.cuda_event_sync_id) &&
         AppendOptional<10>(section, rows, &syncs.status);
}

template <typename Event>
bool EventTables::AddCalls(const Section<Event>& section, ApiCalls* calls) {
  const size_t rows = calls->size();
  uint16_t* const writer = calls->writer.Grow(section.count);
  std::fill_n(writer, section.count, writer_);
  return AppendSpan(section, &of_host_, &calls->start, &calls->end) &&
         Append<4>(section, &calls->correlation) && AppendIds<5>(section, &of_host_, &calls->api) &&
         AppendOptional<6>(section, rows, &calls->status) &&
         AppendOptional<7>(section, rows, &calls->stack);
}

bool EventTables::Add(const Section<proto::ApiCallEvent>& section) {
  return AddCalls(section, &trace_->api_calls);
}

bool EventTables::Add(const Section<proto::EventCallEvent>& section) {
  EventCalls& calls = trace_->event_calls;
  const size_t rows = calls.size();
  return AddCalls(section, &calls) && AppendOptional<8>(section, rows, &calls.event) &&
         AppendOptional<9>(section, rows, &calls.stream);
}

template <typename Event>
bool EventTables::AddPayloads(const Section<Event>& section, size_t rows,
                              OptionalColumn<uint32_t>* column) {
  return proto::DecodePayloads(section, [&](uint32_t i, std::span<const std::byte> bytes) {
    column->PadTo(rows + i + 1);
    trace_->payloads.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    (*column)[rows + i] = static_cast<uint32_t>(trace_->payloads.size());
  });
}

template <uint32_t Name, typename Event>
bool EventTables::AddNvtx(const Section<Event>& section, RangeKind kind, Ranges* ranges) {
  const size_t rows = ranges->size();
  const uint32_t count = section.count;
  const std::span<int64_t> times = of_host_.times.Take(count);
  if (!DecodeInto<2>(section, times.data()) ||
      !AppendIds<Name>(section, &of_host_, &ranges->name) ||
      !Append<Name + 1>(section, &ranges->domain) ||
      !AppendOptional<Name + 2>(section, rows, &ranges->category) ||
      !AppendOptional<Name + 3>(section, rows, &ranges->color) ||
      !AppendOptional<Name + 4>(section, rows, &ranges->payload_type) ||
      !AppendOptional<Name + 5>(section, rows, &ranges->payload) ||
      !AppendOptional<Name + 6>(section, rows, &ranges->payload_dropped)) {
    return false;
  }
  ranges->start.Append(times);
  ranges->end.Append(times);
  std::fill_n(ranges->writer.Grow(count), count, writer_);
  std::fill_n(ranges->depth.Grow(count), count, uint16_t{0});
  std::fill_n(ranges->kind.Grow(count), count, static_cast<uint8_t>(kind));
  return AddPayloads(section, rows, &ranges->inline_payload);
}

bool EventTables::Add(const Section<proto::RangePushEvent>& section) {
  if (push_count_ != 0) return false;  // one section of a kind in a frame
  first_push_ = trace_->ranges.size();
  if (!AddNvtx<3>(section, RangeKind::kPushPop, &trace_->ranges)) return false;
  push_count_ = section.count;
  return true;
}

bool EventTables::Add(const Section<proto::RangePopEvent>& section) {
  RangeMatcher::Pops& pops = matcher_.pops();
  const size_t rows = pops.time.size();
  return Append<2>(section, &pops.time) && Append<3>(section, &pops.domain) &&
         AddPayloads(section, rows, &pops.inline_payload);
}

bool EventTables::Add(const Section<proto::RangeStartEvent>& section) {
  const size_t rows = trace_->ranges.size();
  if (!AddNvtx<4>(section, RangeKind::kStartEnd, &trace_->ranges)) return false;
  std::vector<uint64_t> ids(section.count);
  if (!DecodeInto<3>(section, ids.data())) return false;
  for (uint32_t i = 0; i < section.count; ++i) {
    matcher_.AddStart(ids[i], static_cast<uint32_t>(rows + i));
  }
  return true;
}

bool EventTables::Add(const Section<proto::RangeEndEvent>& section) {
  std::vector<uint64_t> times(section.count), ids(section.count);
  if (!DecodeInto<2>(section, times.data()) || !DecodeInto<3>(section, ids.data())) return false;
  OptionalColumn<uint32_t> payloads;
  if (!AddPayloads(section, 0, &payloads)) return false;
  for (uint32_t i = 0; i < section.count; ++i) matcher_.AddEnd(ids[i], times[i], payloads.At(i));
  return true;
}

bool EventTables::Add(const Section<proto::MarkEvent>& section) {
  return AddNvtx<3>(section, RangeKind::kMark, &trace_->marks);
}

}  // namespace ranktap::collector
