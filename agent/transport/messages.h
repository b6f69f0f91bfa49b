// The contract's plain messages, as bytes: what the agent says (Encode...) and what it understands
// (Decode...). Field numbers are those of proto/ranktap/v1; the contract test reads these bytes
// with protoc's classes. Runs on: the starting thread, the sender and drain threads.  May not: run
// in a hook (allocates).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/cost_fields.h"
#include "agent/core/host_clock.h"
#include "agent/core/process_info.h"
#include "agent/core/rank_identity.h"
#include "proto/cupti_trial.h"
#include "proto/modes.h"
#include "proto/ring.h"

namespace ranktap::agent {

inline constexpr uint32_t kProtocolMin = 1;
inline constexpr uint32_t kProtocolMax = 1;

struct HelloFields {
  std::span<const uint8_t> session;
  ProcessInfo process;
  RankIdentity rank;
  proto::LoadedBy loaded_by;
  proto::Level level;
  proto::HostClockKind host_clock;
  uint64_t segment_bytes;
  std::vector<std::string> notes;
  std::string schedule{};
  std::string socket{};
};
std::string EncodeHello(const HelloFields& hello);

// Messages that go out again and again are appended to a string of the caller's, which need not
// allocate.
void AppendClock(const ClockReading& reading, std::string& bytes);

void AppendCost(const CostFields& cost, std::string& bytes);

// v1.Dictionary with one writer in it.
void AppendWriter(const proto::WriterSlot& slot, std::string& bytes);
// v1.Accounts with this writer's final counters.
void AppendAccount(const proto::WriterSlot& slot, uint64_t committed, std::string& bytes);

// v1.LostRange: positions that will never come.
struct LostEvents {
  uint32_t writer;
  uint64_t first_event, events;
  proto::Loss loss;
};
void AppendLostRange(const LostEvents& lost, std::string& bytes);

// v1.Goodbye of a process that ends in order.
std::string EncodeGoodbye();

struct Welcome {
  uint32_t protocol = 0;
  uint64_t required_features = 0;
  proto::Level level = proto::Level::kUnknown;
  std::vector<std::pair<uint32_t, uint64_t>> positions;  // writer, next event
  std::string refused;
  uint32_t retry_after_ms = 0;
  bool takes_spools = false;
  uint32_t tell_again_ms = 0;
};
// nullopt: not a message. Total over any input.
std::optional<Welcome> DecodeWelcome(std::span<const std::byte> payload);
std::optional<uint64_t> DecodeAck(std::span<const std::byte> payload);

struct LevelOrder {
  proto::Level level = proto::Level::kUnknown;
  uint64_t window = 0;
  std::string reason;
  uint64_t at_realtime_ns = 0;     // 0: at once
  uint64_t until_realtime_ns = 0;  // 0: until told otherwise
  proto::Level level_after = proto::Level::kUnknown;
  bool is_greeting = false;  // of a welcome: what is in force, and no new order
};
std::optional<LevelOrder> DecodeLevelChange(std::span<const std::byte> payload);
// The number of a v1.FlightRequest.
std::optional<uint64_t> DecodeFlightRequest(std::span<const std::byte> payload);
// kNotTried: not a message.
proto::TrialOutcome DecodeCuptiTrialResult(std::span<const std::byte> payload);

}  // namespace ranktap::agent
