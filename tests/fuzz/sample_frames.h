// Good frames for the fuzzers to spoil: names, kernels, ranges, a clock reading.
#pragma once

#include <string>
#include <vector>

#include "proto/encode.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::fuzz {

struct SameIds {
  uint32_t IdOf(proto::EntryKind, proto::ArenaRef ref) { return ref; }
  uint32_t IdOfText(std::span<const std::byte>) { return 2; }
};

template <typename Event>
Event MakeEvent() {
  Event event{};
  event.header.kind = static_cast<uint16_t>(Event::kKind);
  event.header.bytes = sizeof(event);
  return event;
}

inline std::string Frame(const proto::FrameFields& fields, const std::string& payload) {
  const auto header = proto::MakeFrameHeader(fields, std::as_bytes(std::span(payload)));
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + payload;
}

// 40 kernels and 40 ranges of writer 1.
inline std::string EventFrame(uint64_t first) {
  std::vector<proto::KernelEvent> kernels;
  std::vector<proto::RangePushEvent> pushes;
  std::vector<proto::RangePopEvent> pops;
  for (uint32_t i = 0; i < 40; ++i) {
    auto& kernel = kernels.emplace_back(MakeEvent<proto::KernelEvent>());
    kernel.start_ns = 1'000'000 + 1000 * i + i % 3;
    kernel.end_ns = kernel.start_ns + 100 + i;
    kernel.correlation = i + 1;
    kernel.name = 1 + i % 2;
    auto& push = pushes.emplace_back(MakeEvent<proto::RangePushEvent>());
    push.time_ticks = 5000 + 100 * i;
    auto& pop = pops.emplace_back(MakeEvent<proto::RangePopEvent>());
    pop.time_ticks = push.time_ticks + 50;
  }
  proto::EventEncoder encoder;
  const auto add = [&encoder](const auto& events) {
    for (const auto& event : events) (void)encoder.Add(&event.header, sizeof(event));
  };
  add(kernels), add(pushes), add(pops);
  const auto count = static_cast<uint32_t>(encoder.count());
  SameIds ids;
  std::string payload;
  encoder.Encode(ids, payload);
  return Frame(
      {.type = proto::FrameType::kEvents, .writer = 1, .first_event = first, .events = count},
      payload);
}

inline std::string DictionaryFrame() {
  v1::Dictionary dictionary;
  for (const char* const name : {"gemm", "forward"}) {
    v1::Text& text = *dictionary.add_strings();
    text.set_id(static_cast<uint32_t>(dictionary.strings_size()));
    text.set_text(name);
  }
  v1::Writer& writer = *dictionary.add_writers();
  writer.set_id(1);
  writer.set_name("main");
  return Frame({.type = proto::FrameType::kDictionary}, dictionary.SerializeAsString());
}

inline std::string ClockFrame() {
  v1::ClockReadings clocks;
  v1::ClockReading& reading = *clocks.add_readings();
  reading.set_monotonic_raw_ns(1000);
  reading.set_realtime_ns(1'000'000);
  return Frame({.type = proto::FrameType::kClock}, clocks.SerializeAsString());
}

}  // namespace ranktap::fuzz
