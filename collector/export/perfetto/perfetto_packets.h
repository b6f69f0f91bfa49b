// Packets of a Perfetto trace.
//
// Each track is a packet sequence of its own: its uuid and an incremental clock are the sequence's
// defaults, so that an event carries neither, only the nanoseconds since the event before it.
// Events of a track therefore come in the order of time. Names are interned once in each track.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/export/output_file.h"

namespace ranktap::collector {

enum class PerfettoCategory : uint8_t {
  kKernel = 1,
  kCopy,
  kMemset,
  kRuntime,
  kDriver,
  kRange,
  kSync,
  kOverhead,
  kGap,
  kOperator,
  kPython,
  kDeviceAnnotation,
  kLast = kDeviceAnnotation,
};
std::string_view NameOf(PerfettoCategory category);

struct PerfettoTrack {
  uint64_t uuid = 0;
  int64_t clock_ns = 0;  // of the last event
  // The packet fields that are the same in each event: sequence and flags.
  char stamp[12];
  uint8_t stamp_bytes = 0;
  std::vector<bool> known;  // names, by iid
};

struct PerfettoEvent {
  uint32_t name = 0;  // iid, see Name()
  PerfettoCategory category{};
  std::optional<uint32_t> correlation = {};                 // the first of the arguments
  std::string_view arguments = {}, more_arguments = {};     // encoded: perfetto_annotations.h
  std::span<const uint64_t> flows = {}, ending_flows = {};  // arrows that leave, that arrive
  std::span<const uint64_t> submissions = {};               // render stages that it launched
};

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
    if (iid < track->known.size() && track->known[iid]) return;
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

  void Begin(PerfettoTrack* track, int64_t time_ns, const PerfettoEvent& event) {
    Write(track, time_ns, 1, event);
  }
  void End(PerfettoTrack* track, int64_t time_ns);
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
  void Write(PerfettoTrack* track, int64_t time_ns, int type, const PerfettoEvent& event);
  template <typename PutValue>
  void WriteCount(PerfettoTrack* track, int64_t time_ns, PutValue put_value);
  char* Room(size_t bytes) {
    if (buffer_.size() - used_ < bytes) MakeRoom(bytes);
    return buffer_.data() + used_;
  }
  void MakeRoom(size_t bytes);

  OutputFile* file_;
  std::vector<char> buffer_;
  size_t used_ = 0;
  std::deque<PerfettoTrack> tracks_;
  uint64_t last_uuid_;
  uint32_t last_sequence_;
  const uint32_t descriptors_;  // their sequence
};

}  // namespace ranktap::collector
