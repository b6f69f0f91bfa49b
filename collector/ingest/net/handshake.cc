#include "collector/ingest/net/handshake.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/file/trace_state.h"

namespace ranktap::collector {
namespace {

// A hello of a real process is some kilobytes; protobuf turns small bytes into large objects, so
// this also bounds what a hostile one costs.
constexpr size_t kMaxHelloFrameBytes = 256u << 10;

}  // namespace

bool ParseHello(std::span<const std::byte> payload, v1::Hello* hello) {
  return payload.size() <= kMaxHelloFrameBytes &&
         hello->ParseFromArray(payload.data(), static_cast<int>(payload.size())) &&
         hello->session().size() == kSessionBytes && HasFewItems(*hello);
}

std::string RefusalOf(const v1::Hello& hello) {
  if (hello.protocol_min() > kProtocolMax || hello.protocol_max() < kProtocolMin) {
    return fmt::format(
        "the agent speaks protocol {} to {}, this collector {} to {}; use agent and collector of "
        "the same release",
        hello.protocol_min(), hello.protocol_max(), kProtocolMin, kProtocolMax);
  }
  const uint64_t unknown = hello.required_features() & ~kKnownFeatures;
  if (unknown != 0) {
    return fmt::format(
        "the agent requires features {} (a bit set) that this collector does not have; use a newer "
        "collector",
        unknown);
  }
  return {};
}

std::vector<std::byte> EncodeControl(proto::FrameType type, const std::string& payload) {
  const auto body = std::as_bytes(std::span(payload));
  const proto::FrameHeader header = proto::MakeFrameHeader({.type = type}, body);
  const auto head = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> frame(head.begin(), head.end());
  frame.insert(frame.end(), body.begin(), body.end());
  return frame;
}

std::vector<std::byte> EncodeWelcome(const v1::Welcome& welcome, uint64_t tell_again_ns) {
  v1::WelcomeOfKept kept;
  kept.set_tell_again_ms(static_cast<uint32_t>(tell_again_ns / 1'000'000));
  return EncodeControl(proto::FrameType::kWelcome,
                       welcome.SerializeAsString() + kept.SerializeAsString());
}

}  // namespace ranktap::collector
