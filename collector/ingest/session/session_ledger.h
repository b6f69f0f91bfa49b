// The figures of `ranktap status` about a process, kept from the frames as they pass. Lives on the
// server's thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "proto/frame.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/devices.pb.h"
#include "ranktap/v1/hello.pb.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

class SessionLedger {
 public:
  explicit SessionLedger(const v1::Hello& hello);

  // A frame that was taken; its payload has been seen to parse.
  void Note(const proto::FrameView& frame, size_t bytes, uint64_t now_ns);

  // NVML's readings of its devices.
  void NoteDevices(const v1::DeviceSamples& samples);

  // The hello with all amendments so far.
  const v1::Hello& hello() const { return hello_; }
  // Of the collector that it was told to find; empty: it did not say.
  const std::string& socket() const { return socket_; }
  bool has_events() const { return events_ > 0; }
  // Everything but what only the server knows (session, run, state, window).
  void Describe(v1::ProcessStatus* status) const;

 private:
  void NoteCost(const proto::FrameView& frame, uint64_t now_ns);
  void NoteClock(const proto::FrameView& frame);
  double NsPerTick() const;

  v1::Hello hello_;
  std::string schedule_, socket_;
  v1::Cost cost_;
  v1::ClockReading first_clock_, last_clock_;
  uint64_t events_ = 0, bytes_ = 0;
  uint64_t device_memory_used_ = 0, device_memory_total_ = 0;
  uint64_t events_per_second_ = 0;
  // As of the cost before: what the rate is taken over.
  uint64_t rate_since_ns_ = 0, rate_events_ = 0;
  std::unordered_map<uint32_t, uint64_t> lost_;  // by writer, where there is any
};

}  // namespace ranktap::collector
