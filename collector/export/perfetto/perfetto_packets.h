// Packets of a Perfetto trace.
//
// Each track is a packet sequence of its own: its uuid and an incremental clock are the sequence's
// defaults, so that an event carries neither, only the nanoseconds since the event before it.
// Events of a track therefore come in the order of time. Names are interned once in each track.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/export/output_file.h"
#include "collector/export/perfetto/perfetto_event.h"

namespace ranktap::collector {

struct PerfettoPlace {
  std::string_view name;
  uint64_t parent = 0;  // uuid
  int order = 0;        // among its siblings
};

class PerfettoPackets {
 public:
  // `first`: tracks and sequences are numbered from there, for files that are read together.
  explicit PerfettoPackets(OutputFile* file, uint32_t first = 0)
      : file_(file),
        last_uuid_(uint64_t{first} << 32),
        last_sequence_(1 + first),
        descriptors_(1 + first) {}

  // Tracks that hold others; they return their uuid.
  uint64_t AddProcess(int64_t pid, std::string_view name, std::span<const std::string> command,
                      std::span<const std::string> labels);
  uint64_t AddGroup(const PerfettoPlace& place);
  // Tracks that hold events, the first of them at `start_ns` or later. The pointers stay valid.
  PerfettoTrack* AddThread(const PerfettoPlace& place, int64_t pid, int64_t tid, int64_t start_ns);
  PerfettoTrack* AddLane(const PerfettoPlace& place, int64_t start_ns);
  enum class Unit { kNone, kBytes };
  PerfettoTrack* AddCounter(const PerfettoPlace& place, Unit unit, int64_t start_ns);

  // Makes `iid` (from 1, chosen by the caller, one meaning in the whole file) known on the track.
  template <typename TextOf>
  void Name(PerfettoTrack* track, uint32_t iid, TextOf text_of) {
    if (track->Knows(iid)) return;
    WriteName(track, iid, text_of());
  }

  // A sequence of render stages, on no track. `interned`: fields of InternedData that its events
  // refer to.
  PerfettoTrack* AddStages(std::string_view interned, int64_t start_ns) {
    return AddSequence(0, interned, start_ns);
  }
  void Intern(PerfettoTrack* track, std::string_view interned);
  // `event`: an encoded GpuRenderStageEvent.
  void Stage(PerfettoTrack* track, int64_t time_ns, std::string_view event);

  [[gnu::always_inline]] void Begin(PerfettoTrack* track, int64_t time_ns,
                                    const PerfettoEvent& event) {
    Write(track, time_ns, 1, event);
  }
  [[gnu::always_inline]] void End(PerfettoTrack* track, int64_t time_ns) {
    at_ = PutEnd(Room(64), track, time_ns);
  }
  void Instant(PerfettoTrack* track, int64_t time_ns, const PerfettoEvent& event) {
    Write(track, time_ns, 3, event);
  }
  void Count(PerfettoTrack* track, int64_t time_ns, int64_t value);
  void Count(PerfettoTrack* track, int64_t time_ns, double value);

  void Flush();

 private:
  static constexpr size_t kBufferBytes = 256u << 10;

  PerfettoTrack* AddSequence(uint64_t uuid, std::string_view interned, int64_t start_ns);
  void WriteDescriptor(std::string_view descriptor);
  void WritePacket(std::string_view packet);
  void WriteName(PerfettoTrack* track, uint32_t iid, std::string_view text);
  // Inlined, and with a copy for what is not, an event is never in memory: to make it and to read
  // it again took as long as to encode it.
  [[gnu::always_inline]] void Write(PerfettoTrack* track, int64_t time_ns, int type,
                                    const PerfettoEvent& event) {
    const size_t most = MostBytes(event);
    if (most >= 1u << 14) [[unlikely]] {
      return WriteLarge(most, track, time_ns, type, PerfettoEvent(event));
    }
    at_ = PutEvent<2>(Room(most), track, time_ns, type, event);
  }
  void WriteLarge(size_t most, PerfettoTrack* track, int64_t time_ns, int type,
                  const PerfettoEvent& event);
  template <typename PutValue>
  void WriteCount(PerfettoTrack* track, int64_t time_ns, PutValue put_value);
  [[gnu::always_inline]] char* Room(size_t bytes) {
    if (static_cast<size_t>(end_ - at_) < bytes) [[unlikely]]
      MakeRoom(bytes);
    return at_;
  }
  void MakeRoom(size_t bytes);

  OutputFile* file_;
  std::vector<char> buffer_;
  char *at_ = nullptr, *end_ = nullptr;  // of what is free of it
  std::deque<PerfettoTrack> tracks_;
  uint64_t last_uuid_;
  uint32_t last_sequence_;
  const uint32_t descriptors_;  // their sequence
};

}  // namespace ranktap::collector
