#include "tests/unit/collector/export/perfetto/perfetto_reader.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <set>

#include "perfetto_trace.pb.h"

namespace ranktap::collector {
namespace {

namespace pb = ::perfetto::protos;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool HasUnknown(const Message& message) {
  const auto& reflection = *message.GetReflection();
  if (reflection.GetUnknownFields(message).field_count() != 0) return true;
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (HasUnknown(reflection.GetMessage(message, field))) return true;
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      if (HasUnknown(reflection.GetRepeatedMessage(message, field, i))) return true;
    }
  }
  return false;
}

struct Sequence {
  bool valid = false;
  uint64_t track = 0;
  int64_t clock = 0;
  std::map<uint64_t, std::string> categories, names, notes, stages, kernels;
  std::map<uint64_t, int32_t> contexts;  // pid
};

struct Track {
  std::string process, name;
  bool is_counter = false;
  int64_t last = 0;
  std::vector<size_t> open;
};

class Reader {
 public:
  PerfettoContent Read(const std::string& bytes) {
    pb::Trace trace;
    if (!trace.ParseFromString(bytes)) Error("does not parse");
    if (HasUnknown(trace)) Error("fields that are not in the schema");
    for (const pb::TracePacket& packet : trace.packet()) ReadPacket(packet);
    for (const auto& [uuid, track] : tracks_) {
      if (!track.open.empty()) Error("slices without an end on " + track.name);
    }
    for (const auto& [id, from] : begun_) Error("arrow without an end: " + std::to_string(id));
    return std::move(content_);
  }

 private:
  void Error(const std::string& text) { content_.errors.push_back(text); }

  void ReadPacket(const pb::TracePacket& packet) {
    if (packet.trusted_packet_sequence_id() == 0) return Error("packet without a sequence");
    if (packet.has_track_descriptor()) return ReadDescriptor(packet.track_descriptor());
    Sequence& sequence = sequences_[packet.trusted_packet_sequence_id()];
    if ((packet.sequence_flags() & 1) != 0) Reset(packet, &sequence);
    if (!sequence.valid) return Error("packet on a sequence without state");
    for (const auto& entry : packet.interned_data().event_categories()) {
      sequence.categories[entry.iid()] = entry.name();
    }
    for (const auto& entry : packet.interned_data().event_names()) {
      if (sequence.names.contains(entry.iid())) Error("a name interned twice: " + entry.name());
      sequence.names[entry.iid()] = entry.name();
    }
    for (const auto& entry : packet.interned_data().debug_annotation_names()) {
      sequence.notes[entry.iid()] = entry.name();
    }
    for (const auto& entry : packet.interned_data().gpu_specifications()) {
      sequence.stages[entry.iid()] = entry.name();
    }
    for (const auto& entry : packet.interned_data().graphics_contexts()) {
      sequence.contexts[entry.iid()] = entry.pid();
    }
    for (const auto& entry : packet.interned_data().compute_kernels()) {
      sequence.kernels[entry.iid()] = entry.demangled_name();
    }
    if (packet.has_track_event()) ReadEvent(packet, &sequence);
    if (packet.has_gpu_render_stage_event()) ReadStage(packet, &sequence);
  }

  void Reset(const pb::TracePacket& packet, Sequence* sequence) {
    *sequence = {};
    const auto& defaults = packet.trace_packet_defaults();
    sequence->track = defaults.track_event_defaults().track_uuid();
    const auto& snapshot = packet.clock_snapshot();
    sequence->valid = defaults.timestamp_clock_id() == 64 && snapshot.clocks_size() == 2 &&
                      snapshot.primary_trace_clock() == 1 && snapshot.clocks(0).clock_id() == 1 &&
                      snapshot.clocks(1).clock_id() == 64 && snapshot.clocks(1).is_incremental() &&
                      snapshot.clocks(0).timestamp() == snapshot.clocks(1).timestamp();
    sequence->clock = static_cast<int64_t>(snapshot.clocks(0).timestamp());
  }

  void ReadDescriptor(const pb::TrackDescriptor& descriptor) {
    if (tracks_.contains(descriptor.uuid())) return Error("two tracks of one uuid");
    Track& track = tracks_[descriptor.uuid()];
    track.is_counter = descriptor.has_counter();
    track.name = descriptor.has_thread() ? descriptor.thread().thread_name() : descriptor.name();
    if (descriptor.has_process()) {
      track.process = descriptor.process().process_name();
      processes_[descriptor.process().pid()] = track.process;
      return;
    }
    const auto parent = tracks_.find(descriptor.parent_uuid());
    if (parent == tracks_.end()) return Error("a track before its parent");
    track.process = parent->second.process;
    if (!parent->second.name.empty() && !descriptor.has_thread()) {
      track.name = parent->second.name + "/" + track.name;
    }
  }

