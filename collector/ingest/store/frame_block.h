// Frames on their way from the socket to the file: what becomes one block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/file/trace_writer.h"
#include "proto/frame.h"

namespace ranktap::collector {

struct FrameBlock {
  // Whole frames, each checked by DecodeFrame. A large one has a part of its size: one array that
  // doubles as it grows took up to twice the bytes, in each of the open blocks.
  std::vector<std::vector<std::byte>> parts;
  size_t size = 0;  // bytes of all frames
  FramesSummary summary;

  void Append(std::span<const std::byte> frame, uint32_t events, uint64_t now_ns) {
    AppendParts(frame, {}, events, now_ns);
  }
  // Makes the frame's header too.
  void Append(const proto::FrameFields& fields, std::span<const std::byte> payload,
              uint64_t now_ns) {
    const proto::FrameHeader header = proto::MakeFrameHeader(fields, payload);
    AppendParts(std::as_bytes(std::span(&header, 1)), payload, fields.events, now_ns);
  }
  // The frames as one array: the only part, or `scratch`.
  std::span<const std::byte> Bytes(std::vector<std::byte>* scratch) const {
    if (parts.size() == 1) return parts.front();
    scratch->clear();
    for (const auto& part : parts) scratch->insert(scratch->end(), part.begin(), part.end());
    return *scratch;
  }
  void Clear() { *this = {}; }

 private:
  static constexpr size_t kMostRoom = 64u << 10;  // for small frames that may follow

  void AppendParts(std::span<const std::byte> head, std::span<const std::byte> body,
                   uint32_t events, uint64_t now_ns) {
    if (summary.frames == 0) summary.first_received_ns = now_ns;
    summary.last_received_ns = now_ns;
    ++summary.frames;
    summary.events += events;
    const size_t bytes = head.size() + body.size();
    if (parts.empty() || parts.back().capacity() - parts.back().size() < bytes) {
      parts.emplace_back().reserve(std::max(bytes, std::min(size, kMostRoom)));
    }
    parts.back().insert(parts.back().end(), head.begin(), head.end());
    parts.back().insert(parts.back().end(), body.begin(), body.end());
    size += bytes;
  }
};

}  // namespace ranktap::collector
