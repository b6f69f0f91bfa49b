// Frames on their way from the socket to the file: what becomes one block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/file/trace_writer.h"
#include "proto/frame.h"

namespace ranktap::collector {

struct FrameBlock {
  std::vector<std::byte> bytes;  // whole frames, each checked by DecodeFrame
  FramesSummary summary;

  void Append(std::span<const std::byte> frame, uint32_t events, uint64_t now_ns) {
    if (summary.frames == 0) summary.first_received_ns = now_ns;
    summary.last_received_ns = now_ns;
    ++summary.frames;
    summary.events += events;
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  // Makes the frame's header too.
  void Append(const proto::FrameFields& fields, std::span<const std::byte> payload,
              uint64_t now_ns) {
    const proto::FrameHeader header = proto::MakeFrameHeader(fields, payload);
    Append(std::as_bytes(std::span(&header, 1)), fields.events, now_ns);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
  }
  void Clear() {
    bytes.clear();
    summary = {};
  }
};

}  // namespace ranktap::collector
