// The memfd that an agent shares, as the collector holds it: never mapped, only read with pread.
// That way a peer that shrinks or punches it can make us read zeros or fail, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "collector/file/file_descriptor.h"
#include "collector/ingest/net/closer.h"

namespace ranktap::collector {

inline constexpr uint64_t kMaxSegmentBytes = 1u << 30;

class Segment {
 public:
  Segment() = default;
  // Takes the descriptor that a process of `user` sent with its hello. Where it is not a sealed
  // memfd of a sensible size, `why` says so and the segment is not valid. `closer` closes it in the
  // end and outlives the segment; null: the segment does.
  Segment(FileDescriptor fd, std::string* why, Closer* closer = nullptr, uid_t user = 0);
  ~Segment();
  Segment(Segment&&) = default;
  Segment& operator=(Segment&&) = delete;

  bool valid() const { return fd_.valid(); }
  uint64_t bytes() const { return bytes_; }
  // The process has spooled what is missing here.
  bool SaysSpooled() const;
  // False when not all of it could be read.
  [[nodiscard]] bool ReadAt(uint64_t offset, std::span<std::byte> into) const;

 private:
  [[nodiscard]] static const char* WhyNot(int fd, uint64_t* bytes);

  FileDescriptor fd_;
  Closer* closer_ = nullptr;
  uid_t user_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace ranktap::collector
