// The streams of a trace's work, numbered as they come.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "collector/facts/device_timeline.h"

namespace ranktap::collector {

class StreamNumbers {
 public:
  using Stream = std::pair<uint32_t, uint32_t>;  // device, number

  // Inlined, it does not make a piece of work whole in memory (DeviceSpans).
  [[gnu::always_inline]] uint32_t Of(const DeviceSpan& span) {
    const Stream stream{span.device, span.stream};
    Slot& slot = slots_[(span.device * 31 + span.stream) % slots_.size()];
    if (slot.number == kNone || slot.stream != stream) slot = {stream, Number(stream)};
    return slot.number;
  }
  // kNone: it has not come.
  uint32_t Find(uint32_t device, uint32_t number) const {
    const auto found = index_.find({device, number});
    return found == index_.end() ? kNone : found->second;
  }
  const Stream& operator[](uint32_t number) const { return streams_[number]; }
  uint32_t size() const { return static_cast<uint32_t>(streams_.size()); }
  // By device and stream.
  std::vector<uint32_t> Sorted() const {
    std::vector<uint32_t> numbers;
    for (const auto& [stream, number] : index_) numbers.push_back(number);
    return numbers;
  }

 private:
  struct Slot {
    Stream stream;
    uint32_t number = kNone;
  };
  uint32_t Number(const Stream& stream) {
    const auto [found, is_new] = index_.try_emplace(stream, size());
    if (is_new) streams_.push_back(stream);
    return found->second;
  }

  std::array<Slot, 64> slots_;  // asked for the last
  std::map<Stream, uint32_t> index_;
  std::vector<Stream> streams_;
};

}  // namespace ranktap::collector
