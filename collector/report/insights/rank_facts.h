// Facts of one rank for several rules, each worked out when the first asks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/framework/operator_around.h"
#include "collector/facts/framework/program_lines.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// A moment of a counted step in which nothing computes, with its cause.
struct LostPiece {
  int64_t start = 0, end = 0;
  Cause cause{};
  uint32_t span = kNone;  // of spans(): what runs, or what an idle device runs next
  // When the device ran dry, maybe in an earlier piece or step; the start where it is not idle.
  int64_t idle_since = 0;
  int64_t length() const { return end - start; }
};

// A call that waits for the device.
struct HostWait {
  const ApiCalls* calls = nullptr;
  uint32_t row = 0;
  int64_t start = 0, end = 0;
  std::string_view api;
  uint16_t writer() const { return calls->writer[row]; }
};

// Not safe from several threads.
class RankFacts {
 public:
  RankFacts(const Run& run, uint32_t trace);

  const Run& run() const { return run_; }
  uint32_t index() const { return index_; }
  const Trace& trace() const { return trace_; }
  const RankWaterfall& waterfall() const { return waterfall_; }

  // Something ran on a device, in steps or without.
  bool has_device() const { return waterfall_.counted > 0 && !waterfall_.on_host; }
  // Where it did not: nothing ran, or what ran is not in the file.
  std::string_view WhyNoDevice() const;
  // The host's launches are in the trace.
  bool has_launches() const;
  bool has_steps() const { return !waterfall_.steps.source.empty(); }

  // The steps after the warm-up, as the devices ran them; merged. Without steps all of the trace.
  const std::vector<Interval>& counted() const { return counted_; }
  bool IsCounted(int64_t time) const;
  int64_t step_ns() const { return waterfall_.mean_step; }
  // Divides a sum over counted steps.
  int64_t PerStep(int64_t sum) const;
  double TimesPerStep(int64_t count) const;
  // Whether so much of each step is `share` of it, at least.
  bool IsWorth(int64_t ns_per_step, double share) const;
  std::string OfStep() const;                   // "of each 12.30 ms step", "of 12.30 s"
  std::string TimesAStep(int64_t count) const;  // "3.2 times a step", "12 times"

  const std::vector<DeviceSpan>& spans() const { return DeviceTimeline(trace_); }
  const std::vector<LostPiece>& lost() const;  // by start
  const std::vector<HostWait>& waits() const;  // by start; of nested ones the outer
  // The call that the host was in; nullptr: in none that waits.
  const HostWait* WaitAt(int64_t time) const;

  // Row of the operator around it; kNone: none is known.
  uint32_t OperatorAt(uint16_t writer, int64_t time) const;
  uint32_t OperatorOf(const DeviceSpan& span) const;
  // "aten::item at train.py(31): step", or what of that is known.
  std::string PlaceAt(uint16_t writer, int64_t time) const;
  std::string PlaceOf(const DeviceSpan& span) const;
  std::string PlaceOf(const HostWait& wait) const;

 private:
  const OperatorAround& Around() const;
  const ProgramLines& Lines() const;

  const Run& run_;
  const uint32_t index_;
  const Trace& trace_;
  const RankWaterfall& waterfall_;
  std::vector<Interval> counted_;
  mutable size_t counted_at_ = 0;  // where the last question was answered
  mutable std::optional<bool> has_launches_;
  mutable std::optional<std::vector<LostPiece>> lost_;
  mutable std::optional<std::vector<HostWait>> waits_;
  mutable std::optional<OperatorAround> around_;
  mutable std::optional<ProgramLines> lines_;
};

}  // namespace ranktap::collector
