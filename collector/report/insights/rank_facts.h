// Facts of one rank for several rules, each worked out when the first asks.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/framework/operator_around.h"
#include "collector/facts/framework/program_lines.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/report/insights/insight.h"
#include "collector/trace/memo.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall;

// A moment of a counted step in which nothing computes, with its cause.
struct LostPiece {
  int64_t start = 0, end = 0;
  Cause cause{};
  uint32_t span = kNone;  // of spans(): what runs, or what an idle device runs next
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

// Safe from several threads.
class RankFacts {
 public:
  RankFacts(const Run& run, uint32_t trace);

  const Run& run() const { return run_; }
  uint32_t index() const { return index_; }
  const Trace& trace() const { return trace_; }
  const RankWaterfall& waterfall() const { return waterfall_; }

  // Something ran on a device, in steps or without.
  bool has_device() const;
  // Where it did not: nothing ran, or what ran is not in the file.
  std::string_view WhyNoDevice() const;
  // The host's launches are in the trace.
  bool has_launches() const;
  bool has_steps() const;

  // The steps after the warm-up, as the devices ran them; merged. Without steps all of the trace.
  const std::vector<Interval>& counted() const { return counted_; }
  bool IsCounted(int64_t time) const;
  int64_t step_ns() const;
  // Divides a sum over counted steps.
  int64_t PerStep(int64_t sum) const;
  double TimesPerStep(int64_t count) const;
  // Whether so much of each step is `share` of it, at least.
  bool IsWorth(int64_t ns_per_step, double share) const;
  std::string OfStep() const;                   // "of each 12.30 ms step", "of 12.30 s"
  std::string TimesAStep(int64_t count) const;  // "3.2 times a step", "12 times"

  const DeviceSpans& spans() const { return spans_; }
  // How long work of one kind ran in counted steps, and none of another kind.
  int64_t TimeAlone(WorkKind kind, WorkKind other) const;
  // By start. Of a cause alone: a rule asks for one or two of them, and 10 M events have 4 M
  // pieces.
  const std::vector<LostPiece>& lost(Cause cause) const { return Lost().by_cause[Index(cause)]; }
  // By place in lost(Cause::kSync): when the device ran dry, maybe in an earlier piece or step.
  const std::vector<int64_t>& dry_since() const { return Lost().dry_since; }
  // Calls visit(piece) for those of `causes` (BitOf), by start.
  template <typename Visit>
  void ForEachLost(uint32_t causes, Visit&& visit) const {
    std::vector<std::span<const LostPiece>> rest;
    for (size_t c = 0; c < kCauses; ++c) {
      const auto cause = static_cast<Cause>(c);
      if ((causes & BitOf(cause)) != 0 && !lost(cause).empty()) rest.emplace_back(lost(cause));
    }
    while (!rest.empty()) {
      std::ranges::sort(rest, {}, [](const auto& pieces) { return pieces[0].start; });
      const int64_t until = rest.size() == 1 ? INT64_MAX : rest[1][0].start;
      size_t visited = 0;
      while (visited < rest[0].size() && rest[0][visited].start < until) visit(rest[0][visited++]);
      rest[0] = rest[0].subspan(visited);
      if (rest[0].empty()) rest.erase(rest.begin());
    }
  }
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

  // What some rules share alone: worked out once, as by a memo.
  template <typename Fact, typename Make>
  const Fact& Get(Make&& make) const {
    return memo_.Get<Fact>(std::forward<Make>(make));
  }

 private:
  struct LostTime {
    std::array<std::vector<LostPiece>, kCauses> by_cause;
    std::vector<int64_t> dry_since;
  };
  static size_t Index(Cause cause) { return static_cast<size_t>(cause); }
  const LostTime& Lost() const;
  LostTime FindLost() const;
  std::vector<HostWait> FindWaits() const;

  const Run& run_;
  const uint32_t index_;
  const Trace& trace_;
  const RankWaterfall& waterfall_;
  const DeviceSpans& spans_;
  std::vector<Interval> counted_;
  mutable std::atomic<size_t> counted_at_ = 0;  // where the last question was answered
  Memo memo_;
};

}  // namespace ranktap::collector
