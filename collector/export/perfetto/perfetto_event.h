// An event of a track, and its packet's bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "collector/export/perfetto/perfetto_annotations.h"
#include "collector/export/perfetto/perfetto_fields.h"

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
  // The packet fields that are the same in each event: sequence and flags. After them the tag of
  // the event, which stamp_bytes do not count.
  char stamp[16] = {};
  uint8_t stamp_bytes = 0;
  std::vector<uint64_t> known = {};  // a bit for each name, by iid
  [[gnu::always_inline]] bool Knows(uint32_t iid) const {
    return iid / 64 < known.size() && (known[iid / 64] >> iid % 64 & 1) != 0;
  }
};

struct PerfettoEvent {
  uint32_t name = 0;  // iid, see Name()
  PerfettoCategory category{};
  int64_t correlation = -1;                                 // the first of the arguments; -1: none
  std::string_view arguments = {}, more_arguments = {};     // encoded: perfetto_annotations.h
  std::span<const uint64_t> flows = {}, ending_flows = {};  // arrows that leave, that arrive
  std::span<const uint64_t> submissions = {};               // render stages that it launched
};

[[gnu::always_inline]] inline char* PutBytes(char* at, std::string_view bytes) {
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at + bytes.size();
}

// A varint of exactly kWidth bytes, so that a length can be filled in afterwards.
template <size_t kWidth>
[[gnu::always_inline]] inline void PutWide(char* at, size_t value) {
  if constexpr (kWidth == 2) {  // that is, value & 0x7f | 0x80 | value >> 7 << 8
    const auto both = static_cast<uint16_t>(value + (value & 0x3f80) + 0x80);
    std::memcpy(at, &both, sizeof(both));
    return;
  }
  for (size_t i = 0; i + 1 < kWidth; ++i) {
    at[i] = static_cast<char>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  at[kWidth - 1] = static_cast<char>(value);
}

// TracePacket.timestamp and what the track repeats. A tag follows, which does not count.
[[gnu::always_inline]] inline char* PutStamp(char* at, PerfettoTrack* track, int64_t time_ns) {
  const int64_t step = std::max<int64_t>(0, time_ns - track->clock_ns);
  track->clock_ns += step;
  *at++ = perfetto::packet::kTimestamp << 3;
  at = PutAnyVarint(at, static_cast<uint64_t>(step));
  std::memcpy(at, track->stamp, sizeof(track->stamp));
  return at + track->stamp_bytes;
}

[[gnu::always_inline]] inline char* PutFlows(char* at, perfetto::Tag tag,
                                             std::span<const uint64_t> ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    at = PutVarint(at, tag << 3 | 1);
    std::memcpy(at, &ids[i], sizeof(ids[i]));
    at += sizeof(ids[i]);
  }
  return at;
}

[[gnu::always_inline]] inline size_t MostBytes(const PerfettoEvent& event) {
  return 96 + event.arguments.size() + event.more_arguments.size() +
         (event.flows.size() + event.ending_flows.size()) * 10 + event.submissions.size() * 16;
}

// The packet at `start`, its two lengths of kWidth bytes each; returns its end.
template <size_t kWidth>
[[gnu::always_inline]] inline char* PutEvent(char* start, PerfettoTrack* track, int64_t time_ns,
                                             int type, const PerfettoEvent& event) {
  namespace field = perfetto::event;
  *start = perfetto::kTracePacket << 3 | 2;
  char* at = PutStamp(start + 1 + kWidth, track, time_ns);
  char* const inner = at + 1;
  at = inner + kWidth;
  *at++ = field::kCategories << 3;
  *at++ = static_cast<char>(event.category);
  if (event.correlation >= 0) {
    at = PutNote(at, Note::kCorrelation, static_cast<uint64_t>(event.correlation));
  }
  at = PutBytes(PutBytes(at, event.arguments), event.more_arguments);
  *at++ = field::kType << 3;
  *at++ = static_cast<char>(type);
  *at++ = field::kName << 3;
  at = PutVarint(at, event.name);
  at = PutFlows(at, field::kFlows, event.flows);
  at = PutFlows(at, field::kEndingFlows, event.ending_flows);
  for (const uint64_t id : event.submissions) {  // a message of one id each: they are merged
    at = PutVarint(at, uint64_t{field::kGpuCorrelation} << 3 | 2);
    char* const length = at++;
    *at++ = field::kSubmissions << 3;
    at = PutVarint(at, id);
    *length = static_cast<char>(at - length - 1);
  }
  PutWide<kWidth>(inner, static_cast<size_t>(at - inner) - kWidth);
  PutWide<kWidth>(start + 1, static_cast<size_t>(at - start) - 1 - kWidth);
  return at;
}

[[gnu::always_inline]] inline char* PutEnd(char* start, PerfettoTrack* track, int64_t time_ns) {
  *start = perfetto::kTracePacket << 3 | 2;
  char* at = PutStamp(start + 2, track, time_ns);
  at[1] = 2;
  at[2] = perfetto::event::kType << 3;
  at[3] = perfetto::event::kEnd;
  start[1] = static_cast<char>(at + 4 - start - 2);
  return at + 4;
}

}  // namespace ranktap::collector
