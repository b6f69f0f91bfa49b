// The destination of the sender's frames: the socket to a collector (CollectorLink), or the file
// that takes them while there is none (FileSpool). Frames that stand or fall together are put one
// by one, then committed. Commit says when the ring space behind them may go back.
// Runs on: the sender thread; at exit the exiting thread.  May not: wait for the collector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/frame.h"

namespace ranktap::agent {

class FrameSink {
 public:
  enum class Stored : uint8_t {
    kNow,    // a kill of this process does not take the frames any more
    kOnAck,  // once the collector acknowledges the last frame that was put
    kNever,  // none of the frames since the last Commit is kept; the sink is full or gone
  };

  virtual void Put(const proto::FrameFields& fields, std::span<const std::byte> payload) = 0;
  [[nodiscard]] virtual Stored Commit() = 0;
  // So much is put and not taken that more would only use memory: the rings hold it better.
  virtual bool IsBehind() const = 0;

 protected:
  ~FrameSink() = default;
};

}  // namespace ranktap::agent
