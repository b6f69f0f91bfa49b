// Whether the operators' arithmetic, and the peak that it is compared with, are those of the
// kernels that ran.
#include <fmt/core.h>

#include <cmath>
#include <optional>
#include <unordered_map>

#include "collector/facts/device_timeline.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/framework/layers.h"
#include "collector/facts/roofline/roofline.h"
#include "collector/report/cells.h"
#include "collector/report/claims/cross_checks.h"
#include "collector/report/framework/module_summary.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/throughput.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr double kTolerableUncounted = 0.25;  // of the time of kernels that multiply

constexpr double kSameFlops = 0.1;  // of a step
constexpr double kSameForward = 2;  // times: sequences differ in length from step to step

struct Products {
  int64_t all_ns = 0, uncounted_ns = 0;
  bool any_counted = false;  // else nothing is claimed of FLOPs
};

// Kernels whose names say that they multiply, and those of them whose operators have no FLOPs.
Products ProductsOf(const Trace& trace) {
  const Roofline& roofline = MeasureRoofline(trace);
  const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
  std::unordered_map<uint32_t, bool> multiplies;  // by name
  Products products;
  for (const RooflinePoint& point : roofline.points) {
    products.any_counted |= point.flops > 0;
    for (uint32_t i = 0; i < point.works; ++i) {
      const DeviceSpan& span = spans[roofline.work[point.first_work + i].span];
      if (span.table != DeviceSpan::Table::kKernel) continue;
      const auto [known, is_new] = multiplies.try_emplace(span.name, false);
      if (is_new) {
        known->second =
            MathOfKernel(ReadableKernelName(trace.dictionary.String(span.name))).computes();
      }
      if (!known->second) continue;
      products.all_ns += span.end - span.start;
      if (point.flops == 0) products.uncounted_ns += span.end - span.start;
    }
  }
  return products;
}

bool IsRoot(std::string_view module) { return module.find('.') == module.npos; }

// In one step, with the modules in them.
int64_t FlopsOfRoots(const Run& run) {
  int64_t flops = 0;
  for (const ModuleRow& row : SummarizeModules(run.traces)) {
    if (IsRoot(row.name)) flops += row.forward_flops + row.backward_flops + row.recompute_flops;
  }
  return flops;
}

// Of one forward; 0: none is known, or there are several models.
int64_t FlopsOfLayers(const Trace& trace) {
  int64_t flops = 0;
  size_t roots = 0;
  for (const Layer& layer : DescribeLayers(trace)) {
    if (!IsRoot(layer.name)) continue;
    flops += layer.flops;
    ++roots;
  }
  return roots == 1 ? flops : 0;
}

bool SaysHalf(std::string_view kernel) {
  for (const std::string_view part :
       {"bf16bf16", "f16f16", "h16816", "h1688", "h884", "hgemm", "bf16_s", "f16_s"}) {
    if (kernel.find(part) != kernel.npos) return true;
  }
  return false;
}

// The time of products of 32-bit floats, and that of their kernels which are named after 16 bits.
struct FloatTimes {
  int64_t all_ns = 0, half_ns = 0;
};

FloatTimes TimesOfFloats(const Trace& trace) {
  const Roofline& roofline = MeasureRoofline(trace);
  const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
  FloatTimes times;
  for (const RooflinePoint& point : roofline.points) {
    if (point.flops == 0 || point.type != MathType::kFp32) continue;
    for (uint32_t i = 0; i < point.works; ++i) {
      const RooflineWork& work = roofline.work[point.first_work + i];
      const DeviceSpan& span = spans[work.span];
      if (!work.computes || span.table != DeviceSpan::Table::kKernel) continue;
      times.all_ns += span.end - span.start;
      if (SaysHalf(ReadableKernelName(trace.dictionary.String(span.name)))) {
        times.half_ns += span.end - span.start;
      }
    }
  }
  return times;
}

}  // namespace

std::string RooflineCountsOtherwise(const Run& run) {
  for (const Trace& trace : run.traces) {
    double operators = 0, points = 0;
    for (const FlopCount& count : CountFlops(trace, FlopRule::kCounter)) {
      operators += static_cast<double>(count.flops);
    }
    for (const RooflinePoint& point : MeasureRoofline(trace).points) {
      points += static_cast<double>(point.flops);
    }
    if (std::abs(points - operators) <= kSameFlops * operators) continue;
    return fmt::format("the roofline of {} has {:.3g} FLOPs, and its operators {:.3g}",
                       RankName(trace), points, operators);
  }
  return "";
}

std::string ModulesCountOtherwise(const Run& run) {
  const auto modules = static_cast<double>(FlopsOfRoots(run));
  if (modules == 0) return "";
  for (const Trace& trace : run.traces) {
    const std::optional<Throughput> of = MeasureThroughput(run, trace, {});
    if (!of || of->model_flops() == 0) continue;
    const auto operators = static_cast<double>(of->model_flops() + of->recompute_flops);
    // Losses and optimizers compute outside of every module.
    if (modules <= (1 + kSameFlops) * operators) return "";
    return fmt::format("modules have {:.3g} FLOPs a step, and all operators {:.3g}", modules,
                       operators);
  }
  return "";
}

std::string LayersCountOtherwise(const Run& run) {
  for (const Trace& trace : run.traces) {
    const auto forward = static_cast<double>(FlopsOfLayers(trace));
    const std::optional<Throughput> of =
        forward > 0 ? MeasureThroughput(run, trace, {}) : std::nullopt;
    if (!of || of->micro_batches == 0 || of->forward_flops == 0) continue;
    const double layers = forward * static_cast<double>(of->micro_batches);
    const auto operators = static_cast<double>(of->forward_flops);
    if (layers <= kSameForward * operators && operators <= kSameForward * layers) continue;
    return fmt::format("{} forwards of {:.3g} FLOPs by layers are not the {:.3g} of {}'s step",
                       of->micro_batches, forward, operators, RankName(trace));
  }
  return "";
}

std::string KernelsSayAnotherType(const Run& run) {
  for (const Trace& trace : run.traces) {
    const FloatTimes times = TimesOfFloats(trace);
    const double tolerable = kTolerableUncounted * static_cast<double>(times.all_ns);
    if (static_cast<double>(times.half_ns) <= tolerable) continue;
    return fmt::format("kernels of 16 bits run {} of the time of {}'s products of 32-bit floats",
                       FormatShare(times.half_ns, times.all_ns), RankName(trace));
  }
  return "";
}

std::string ProductsAreNotCounted(const Run& run) {
  for (const Trace& trace : run.traces) {
    const Products of = ProductsOf(trace);
    const double tolerable = kTolerableUncounted * static_cast<double>(of.all_ns);
    if (!of.any_counted || static_cast<double>(of.uncounted_ns) <= tolerable) continue;
    return fmt::format("no operator tells the FLOPs of {} of the time of {}'s products",
                       FormatShare(of.uncounted_ns, of.all_ns), RankName(trace));
  }
  return "";
}

std::string RateIsOverThePeak(const Run& run) {
  for (const Trace& trace : run.traces) {
    const std::optional<Throughput> of = MeasureThroughput(run, trace, {});
    const std::optional<double> hfu = of ? of->Hfu() : std::nullopt;
    if (!hfu || *hfu <= 1) continue;
    return fmt::format("{} would do {} of the peak of its device for {}", RankName(trace),
                       FormatPercent(100 * *hfu), of->types);
  }
  return "";
}

}  // namespace ranktap::collector
