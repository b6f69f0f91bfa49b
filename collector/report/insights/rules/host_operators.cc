// Operators of a job on the processor below the roofs that ranktap calibrate measured of its host:
// products, what memory bounds, and those too small to reach any roof.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/roofline/roofs.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"
#include "collector/report/insights/rules/host_operators.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfStep = 0.05, kLeastShareOfTiny = 0.1;
constexpr double kFarFromRoofPercent = 50;
constexpr double kFusedPart = 0.5;  // as on a device
constexpr double kLeastTinyPerStep = 50, kLeastPartTiny = 0.5;

// Operators of counted steps, each once from its begin to its end, whatever threads it used.
class HostOperators {
 public:
  explicit HostOperators(const RankFacts& rank)
      : rank_(rank), roofs_(RoofsOfTrace(rank.trace(), {}).Of(kNone)) {}

  template <typename Fits>
  void Choose(Fits fits) {
    const Trace& trace = rank_.trace();
    for (const RooflinePoint& point : MeasureCounted(trace).points) {
      if (point.op == kNone || !rank_.IsCounted(trace.operators.start[point.op])) continue;
      const RoofJudgement of = JudgePoint(point, roofs_, false);
      const std::string_view name = trace.dictionary.String(point.name);
      if (!of.is_timed) continue;
      ++all_;
      if (!fits(point, of, name)) continue;
      ++count_;
      total_ns_ += point.host_ns;
      least_ns_ += std::min(of.least_ns, static_cast<double>(point.host_ns));
      by_name_[name] += point.host_ns;
      const int64_t start = trace.operators.start[point.op];
      by_place_[rank_.PlaceAt(trace.operators.writer[point.op], start)] += point.host_ns;
    }
  }

  int64_t all() const { return all_; }
  int64_t count() const { return count_; }
  bool IsWorth(double share) const {
    return count_ > 0 && rank_.IsWorth(rank_.PerStep(total_ns_), share);
  }
  // The part of their time that their roofs do not need.
  double Excess() const {
    return total_ns_ == 0 ? 0 : 1 - least_ns_ / static_cast<double>(total_ns_);
  }
  std::string Taking() const {
    const int64_t ns = rank_.PerStep(total_ns_);
    return fmt::format("taking {} {} ({})", FormatNs(ns), rank_.OfStep(),
                       FormatShare(ns, rank_.step_ns()));
  }
  std::string_view Longest() const { return MostOf(by_name_); }
  // No critical path goes through a job without a device: nobody knows what others would wait for.
  Insight AsInsight(std::string finding, double share) const {
    return {.finding = std::move(finding),
            .where = std::string(MostOf(by_place_)),
            .count = count_,
            .lost_ns = static_cast<int64_t>(static_cast<double>(rank_.PerStep(total_ns_)) * share)};
  }

 private:
  template <typename Sums>
  static std::string_view MostOf(const Sums& sums) {
    std::string_view most;
    int64_t ns = 0;
    for (const auto& [key, sum] : sums) {
      if (sum <= ns) continue;
      most = key;
      ns = sum;
    }
    return most;
  }

  const RankFacts& rank_;
  const Roofs roofs_;
  int64_t all_ = 0, count_ = 0, total_ns_ = 0;
  double least_ns_ = 0;
  std::map<std::string_view, int64_t> by_name_;
  std::map<std::string, int64_t> by_place_;
};

}  // namespace

bool HasHostRoofs(const RankFacts& rank) {
  return !rank.has_device() && rank.waterfall().counted > 0 &&
         RoofsOfTrace(rank.trace(), {}).Of(kNone).measured != nullptr;
}

Answer FindHostProductsBelowRoof(const RankFacts& rank) {
  HostOperators chosen(rank);
  chosen.Choose([](const RooflinePoint& point, const RoofJudgement& of, std::string_view) {
    return point.flops > 0 && of.bound == RoofBound::kCompute && !of.is_above &&
           100 * of.least_ns < kFarFromRoofPercent * static_cast<double>(point.host_ns);
  });
  if (!chosen.IsWorth(kLeastShareOfStep)) return {};
  return {.insights = {chosen.AsInsight(
              fmt::format("{} products stay below {:.0f} % of what this processor was measured to "
                          "do, {}; at it they would take {:.0f} % of that; most time goes to {}.",
                          chosen.count(), kFarFromRoofPercent, chosen.Taking(),
                          100 * (1 - chosen.Excess()), chosen.Longest()),
              chosen.Excess())}};
}

Answer FindHostMemoryBound(const RankFacts& rank) {
  HostOperators chosen(rank);
  chosen.Choose([](const RooflinePoint& point, const RoofJudgement& of, std::string_view name) {
    return of.bound == RoofBound::kMemory && point.flops == 0 &&
           !HasFormula(FlopRule::kCounter, name) && point.phase != RooflinePhase::kOptimizer &&
           IsFusible(name);
  });
  if (!chosen.IsWorth(kLeastShareOfStep)) return {};
  return {.insights = {chosen.AsInsight(
              fmt::format("{} operators compute no product and are bound by the processor's "
                          "memory, {}; most time goes to {}.",
                          chosen.count(), chosen.Taking(), chosen.Longest()),
              kFusedPart)}};
}

Answer FindTinyOperators(const RankFacts& rank) {
  if (!HasHostRoofs(rank)) {
    return CannotTell(
        "it did not run on the processor alone, or nobody calibrated that (ranktap calibrate)");
  }
  HostOperators chosen(rank);
  chosen.Choose([](const RooflinePoint&, const RoofJudgement& of, std::string_view) {
    return of.bound == RoofBound::kLatency;
  });
  const bool is_most =
      static_cast<double>(chosen.count()) >= kLeastPartTiny * static_cast<double>(chosen.all());
  if (!is_most || rank.TimesPerStep(chosen.count()) < kLeastTinyPerStep ||
      !chosen.IsWorth(kLeastShareOfTiny)) {
    return {};
  }
  return {.insights = {chosen.AsInsight(
              fmt::format("{} of {} operators have less than 2 us of work for this processor and "
                          "take more than twice that, {}; their roofs need {:.0f} % of it; most "
                          "time goes to {}.",
                          FormatCount(chosen.count()), FormatCount(chosen.all()), chosen.Taking(),
                          100 * (1 - chosen.Excess()), chosen.Longest()),
              chosen.Excess())}};
}

}  // namespace ranktap::collector
