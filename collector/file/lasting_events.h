// Events that are told once and hold on: names of threads and streams, a job's process groups, a
// model's modules. `--keep` drops the file in which they came, so that each later file begins with
// them (v1.Checkpoint.lasting). Bounded. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "proto/events.h"
#include "proto/frame.h"

namespace ranktap::collector {

class LastingEvents {
 public:
  // A serialised v1.Dictionary, which has been seen to parse.
  void AddNames(std::span<const std::byte> dictionary);
  // A complete frame of events.
  void Take(const proto::FrameView& frame);
  // As a checkpoint has it.
  void Restore(std::string frame);

  // Calls take(frame) for each: whole frames, each of one writer's events, without positions.
  void ForEach(const auto& take) const {
    for (const std::string& frame : told_) take(frame);
    for (const std::string& frame : resources_) take(frame);
  }
  size_t bytes() const { return bytes_; }

 private:
  void Add(std::string frame, std::deque<std::string>* frames);

  static constexpr size_t kMostBytes = 4u << 20, kMostNames = 4096;
  std::set<uint64_t> names_, domains_;  // ids of marks that hold on, and of our domains
  std::deque<std::string> told_, resources_;
  size_t bytes_ = 0;
};

}  // namespace ranktap::collector
