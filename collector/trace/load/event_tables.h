// The sections of one frame -> rows of a Trace's tables, times still unmapped. The loader's inner
// part: knows every kind, and nothing of files or clocks. The host's tables and the device's share
// nothing, so that two threads can fill them at once.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collector/trace/load/range_matcher.h"
#include "collector/trace/load/section_columns.h"
#include "collector/trace/model.h"
#include "collector/trace/table_columns.h"
#include "proto/decode.h"

namespace ranktap::collector {

// A frame of events. `writer`: an index. `events_missing`: events of it were lost before the frame.
struct EventFrame {
  std::span<const std::byte> payload;
  uint32_t events = 0;
  uint16_t writer = 0;
  bool events_missing = false;
};

class EventTables {
 public:
  explicit EventTables(Trace* trace) : trace_(trace), matcher_(&trace->ranges) {}

  // Adds the frame's events. False, and nothing is added, when the payload is malformed.
  [[nodiscard]] bool AddFrame(const EventFrame& frame);
  // The halves of it, each on a thread of its own if they are called for the same frames in the
  // same order. False: malformed, and nothing was taken back.
  [[nodiscard]] bool AddOfHost(const EventFrame& frame);
  [[nodiscard]] bool AddOfDevice(const EventFrame& frame);
  RangeMatcher& matcher() { return matcher_; }

 private:
  // How far everything reached before a frame.
  struct Sizes {
    std::array<size_t, kTables> tables{};
    std::array<size_t, kRowKinds> rows{};
    RangeMatcher::Position ranges{};
    size_t payloads = 0, lanes = 0;
  };
  Sizes Measure();
  void Restore(const Sizes& sizes);

  [[nodiscard]] bool DecodeOfHost(const EventFrame& frame);
  template <typename Event>
  [[nodiscard]] bool AddSection(const proto::Section<Event>& section);
  // One overload for each kind with columns; every other kind keeps its structs.
  [[nodiscard]] bool Add(const proto::Section<proto::KernelEvent>& section);
  [[nodiscard]] bool Add(const proto::Section<proto::CopyEvent>& section);
  [[nodiscard]] bool Add(const proto::Section<proto::MemsetEvent>& section);
  [[nodiscard]] bool Add(const proto::Section<proto::GraphLaunchEvent>& section);
  [[nodiscard]] bool Add(const proto::Section<proto::SyncEvent>& section);
  [[nodiscard]] bool Add(const proto::Section<proto::ApiCallEvent>& section);
  [[nodiscard]] bool Add(const proto::Section<proto::EventCallEvent>& section);
  [[nodiscard]] bool Add(const proto::Section<proto::RangePushEvent>& section);
  [[nodiscard]] bool Add(const proto::Section<proto::RangePopEvent>& section);
  [[nodiscard]] bool Add(const proto::Section<proto::RangeStartEvent>& section);
  [[nodiscard]] bool Add(const proto::Section<proto::RangeEndEvent>& section);
  [[nodiscard]] bool Add(const proto::Section<proto::MarkEvent>& section);

  template <uint32_t Device, uint32_t Context, uint32_t Stream, typename Event>
  [[nodiscard]] bool AddWork(const proto::Section<Event>& section, DeviceWork* work);
  template <typename Event>
  [[nodiscard]] bool AddCalls(const proto::Section<Event>& section, ApiCalls* calls);
  // `Name`: the number of the first NVTX column (columns.h, NvtxColumns).
  template <uint32_t Name, typename Event>
  [[nodiscard]] bool AddNvtx(const proto::Section<Event>& section, RangeKind kind, Ranges* ranges);
  // Keeps the inline payloads of a section; `column` refers to them from row `rows` on.
  template <typename Event>
  [[nodiscard]] bool AddPayloads(const proto::Section<Event>& section, size_t rows,
                                 OptionalColumn<uint32_t>* column);
  uint32_t LaneOf(uint32_t device, uint32_t context, uint32_t stream);

  Trace* trace_;
  RangeMatcher matcher_;
  uint16_t writer_ = 0;
  size_t first_push_ = 0;
  size_t push_count_ = 0;
  std::array<uint32_t, 8> last_lanes_{};                       // by stream: where it was found
  std::unordered_map<uint64_t, std::vector<uint32_t>> lanes_;  // by device and stream
  Scratch<uint32_t> device_, context_, stream_;
  Unpacked of_host_, of_device_;
};

}  // namespace ranktap::collector
