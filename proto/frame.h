// The frame: what travels on the socket, and what a trace file's blocks hold.
//
//   FrameHeader | payload (a protobuf message; which one is FrameType's business)
//
// All integers are little-endian; the header is copied as it lies in memory, so both ends are
// little-endian machines (asserted below). A frame of events carries the positions
// [first_event, first_event + events) of one writer: contiguous, so a reader sees a hole.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "proto/crc32c.h"
#include "proto/loss.h"

namespace ranktap::proto {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint32_t kFrameMagic = 0x46505452;  // "RTPF"
inline constexpr uint8_t kFrameVersion = 1;
inline constexpr uint32_t kMaxPayloadBytes = 1u << 20;
// More than a ring chunk can hold of the smallest event; bounds what a payload of a few bytes can
// make a decoder do (a column of one element stands for all).
inline constexpr uint32_t kMaxEventsPerFrame = 32768;

// The kind of the payload. Append only. A receiver skips a type it does not know.
enum class FrameType : uint8_t {
  kHello = 1,           // agent -> collector: v1.Hello, first frame of every connection
  kWelcome = 2,         // collector -> agent: v1.Welcome, or v1.Welcome with `refused` set
  kAmend = 3,           // agent -> collector: v1.Hello with the fields that changed
  kDictionary = 4,      // agent -> collector: v1.Dictionary, before the first event that uses it
  kEvents = 5,          // agent -> collector: v1.Events
  kClock = 6,           // agent -> collector: v1.ClockReadings
  kGap = 7,             // agent -> collector: v1.Gap
  kAck = 8,             // collector -> agent: v1.Ack, sent after the write
  kLevel = 9,           // collector -> agent: v1.LevelChange
  kCost = 10,           // agent -> collector: v1.Cost, cumulative
  kGoodbye = 11,        // agent -> collector: v1.Goodbye, the last frame of a clean end
  kLoss = 12,           // agent -> collector -> file: v1.LostRange, positions that will never come
  kAccounts = 13,       // collector -> file: v1.Accounts, the writers' final counters
  kOpenCalls = 14,      // collector -> file: v1.OpenCalls, launches open at death
  kControl = 15,        // tool -> collector, in place of a hello: v1.ControlRequest
  kReport = 16,         // collector -> tool: v1.ControlReply
  kDeviceSamples = 17,  // collector -> file: v1.DeviceSamples, NVML's readings of its devices
  // agent -> collector: v1.CuptiTrial; back: v1.CuptiTrialResult (cupti_trial.h)
  kCuptiTrial = 18,
  // collector -> agent: v1.FlightRequest, for PyTorch's Flight Recorder; back: v1.FlightPart
  kFlight = 19,
};

struct FrameHeader {
  uint32_t magic;
  uint8_t version;
  FrameType type;
  uint16_t flags;  // none yet; a receiver ignores those it does not know
  uint32_t payload_bytes;
  uint32_t writer;       // 0: not about one writer
  uint64_t first_event;  // position of the first event in this frame
  uint32_t events;       // 0 unless type is kEvents
  uint32_t reserved;
  // The writer's cumulative losses when the frame was made.
  FrameLossCounts lost;
  uint32_t payload_crc;
  uint32_t header_crc;  // of the bytes before it
};
static_assert(sizeof(FrameHeader) == 136);
static_assert(offsetof(FrameHeader, lost) == 32);
static_assert(offsetof(FrameHeader, header_crc) == sizeof(FrameHeader) - 4);

enum class FrameStatus : uint8_t {
  kComplete,
  kNeedMore,
  kBadMagic,
  kBadVersion,
  kTooLarge,
  kBadHeaderCrc,
  kBadPayloadCrc,
  kBadRange,  // more than kMaxEventsPerFrame, or first_event + events overflows
};

struct FrameView {
  FrameStatus status;
  FrameHeader header{};                  // valid from kTooLarge on only for messages to people
  std::span<const std::byte> payload{};  // points into the input; empty unless kComplete
  size_t consumed = 0;                   // bytes of this frame; 0 unless kComplete
};

// Total over any input: never allocates, never reads past `input`, never throws. Anything but
// kComplete and kNeedMore means that the stream can no longer be trusted.
[[nodiscard]] inline FrameView DecodeFrame(std::span<const std::byte> input) {
  FrameView view{.status = FrameStatus::kNeedMore};
  if (input.size() < sizeof(FrameHeader)) {
    // A stranger's first bytes are refused at once, not after 136 of them have come.
    const size_t known = input.size() < sizeof(uint32_t) ? input.size() : sizeof(uint32_t);
    if (known > 0 && std::memcmp(input.data(), &kFrameMagic, known) != 0) {
      view.status = FrameStatus::kBadMagic;
    }
    return view;
  }
  std::memcpy(&view.header, input.data(), sizeof(FrameHeader));
  const FrameHeader& header = view.header;
  if (header.magic != kFrameMagic) {
    view.status = FrameStatus::kBadMagic;
  } else if (header.version != kFrameVersion) {
    view.status = FrameStatus::kBadVersion;
  } else if (Crc32c(input.first(offsetof(FrameHeader, header_crc))) != header.header_crc) {
    view.status = FrameStatus::kBadHeaderCrc;
  } else if (header.payload_bytes > kMaxPayloadBytes) {
    view.status = FrameStatus::kTooLarge;
  } else if (header.events > kMaxEventsPerFrame ||
             header.first_event + header.events < header.first_event) {
    view.status = FrameStatus::kBadRange;
  } else if (input.size() - sizeof(FrameHeader) >= header.payload_bytes) {
    const auto payload = input.subspan(sizeof(FrameHeader), header.payload_bytes);
    if (Crc32c(payload) != header.payload_crc) {
      view.status = FrameStatus::kBadPayloadCrc;
    } else {
      view.status = FrameStatus::kComplete;
      view.payload = payload;
      view.consumed = sizeof(FrameHeader) + payload.size();
    }
  }
  return view;
}

// The fields that vary; MakeFrameHeader fills in the rest.
struct FrameFields {
  FrameType type;
  uint32_t writer = 0;
  uint64_t first_event = 0;
  uint32_t events = 0;
  FrameLossCounts lost{};
};

[[nodiscard]] inline FrameHeader MakeFrameHeader(const FrameFields& fields,
                                                 std::span<const std::byte> payload) {
  FrameHeader header{
      .magic = kFrameMagic,
      .version = kFrameVersion,
      .type = fields.type,
      .flags = 0,
      .payload_bytes = static_cast<uint32_t>(payload.size()),
      .writer = fields.writer,
      .first_event = fields.first_event,
      .events = fields.events,
      .reserved = 0,
      .lost = fields.lost,
      .payload_crc = Crc32c(payload),
      .header_crc = 0,
  };
  header.header_crc =
      Crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(FrameHeader, header_crc)));
  return header;
}

}  // namespace ranktap::proto
