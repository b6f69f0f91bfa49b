#include "collector/ingest/session/session.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/file/trace_state.h"
#include "proto/encode_entry.h"
#include "proto/frame.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/hello.pb.h"

namespace ranktap::collector {
namespace {

// protobuf makes large objects of small bytes; an amendment of a real process is some kilobytes.
constexpr size_t kMaxAmendmentBytes = 256u << 10;

template <typename Message>
bool Parse(std::span<const std::byte> payload, Message* message) {
  return message->ParseFromArray(payload.data(), static_cast<int>(payload.size()));
}

template <typename Message>
bool Parses(std::span<const std::byte> payload) {
  Message message;
  return Parse(payload, &message);
}

bool ParsesAs(proto::FrameType type, std::span<const std::byte> payload) {
  switch (type) {
    case proto::FrameType::kAmend: {
      v1::Hello amendment;
      return payload.size() <= kMaxAmendmentBytes && Parse(payload, &amendment) &&
             HasFewItems(amendment);
    }
    case proto::FrameType::kDictionary:
      return ForEachEntry(payload, [](uint32_t, uint64_t, std::string_view) {});
    case proto::FrameType::kClock:
      return Parses<v1::ClockReadings>(payload);
    case proto::FrameType::kGap:
      return Parses<v1::Gap>(payload);
    case proto::FrameType::kCost:
      return Parses<v1::Cost>(payload);
    case proto::FrameType::kGoodbye: {
      v1::Goodbye goodbye;
      return Parse(payload, &goodbye) && AreAccounts(goodbye.accounts());
    }
    case proto::FrameType::kAccounts: {
      v1::Accounts accounts;
      return Parse(payload, &accounts) && AreAccounts(accounts);
    }
    case proto::FrameType::kHello:
    case proto::FrameType::kWelcome:
    case proto::FrameType::kAck:
    case proto::FrameType::kLevel:
    case proto::FrameType::kLoss:
    case proto::FrameType::kOpenCalls:
    case proto::FrameType::kControl:
    case proto::FrameType::kReport:
    case proto::FrameType::kDeviceSamples:
      return false;  // not from an agent, or not twice
    default:
      return true;  // a type of a newer agent: stored, and skipped by readers
  }
}

}  // namespace

uint64_t Session::MemoryBytes() const {
  // Its hello twice, as objects; a process's descriptors in the kernel; nodes of the maps.
  constexpr uint64_t kSessionBytes = 8u << 10, kWriterBytes = 192, kHelloTimes = 8;
  return kSessionBytes + stored_memory + next_event_.size() * kWriterBytes +
         hello_bytes_ * kHelloTimes + amended_bytes_ * kHelloTimes + live_.MemoryBytes();
}

bool Session::CheckControl(const proto::FrameView& frame, std::string* why) const {
  if (frame.header.events != 0) {
    *why = "events in a control frame";
  } else if (!ParsesAs(frame.header.type, frame.payload)) {
    *why = "control frame does not parse, or is not an agent's to send";
  } else if (frame.header.type == proto::FrameType::kDictionary &&
             dictionary_bytes_ + frame.payload.size() > kMaxDictionaryBytes) {
    *why = "dictionary over the limit";
  } else if (frame.header.type == proto::FrameType::kAmend &&
             amended_bytes_ + frame.payload.size() > kMaxHelloBytes / 2) {
    *why = "amendments over the limit";
  }
  return why->empty();
}

// The limit is of what a file's state holds (TraceState), which has its own.
void Session::NoteNames(std::span<const std::byte> dictionary) {
  const auto again = std::as_bytes(std::span(proto::kToldAgainMessage));
  dictionary_bytes_ =
      std::ranges::equal(dictionary, again) ? 0 : dictionary_bytes_ + dictionary.size();
}

Session::Verdict Session::CheckLoss(const proto::FrameView& frame, const IngestLimits& limits,
                                    std::string* why) {
  v1::LostRange lost;
  if (frame.header.events != 0 ||
      !lost.ParseFromArray(frame.payload.data(), static_cast<int>(frame.payload.size())) ||
      lost.first_event() + lost.events() < lost.first_event()) {
    *why = "lost positions that do not parse";
    return Verdict::kViolation;
  }
  // Said to be lost by whoever did not know better.
  const auto known = next_event_.find(lost.writer());
  if (known != next_event_.end() && lost.first_event() < known->second) return Verdict::kDuplicate;
  return CheckPositions(lost.writer(), lost.first_event(), lost.first_event() + lost.events(),
                        limits, why);
}

Session::Verdict Session::CheckPositions(uint32_t writer, uint64_t first, uint64_t end,
                                         const IngestLimits& limits, std::string* why) {
  if (writer == 0 || first == end) {
    *why = "events without a writer, or none";
    return Verdict::kViolation;
  }
  const auto known = next_event_.find(writer);
  if (known == next_event_.end() && next_event_.size() >= limits.writers_per_session) {
    *why = "too many writers";
    return Verdict::kViolation;
  }
  const uint64_t next = known == next_event_.end() ? 0 : known->second;
  const bool first_on_connection = seen_.insert(writer).second;
  if (end <= next) return Verdict::kDuplicate;
  if (first < next || (first > next && !first_on_connection)) {
    *why = fmt::format("writer {} goes on at {}, expected {}", writer, first, next);
    return Verdict::kViolation;
  }
  next_event_[writer] = end;
  return Verdict::kTaken;
}

Session::Verdict Session::Accept(const proto::FrameView& frame, std::span<const std::byte> bytes,
                                 uint64_t now_ns, const IngestLimits& limits, std::string* why,
                                 LiveColumns* live) {
  if (said_goodbye) {
    *why = "a frame after goodbye";
    return Verdict::kViolation;
  }
  ++connection_frames_;
  const proto::FrameType type = frame.header.type;
  // Of no file: it is acknowledged with the next block.
  if (type == proto::FrameType::kFlight) return Verdict::kTaken;
  if (type == proto::FrameType::kEvents || type == proto::FrameType::kLoss) {
    const proto::FrameHeader& header = frame.header;
    const Verdict verdict = type == proto::FrameType::kLoss
                                ? CheckLoss(frame, limits, why)
                                : CheckPositions(header.writer, header.first_event,
                                                 header.first_event + header.events, limits, why);
    if (verdict == Verdict::kViolation) return verdict;
    // A duplicate is acked with the block that follows, so one must be open.
    OpenBlock();
    if (verdict == Verdict::kDuplicate) return verdict;
  } else {
    if (!CheckControl(frame, why)) return Verdict::kViolation;
    if (type == proto::FrameType::kDictionary) NoteNames(frame.payload);
    if (type == proto::FrameType::kAmend) amended_bytes_ += frame.payload.size();
    said_goodbye = type == proto::FrameType::kGoodbye;
  }
  OpenBlock();
  block_.Append(bytes, frame.header.events, now_ns);
  ledger_.Note(frame, bytes.size(), now_ns);
  live_.Take(frame, live);
  return Verdict::kTaken;
}

void Session::Add(const proto::FrameFields& fields, std::span<const std::byte> payload,
                  uint64_t now_ns) {
  OpenBlock();
  block_.Append(fields, payload, now_ns);
}

FrameBlock Session::TakeBlock() {
  block_open_ = false;
  return std::exchange(block_, {});
}

}  // namespace ranktap::collector
