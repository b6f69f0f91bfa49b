// Work by its side of the ridge: what memory bounds, what stays far below its line of compute, and
// attention that writes its scores to memory.
#include <fmt/core.h>

#include <string_view>

#include "collector/facts/flops/op_flops.h"
#include "collector/facts/roofline/compute_units.h"
#include "collector/facts/roofline/roofs.h"
#include "collector/report/insights/chosen_work.h"
#include "collector/report/insights/rules/all_rules.h"
#include "collector/report/insights/rules/host_operators.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfRooflineRules = 0.05;  // of the step
// Fused with the operator before it, one no longer reads what that wrote: of a read and a write
// half is left. Longer chains save more.
constexpr double kFusedShare = 0.5;
constexpr double kFarPercent = 50;  // of its roof

// The bytes and the arithmetic of counted operators, with their roofs.
struct Judged {
  const RooflinePoint& point;
  RoofJudgement of;
};

class JudgedWork {
 public:
  explicit JudgedWork(const RankFacts& rank)
      : rank_(rank), line_(MeasureCounted(rank.trace())), roofs_(rank.trace(), {}) {}

  // Empty: it can be told.
  std::string_view WhyNot() const {
    if (!rank_.has_device()) return rank_.WhyNoDevice();
    bool is_counted = false, has_roof = false;
    for (const RooflinePoint& point : line_.points) {
      if (point.kind != PointKind::kCounted || point.works == 0) continue;
      is_counted |= point.bytes.is_counted();
      has_roof |= Judge(point).is_counted;
    }
    if (!is_counted) return "no shapes are recorded of operators that launched work";
    return has_roof ? "" : "the peaks of the device are not known";
  }

  // Chooses the points that fit. Adds to `time_ns` their time, and to `saved_ns` what they would
  // need less at their roofs.
  template <typename Fits>
  ChosenWork Choose(Fits fits, double* saved_ns, double* time_ns) const {
    ChosenWork work(rank_);
    for (const RooflinePoint& point : line_.points) {
      const RoofJudgement judged = Judge(point);
      if (!judged.is_timed || !fits(point, judged)) continue;
      *saved_ns += judged.saved_ns;
      *time_ns += static_cast<double>(point.time_ns);
      for (uint32_t i = 0; i < point.works; ++i) {
        work.Add(rank_.spans()[line_.work[point.first_work + i].span]);
      }
    }
    return work;
  }
  template <typename Fits>
  ChosenWork Choose(Fits fits) const {
    double saved_ns = 0, time_ns = 0;
    return Choose(fits, &saved_ns, &time_ns);
  }

  std::string_view NameOf(const RooflinePoint& point) const {
    return rank_.trace().dictionary.String(point.name);
  }

  // Also one whose FLOPs nobody can count: a convolution without strides.
  bool IsProduct(const RooflinePoint& point) const {
    if (HasFormula(FlopRule::kCounter, NameOf(point))) return true;
    for (uint32_t i = 0; i < point.works; ++i) {
      const DeviceSpan& span = rank_.spans()[line_.work[point.first_work + i].span];
      if (span.table == DeviceSpan::Table::kKernel &&
          MathOfKernel(ReadableKernelName(rank_.trace().dictionary.String(span.name))).computes()) {
        return true;
      }
    }
    return false;
  }

 private:
  RoofJudgement Judge(const RooflinePoint& point) const {
    return JudgePoint(point, roofs_.Of(point.device), line_.on_device);
  }

  const RankFacts& rank_;
  const Roofline& line_;
  const RoofsOfTrace roofs_;
};

bool IsMemoryBound(const RoofJudgement& of) {
  return of.bound == RoofBound::kMemory || of.bound == RoofBound::kL2;
}

bool IsSoftmax(std::string_view name) {
  return name == "aten::_softmax" || name == "aten::_softmax_backward_data";
}

}  // namespace

// Copies and joins are nobody's element-wise operators, and softmax over scores has its own rule.
bool IsFusible(std::string_view name) {
  return !IsSoftmax(name) && name.find("copy") == std::string_view::npos && name != "aten::cat" &&
         name != "aten::clone" && name.find("embedding") == std::string_view::npos;
}

Answer FindMemoryBoundOperators(const RankFacts& rank) {
  if (HasHostRoofs(rank)) return FindHostMemoryBound(rank);
  const JudgedWork judged(rank);
  if (!judged.WhyNot().empty()) return CannotTell(judged.WhyNot());
  const ChosenWork work = judged.Choose([&](const RooflinePoint& point, const RoofJudgement& of) {
    return IsMemoryBound(of) && point.flops == 0 && !judged.IsProduct(point) &&
           point.phase != RooflinePhase::kOptimizer && IsFusible(judged.NameOf(point));
  });
  if (!work.IsWorth(kLeastShareOfRooflineRules)) return {};
  return {.insights = {work.AsInsight(
              fmt::format("{} kernels compute no product and are bound by the device's memory, {}; "
                          "most time goes to {}.",
                          work.count(), work.Taking(), work.KernelName()),
              kFusedShare)}};
}

Answer FindProductsBelowRoof(const RankFacts& rank) {
  if (HasHostRoofs(rank)) return FindHostProductsBelowRoof(rank);
  const JudgedWork judged(rank);
  if (!judged.WhyNot().empty()) return CannotTell(judged.WhyNot());
  double saved_ns = 0, time_ns = 0;
  const ChosenWork work = judged.Choose(
      [](const RooflinePoint& point, const RoofJudgement& of) {
        return point.flops > 0 && of.is_counted && point.bytes.is_counted() && !of.is_above &&
               !IsMemoryBound(of) &&
               100 * of.least_ns < kFarPercent * static_cast<double>(point.computing_ns);
      },
      &saved_ns, &time_ns);
  if (time_ns <= 0 || !work.IsWorth(kLeastShareOfRooflineRules)) return {};
  return {
      .insights = {work.AsInsight(
          fmt::format("{} kernels of products stay below {:.0f} % of their roof, {}; at it they "
                      "would take {:.0f} % of that; most time goes to {}.",
                      work.count(), kFarPercent, work.Taking(), 100 * (1 - saved_ns / time_ns),
                      work.KernelName()),
          saved_ns / time_ns)}};
}

Answer FindUnfusedAttention(const RankFacts& rank) {
  const JudgedWork judged(rank);
  if (!judged.WhyNot().empty()) return CannotTell(judged.WhyNot());
  const ChosenWork work = judged.Choose([&](const RooflinePoint& point, const RoofJudgement& of) {
    return IsMemoryBound(of) && IsSoftmax(judged.NameOf(point));
  });
  if (!work.IsWorth(kLeastShareOfRooflineRules)) return {};
  return {.insights = {work.AsInsight(
              fmt::format("{} kernels of softmax read and write scores in the device's memory, {}.",
                          work.count(), work.Taking()),
              1)}};
}

}  // namespace ranktap::collector