  void ReadEvent(const pb::TracePacket& packet, Sequence* sequence) {
    if (!packet.has_timestamp()) return Error("event without a time");
    sequence->clock += static_cast<int64_t>(packet.timestamp());
    const auto found = tracks_.find(sequence->track);
    if (found == tracks_.end()) return Error("event on a track that was not described");
    Track& track = found->second;
    const pb::TrackEvent& event = packet.track_event();
    if (event.type() == pb::TrackEvent::TYPE_COUNTER) {
      if (!track.is_counter) Error("a count on " + track.name);
      content_.counts.push_back(
          {track.process, track.name, sequence->clock, event.counter_value()});
      return;
    }
    if (event.type() == pb::TrackEvent::TYPE_SLICE_END) {
      if (track.open.empty()) return Error("an end without a beginning on " + track.name);
      content_.slices[track.open.back()].end = sequence->clock;
      track.open.pop_back();
      return;
    }
    const size_t index = content_.slices.size();
    PerfettoSlice slice{.process = track.process, .track = track.name};
    slice.start = slice.end = sequence->clock;
    slice.name = Find(sequence->names, event.name_iid());
    for (const uint64_t id : event.category_iids()) slice.category = Find(sequence->categories, id);
    for (const auto& note : event.debug_annotations()) {
      const std::string name =
          note.has_name() ? note.name() : Find(sequence->notes, note.name_iid());
      if (!slice.arguments.try_emplace(name, Value(note)).second) Error("argument twice: " + name);
    }
    content_.slices.push_back(std::move(slice));
    if (event.type() == pb::TrackEvent::TYPE_SLICE_BEGIN) track.open.push_back(index);
    ReadArrows(event, index);
  }

  // As a slice, in the category that it has as one.
  void ReadStage(const pb::TracePacket& packet, Sequence* sequence) {
    if (!packet.has_timestamp()) return Error("stage without a time");
    sequence->clock += static_cast<int64_t>(packet.timestamp());
    const pb::GpuRenderStageEvent& event = packet.gpu_render_stage_event();
    if (!stages_.insert(event.event_id()).second) Error("two stages of one id");
    const auto context = sequence->contexts.find(event.context());
    if (context == sequence->contexts.end()) return Error("a context that was not interned");
    PerfettoSlice slice;
    slice.process = processes_[context->second];
    slice.track = "GPU " + std::to_string(event.gpu_id()) + "/" +
                  Find(sequence->stages, event.hw_queue_iid());
    slice.start = sequence->clock;
    slice.end = slice.start + static_cast<int64_t>(event.duration());
    slice.name = Find(sequence->names, event.name_iid());
    const std::string& kind = Find(sequence->stages, event.stage_iid());
    slice.category = kind == "Memcpy" ? "gpu_memcpy" : kind == "Memset" ? "gpu_memset" : "kernel";
    if (event.has_kernel_iid() && Find(sequence->kernels, event.kernel_iid()) != slice.name) {
      Error("a kernel of another name: " + slice.name);
    }
    for (const auto& argument : event.launch().args()) {
      slice.arguments[argument.name()] = std::to_string(argument.uint_value());
    }
    const auto& grid = event.launch().grid_size();
    slice.arguments["grid"] =
        std::to_string(grid.x()) + "," + std::to_string(grid.y()) + "," + std::to_string(grid.z());
    content_.slices.push_back(std::move(slice));
    if (const auto from = begun_.find(event.event_id()); from != begun_.end()) {
      content_.arrows.push_back({from->second, content_.slices.size() - 1});
      begun_.erase(from);
    }
  }

  // Arrows come in any order in the file; trace_processor sorts by time.
  void ReadArrows(const pb::TrackEvent& event, size_t slice) {
    for (const uint64_t id : event.flow_ids()) {
      if (!begun_.try_emplace(id, slice).second) Error("an arrow begins twice");
    }
    for (const uint64_t id : event.gpu_correlation().render_stage_submission_event_ids()) {
      if (!begun_.try_emplace(id, slice).second) Error("a stage is submitted twice");
    }
    for (const uint64_t id : event.terminating_flow_ids()) {
      const auto from = begun_.find(id);
      if (from == begun_.end()) {
        Error("an arrow ends without a beginning");
        continue;
      }
      content_.arrows.push_back({from->second, slice});
      begun_.erase(from);
    }
  }

  const std::string& Find(const std::map<uint64_t, std::string>& names, uint64_t iid) {
    static const std::string kMissing = "?";
    const auto found = names.find(iid);
    if (found != names.end()) return found->second;
    Error("a name that was not interned");
    return kMissing;
  }

  static std::string Value(const pb::DebugAnnotation& note) {
    if (note.has_uint_value()) return std::to_string(note.uint_value());
    if (note.has_int_value()) return std::to_string(note.int_value());
    if (note.has_double_value()) return std::to_string(note.double_value());
    if (note.has_string_value()) return note.string_value();
    std::string text;
    for (const auto& value : note.array_values()) text += (text.empty() ? "" : ",") + Value(value);
    return text;
  }

  PerfettoContent content_;
  std::map<uint32_t, Sequence> sequences_;
  std::map<uint64_t, Track> tracks_;
  std::map<uint64_t, size_t> begun_;
  std::map<int32_t, std::string> processes_;  // by pid
  std::set<uint64_t> stages_;                 // event ids
};

}  // namespace

PerfettoContent ReadPerfetto(const std::string& bytes) { return Reader().Read(bytes); }

}  // namespace ranktap::collector
