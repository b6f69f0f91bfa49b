#include "collector/export/perfetto/perfetto_packets.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <protozero/pbf_writer.hpp>

#include "collector/export/perfetto/perfetto_annotations.h"
#include "collector/export/perfetto/perfetto_fields.h"

namespace ranktap::collector {
namespace {

using protozero::pbf_writer;
namespace packet = perfetto::packet;
namespace descriptor = perfetto::descriptor;

// Names that every event may refer to: interned in the first packet of each sequence.
const std::string& CommonNames() {
  static const std::string* const bytes = [] {
    auto* const text = new std::string;
    pbf_writer interned(*text);
    for (int i = 1; i <= static_cast<int>(PerfettoCategory::kLast); ++i) {
      pbf_writer entry(interned, perfetto::interned::kCategories);
      entry.add_uint64(perfetto::interned::kId, static_cast<uint64_t>(i));
      perfetto::AddText(&entry, perfetto::interned::kText,
                        NameOf(static_cast<PerfettoCategory>(i)));
    }
    for (int i = 1; i <= static_cast<int>(Note::kLast); ++i) {
      pbf_writer entry(interned, perfetto::interned::kAnnotationNames);
      entry.add_uint64(perfetto::interned::kId, static_cast<uint64_t>(i));
      perfetto::AddText(&entry, perfetto::interned::kText, NameOf(static_cast<Note>(i)));
    }
    return text;
  }();
  return *bytes;
}

std::string Descriptor(uint64_t uuid, const PerfettoPlace& place) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_uint64(descriptor::kUuid, uuid);
  if (!place.name.empty()) perfetto::AddText(&writer, descriptor::kName, place.name);
  if (place.parent != 0) writer.add_uint64(descriptor::kParent, place.parent);
  writer.add_int32(descriptor::kChildOrdering, descriptor::kExplicitOrder);
  writer.add_int32(descriptor::kSiblingRank, place.order);
  return bytes;
}

}  // namespace

std::string_view NameOf(PerfettoCategory category) {
  static constexpr std::array<std::string_view, static_cast<size_t>(PerfettoCategory::kLast) + 1>
      kNames = {"",
                "kernel",
                "gpu_memcpy",
                "gpu_memset",
                "cuda_runtime",
                "cuda_driver",
                "user_annotation",
                "cuda_sync",
                "overhead",
                "gap",
                "cpu_op",
                "python_function",
                "gpu_user_annotation"};
  return kNames[static_cast<size_t>(category)];
}

uint64_t PerfettoPackets::AddProcess(int64_t pid, std::string_view name,
                                     std::span<const std::string> command,
                                     std::span<const std::string> labels) {
  const uint64_t uuid = ++last_uuid_;
  std::string bytes = Descriptor(uuid, {});
  {
    pbf_writer writer(bytes);
    pbf_writer process(writer, descriptor::kProcess);
    process.add_int32(perfetto::process::kPid, static_cast<int32_t>(pid));
    for (const std::string& word : command) {
      process.add_bytes(perfetto::process::kCommandLine, word);
    }
    perfetto::AddText(&process, perfetto::process::kName, name);
    for (const std::string& label : labels) process.add_bytes(perfetto::process::kLabels, label);
  }
  WriteDescriptor(bytes);
  return uuid;
}

uint64_t PerfettoPackets::AddGroup(const PerfettoPlace& place) {
  WriteDescriptor(Descriptor(++last_uuid_, place));
  return last_uuid_;
}

PerfettoTrack* PerfettoPackets::AddThread(const PerfettoPlace& place, int64_t pid, int64_t tid,
                                          int64_t start_ns) {
  std::string bytes = Descriptor(++last_uuid_, {.parent = place.parent, .order = place.order});
  {
    pbf_writer writer(bytes);
    pbf_writer thread(writer, descriptor::kThread);
    thread.add_int32(perfetto::thread::kPid, static_cast<int32_t>(pid));
    thread.add_int64(perfetto::thread::kTid, tid);
    perfetto::AddText(&thread, perfetto::thread::kName, place.name);
  }
  WriteDescriptor(bytes);
  return AddSequence(last_uuid_, {}, start_ns);
}

PerfettoTrack* PerfettoPackets::AddLane(const PerfettoPlace& place, int64_t start_ns) {
  return AddSequence(AddGroup(place), {}, start_ns);
}

PerfettoTrack* PerfettoPackets::AddCounter(const PerfettoPlace& place, Unit unit,
                                           int64_t start_ns) {
  std::string bytes = Descriptor(++last_uuid_, place);
  {
    pbf_writer writer(bytes);
    pbf_writer counter(writer, descriptor::kCounter);
    counter.add_int32(perfetto::counter::kUnit,
                      unit == Unit::kBytes ? perfetto::counter::kBytes : perfetto::counter::kCount);
  }
  WriteDescriptor(bytes);
  return AddSequence(last_uuid_, {}, start_ns);
}

