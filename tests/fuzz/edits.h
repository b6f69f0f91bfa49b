// What the fuzzers share: an input read piece by piece, and edits of bytes that were good before.
// Random bytes fail the first checksum; edits of good ones, with the checksums repaired, reach the
// code behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "proto/crc32c.h"
#include "proto/frame.h"

namespace ranktap::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : bytes_(data, size) {}
  bool empty() const { return bytes_.empty(); }
  // Zeros beyond the end.
  template <typename T>
  T Take() {
    T value{};
    const size_t size = std::min(sizeof(T), bytes_.size());
    if (size > 0) std::memcpy(&value, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }
  std::string TakeText(size_t size) {
    size = std::min(size, bytes_.size());
    std::string text(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return text;
  }

 private:
  std::span<const uint8_t> bytes_;
};

// Overwrites up to 64 places of `bytes`: 4 bytes of offset, 1 of width, the value.
inline void Edit(Input* input, std::span<std::byte> bytes) {
  constexpr int kMaxEdits = 64;
  for (int i = 0; i < kMaxEdits && !input->empty() && !bytes.empty(); ++i) {
    const size_t offset = input->Take<uint32_t>() % bytes.size();
    const size_t width = size_t{1} << (input->Take<uint8_t>() % 4);
    const auto value = input->Take<uint64_t>();
    std::memcpy(bytes.data() + offset, &value, std::min(width, bytes.size() - offset));
  }
}

// Makes the checksums of the frame at the start of `bytes` agree, whatever else it says.
inline void RepairFrame(std::span<std::byte> bytes) {
  proto::FrameHeader header;
  if (bytes.size() < sizeof(header)) return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const size_t rest = bytes.size() - sizeof(header);
  const size_t payload = std::min<size_t>(header.payload_bytes, rest);
  header.payload_crc = proto::Crc32c(bytes.subspan(sizeof(header), payload));
  header.header_crc = proto::Crc32c(
      std::as_bytes(std::span(&header, 1)).first(offsetof(proto::FrameHeader, header_crc)));
  std::memcpy(bytes.data(), &header, sizeof(header));
}

// A property that does not hold is a crash.
inline void Require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace ranktap::fuzz
