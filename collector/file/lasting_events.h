// Events that are told once and hold on: names of threads and streams, a job's process groups, a
// model's modules; and what samples name, since it was told again. `--keep` drops the file in which
// they came, so that each later file begins with them (v1.Checkpoint.lasting). Bounded. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "proto/events.h"
#include "proto/frame.h"
#include "proto/ring.h"

namespace ranktap::collector {

class LastingEvents {
 public:
  // A serialised v1.Dictionary, which has been seen to parse.
  void AddNames(std::span<const std::byte> dictionary);
  // A complete frame of events.
  void Take(const proto::FrameView& frame);

  // Calls take(frame) for each: whole frames, each of one writer's events, without positions.
  void ForEach(const auto& take) const {
    for (const std::string& frame : told_) take(frame);
    for (const std::string& frame : resources_) take(frame);
    for (const std::string& frame : sampled_) take(frame);
    for (const auto& [window, frames] : described_) {
      for (const std::string& frame : frames) take(frame);
    }
  }
  // Calls take(kind, id) for each entry of the dictionary that they name.
  void ForEachName(const std::function<void(proto::EntryKind, uint64_t id)>& take) const;
  size_t bytes() const { return bytes_; }

 private:
  void Add(std::string frame, std::deque<std::string>* frames);
  void Forget(std::deque<std::string>* frames);

  static constexpr size_t kMostBytes = 4u << 20, kMostNames = 4096;
  // The last window's operators may still be on their way when the next one's begin.
  static constexpr size_t kMostWindows = 2;
  // Ids of marks that hold on, of those that hold on for a window, of the one after which samples'
  // are told again, and of our domains.
  std::set<uint64_t> names_, signatures_, again_, domains_, sample_domains_;
  std::deque<std::string> told_, resources_, sampled_;
  std::map<uint64_t, std::deque<std::string>> described_;  // by window of operators
  size_t bytes_ = 0;
};

}  // namespace ranktap::collector
