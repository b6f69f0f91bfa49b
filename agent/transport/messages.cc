// Protobuf by hand, through protozero.
// Runs on: see messages.h.  May not: run in a hook.
#include "agent/transport/messages.h"

#include <array>
#include <cstring>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "agent/core/announcements.h"
#include "agent/core/version.h"
#include "proto/redact.h"

namespace ranktap::agent {
namespace {

using protozero::pbf_reader;
using protozero::pbf_writer;
using protozero::tag_and_type;

void AddText(pbf_writer& message, uint32_t field, std::string_view text) {
  if (!text.empty()) message.add_bytes(field, text.data(), text.size());
}

void AddProcess(pbf_writer& hello, const ProcessInfo& info) {
  pbf_writer process(hello, 6);
  process.add_uint32(1, info.pid);
  process.add_packed_uint32(2, info.ns_pids.begin(), info.ns_pids.end());
  process.add_uint32(3, info.parent_pid);
  process.add_uint32(4, info.uid);
  AddText(process, 5, info.host);
  AddText(process, 6, info.boot_id);
  process.add_uint64(7, info.start_ticks);
  process.add_uint64(8, info.start_realtime_ns);
  AddText(process, 9, info.executable);
  for (const std::string& argument : info.command_line) process.add_bytes(10, argument);
}

// Runs `read(reader)` for each field; false when the bytes are no message.
template <typename Read>
bool ForEachField(std::span<const std::byte> payload, Read&& read) {
  try {
    pbf_reader reader(reinterpret_cast<const char*>(payload.data()), payload.size());
    while (reader.next()) read(reader);
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

// Field 1 of a message that has one; absent it is 0.
std::optional<uint64_t> FirstNumber(std::span<const std::byte> payload) {
  uint64_t number = 0;
  const bool ok = ForEachField(payload, [&number](pbf_reader& field) {
    if (field.tag_and_type() == tag_and_type(1, protozero::pbf_wire_type::varint)) {
      number = field.get_uint64();
    } else {
      field.skip();
    }
  });
  if (!ok) return std::nullopt;
  return number;
}

proto::Level ToLevel(uint64_t value) {
  return value < proto::kLevelNames.size() ? static_cast<proto::Level>(value)
                                           : proto::Level::kUnknown;
}

}  // namespace

std::string EncodeHello(const HelloFields& fields) {
  std::string bytes;
  pbf_writer hello(bytes);
  hello.add_uint32(1, kProtocolMin);
  hello.add_uint32(2, kProtocolMax);
  hello.add_bytes(4, reinterpret_cast<const char*>(fields.session.data()), fields.session.size());
  hello.add_string(5, kVersion);
  AddProcess(hello, fields.process);
  hello.add_enum(7, static_cast<int32_t>(fields.loaded_by));
  hello.add_enum(8, static_cast<int32_t>(fields.level));
  AppendRank(fields.rank, bytes);
  {
    pbf_writer clock(hello, 12);
    clock.add_enum(1, static_cast<int32_t>(fields.host_clock));
  }
  {
    pbf_writer segment(hello, 13);
    segment.add_uint32(1, proto::kSegmentVersion);
    segment.add_uint64(2, fields.segment_bytes);
  }
  for (std::string note : fields.notes) {
    proto::RedactText(note);
    hello.add_string(14, note);
  }
  std::string schedule = fields.schedule;
  proto::RedactText(schedule);
  AddText(hello, 16, schedule);
  AddText(hello, 17, fields.socket);
  return bytes;
}

void AppendClock(const ClockReading& clock, std::string& bytes) {
  pbf_writer readings(bytes);
  pbf_writer reading(readings, 1);
  reading.add_uint64(1, clock.tsc);
  reading.add_uint64(2, clock.monotonic_raw_ns);
  reading.add_uint64(3, clock.realtime_ns);
  reading.add_uint32(4, clock.spread_ns);
}

void AppendCost(const CostFields& fields, std::string& bytes) {
  pbf_writer cost(bytes);
  for (const CostCounter& counter : kCostCounters) {
    cost.add_uint64(counter.field, fields.*counter.member);
  }
}

void AppendWriter(const proto::WriterSlot& slot, std::string& bytes) {
  pbf_writer dictionary(bytes);
  pbf_writer writer(dictionary, 9);
  writer.add_uint32(1, slot.id.load(std::memory_order_relaxed));
  writer.add_uint32(2, slot.kind);
  writer.add_int32(3, slot.thread);
  std::string_view name(slot.name, strnlen(slot.name, sizeof(slot.name)));
  std::string kept;
  if (proto::redact::Redactor(name, false).Run(&kept)) name = kept;
  AddText(writer, 4, name);
}

void AppendAccount(const proto::WriterSlot& slot, uint64_t committed, std::string& bytes) {
  pbf_writer accounts(bytes);
  pbf_writer account(accounts, 1);
  const uint64_t produced = slot.produced.load(std::memory_order_relaxed);
  std::array<uint64_t, proto::kLossCount> lost;
  uint64_t placed = committed;
  for (size_t i = 0; i < lost.size(); ++i) placed += lost[i] = slot.lost[i].load();
  // One may have been cut off for good. More, and the program wrote over the ring, or a child of
  // clone(CLONE_VM) beside us: then the counter tells no more than what is there.
  if (produced > placed) {
    const auto why = produced == placed + 1 ? proto::Loss::kInterrupted : proto::Loss::kDamaged;
    lost[static_cast<size_t>(why)] += produced - placed;
  }
  account.add_uint32(1, slot.id.load(std::memory_order_relaxed));
  account.add_uint64(2, std::max(produced, placed));
  account.add_uint64(3, committed);
  account.add_packed_uint64(4, lost.begin(), lost.end());
  account.add_bool(5, true);
}

void AppendLostRange(const LostEvents& events, std::string& bytes) {
  pbf_writer lost(bytes);
  lost.add_uint32(1, events.writer);
  lost.add_uint64(2, events.first_event);
  lost.add_uint64(3, events.events);
  lost.add_uint32(4, static_cast<uint32_t>(events.loss));
}

std::string EncodeGoodbye() {
  std::string bytes;
  pbf_writer goodbye(bytes);
  goodbye.add_enum(1, 1);  // REASON_EXIT
  return bytes;
}

std::optional<Welcome> DecodeWelcome(std::span<const std::byte> payload) {
  Welcome welcome;
  const bool ok = ForEachField(payload, [&welcome](pbf_reader& field) {
    switch (field.tag_and_type()) {
      case tag_and_type(1, protozero::pbf_wire_type::varint):
        welcome.protocol = field.get_uint32();
        break;
      case tag_and_type(2, protozero::pbf_wire_type::varint):
        welcome.required_features = field.get_uint64();
        break;
      case tag_and_type(5, protozero::pbf_wire_type::varint):
        welcome.level = ToLevel(field.get_uint64());
        break;
      case tag_and_type(6, protozero::pbf_wire_type::length_delimited): {
        std::pair<uint32_t, uint64_t> position;
        pbf_reader inner = field.get_message();
        while (inner.next()) {
          if (inner.tag() == 1) {
            position.first = inner.get_uint32();
          } else if (inner.tag() == 2) {
            position.second = inner.get_uint64();
          } else {
            inner.skip();
          }
        }
        welcome.positions.push_back(position);
        break;
      }
      case tag_and_type(7, protozero::pbf_wire_type::length_delimited):
        welcome.refused = field.get_string();
        break;
      case tag_and_type(8, protozero::pbf_wire_type::varint):
        welcome.retry_after_ms = field.get_uint32();
        break;
      case tag_and_type(9, protozero::pbf_wire_type::varint):
        welcome.takes_spools = field.get_bool();
        break;
      case tag_and_type(10, protozero::pbf_wire_type::varint):
        welcome.tell_again_ms = field.get_uint32();
        break;
      default:
        field.skip();
    }
  });
  if (!ok) return std::nullopt;
  return welcome;
}

std::optional<uint64_t> DecodeAck(std::span<const std::byte> payload) {
  return FirstNumber(payload);
}

std::optional<uint64_t> DecodeFlightRequest(std::span<const std::byte> payload) {
  return FirstNumber(payload);
}

proto::TrialOutcome DecodeCuptiTrialResult(std::span<const std::byte> payload) {
  auto outcome = proto::TrialOutcome::kNotTried;
  const bool ok = ForEachField(payload, [&outcome](pbf_reader& field) {
    if (field.tag_and_type() != tag_and_type(1, protozero::pbf_wire_type::varint)) {
      return field.skip();
    }
    const uint64_t value = field.get_uint64();
    if (value <= static_cast<uint64_t>(proto::TrialOutcome::kNotTried)) {
      outcome = static_cast<proto::TrialOutcome>(value);
    }
  });
  return ok ? outcome : proto::TrialOutcome::kNotTried;
}

std::optional<LevelOrder> DecodeLevelChange(std::span<const std::byte> payload) {
  LevelOrder order;
  const bool ok = ForEachField(payload, [&order](pbf_reader& field) {
    switch (field.tag_and_type()) {
      case tag_and_type(1, protozero::pbf_wire_type::varint):
        order.level = ToLevel(field.get_uint64());
        break;
      case tag_and_type(2, protozero::pbf_wire_type::varint):
        order.window = field.get_uint64();
        break;
      case tag_and_type(3, protozero::pbf_wire_type::length_delimited):
        order.reason = field.get_string();
        break;
      case tag_and_type(4, protozero::pbf_wire_type::varint):
        order.at_realtime_ns = field.get_uint64();
        break;
      case tag_and_type(5, protozero::pbf_wire_type::varint):
        order.until_realtime_ns = field.get_uint64();
        break;
      case tag_and_type(6, protozero::pbf_wire_type::varint):
        order.level_after = ToLevel(field.get_uint64());
        break;
      default:
        field.skip();
    }
  });
  if (!ok) return std::nullopt;
  return order;
}

}  // namespace ranktap::agent
