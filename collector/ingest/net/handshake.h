// Hello and welcome: who is let in, and in which words the others are turned away.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/frame.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/hello.pb.h"

namespace ranktap::collector {

inline constexpr uint32_t kProtocolMin = 1;
inline constexpr uint32_t kProtocolMax = 1;
inline constexpr uint64_t kKnownFeatures = 0;
inline constexpr size_t kSessionBytes = 16;

// Total over any payload. False: not a hello that makes sense; the connection is closed.
[[nodiscard]] bool ParseHello(std::span<const std::byte> payload, v1::Hello* hello);

// Why this agent cannot be served, in a sentence for its log; empty: it can.
std::string RefusalOf(const v1::Hello& hello);

// A whole frame, header included.
std::vector<std::byte> EncodeControl(proto::FrameType type, const std::string& payload);

// The frame of a welcome. The agent tells names again as often as that; 0: once.
std::vector<std::byte> EncodeWelcome(const v1::Welcome& welcome, uint64_t tell_again_ns);

}  // namespace ranktap::collector