PerfettoTrack* PerfettoPackets::AddSequence(uint64_t uuid, std::string_view interned,
                                            int64_t start_ns) {
  const uint32_t sequence = ++last_sequence_;
  std::string bytes;
  pbf_writer first(bytes);
  {
    pbf_writer clocks(first, packet::kClockSnapshot);
    for (const int id : {perfetto::snapshot::kRealtime, perfetto::snapshot::kSequenceClock}) {
      pbf_writer clock(clocks, perfetto::snapshot::kClocks);
      clock.add_uint32(perfetto::snapshot::kClockId, static_cast<uint32_t>(id));
      clock.add_uint64(perfetto::snapshot::kTimestamp, static_cast<uint64_t>(start_ns));
      if (id == perfetto::snapshot::kSequenceClock) {
        clock.add_bool(perfetto::snapshot::kIsIncremental, true);
      }
    }
    clocks.add_int32(perfetto::snapshot::kPrimaryClock, perfetto::snapshot::kRealtime);
  }
  first.add_uint32(packet::kSequence, sequence);
  first.add_message(packet::kInternedData, CommonNames() + std::string(interned));
  first.add_uint32(packet::kSequenceFlags, packet::kStateCleared);
  {
    pbf_writer defaults(first, packet::kDefaults);
    if (uuid != 0) {
      pbf_writer event(defaults, perfetto::defaults::kTrackEvent);
      event.add_uint64(perfetto::event::kTrack, uuid);
    }
    defaults.add_uint32(perfetto::defaults::kTimestampClock, perfetto::snapshot::kSequenceClock);
  }
  first.add_bool(packet::kFirstOnSequence, true);
  WritePacket(bytes);

  PerfettoTrack& track = tracks_.emplace_back();
  track.uuid = uuid;
  track.clock_ns = start_ns;
  char* at = track.stamp;
  *at++ = packet::kSequence << 3;
  at = PutVarint(at, sequence);
  *at++ = packet::kSequenceFlags << 3;
  *at++ = packet::kNeedsState;
  track.stamp_bytes = static_cast<uint8_t>(at - track.stamp);
  *at = packet::kTrackEvent << 3 | 2;
  return &track;
}

void PerfettoPackets::WriteDescriptor(std::string_view bytes) {
  std::string body;
  pbf_writer writer(body);
  writer.add_uint32(packet::kSequence, descriptors_);
  writer.add_message(packet::kTrackDescriptor, bytes.data(), bytes.size());
  WritePacket(body);
}

void PerfettoPackets::WriteName(PerfettoTrack* track, uint32_t iid, std::string_view text) {
  if (track->known.size() <= iid / 64) track->known.resize(iid / 64 + 1);
  track->known[iid / 64] |= uint64_t{1} << iid % 64;
  std::string interned;
  {
    pbf_writer writer(interned);
    pbf_writer entry(writer, perfetto::interned::kEventNames);
    entry.add_uint64(perfetto::interned::kId, iid);
    perfetto::AddText(&entry, perfetto::interned::kText, text);
  }
  Intern(track, interned);
}

void PerfettoPackets::Intern(PerfettoTrack* track, std::string_view interned) {
  std::string body;
  pbf_writer writer(body);
  writer.add_message(packet::kInternedData, interned.data(), interned.size());
  body.append(track->stamp, track->stamp_bytes);
  WritePacket(body);
}

void PerfettoPackets::Stage(PerfettoTrack* track, int64_t time_ns, std::string_view event) {
  char stamp[32];
  std::string body(stamp, PutStamp(stamp, track, time_ns));
  pbf_writer writer(body);
  writer.add_message(packet::kRenderStage, event.data(), event.size());
  WritePacket(body);
}

void PerfettoPackets::WritePacket(std::string_view bytes) {
  char* const start = Room(bytes.size() + 16);
  char* at = start;
  *at++ = perfetto::kTracePacket << 3 | 2;
  at = PutBytes(PutVarint(at, bytes.size()), bytes);
  at_ = at;
}

void PerfettoPackets::MakeRoom(size_t bytes) {
  Flush();
  buffer_.resize(std::max({buffer_.size(), kBufferBytes, bytes}));
  at_ = buffer_.data();
  end_ = at_ + buffer_.size();
}

void PerfettoPackets::Flush() {
  file_->Write({buffer_.data(), at_});
  at_ = buffer_.data();
}

void PerfettoPackets::WriteLarge(size_t most, PerfettoTrack* track, int64_t time_ns, int type,
                                 const PerfettoEvent& event) {
  at_ = PutEvent<4>(Room(most), track, time_ns, type, event);
}

template <typename PutValue>
void PerfettoPackets::WriteCount(PerfettoTrack* track, int64_t time_ns, PutValue put_value) {
  char* const start = Room(64);
  *start = perfetto::kTracePacket << 3 | 2;
  char* at = PutStamp(start + 2, track, time_ns);
  char* const inner = at + 1;
  at = inner + 1;
  *at++ = perfetto::event::kType << 3;
  *at++ = perfetto::event::kCounter;
  at = put_value(at);
  *inner = static_cast<char>(at - inner - 1);
  start[1] = static_cast<char>(at - start - 2);
  at_ = at;
}

void PerfettoPackets::Count(PerfettoTrack* track, int64_t time_ns, int64_t value) {
  WriteCount(track, time_ns, [value](char* at) {
    at = PutVarint(at, perfetto::event::kCounterValue << 3);
    return PutVarint(at, static_cast<uint64_t>(value));
  });
}

void PerfettoPackets::Count(PerfettoTrack* track, int64_t time_ns, double value) {
  WriteCount(track, time_ns, [value](char* at) {
    at = PutVarint(at, perfetto::event::kDoubleCounterValue << 3 | 1);
    std::memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
  });
}

}  // namespace ranktap::collector
