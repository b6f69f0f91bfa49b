// Whether the operators' arithmetic, and the peak that it is compared with, are those of the
// kernels that ran.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "collector/facts/device_timeline.h"
#include "collector/facts/roofline/roofline.h"
#include "collector/report/cells.h"
#include "collector/report/claims/cross_checks.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/throughput.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr double kTolerableUncounted = 0.25;  // of the time of kernels that multiply

struct Products {
  int64_t all_ns = 0, uncounted_ns = 0;
  bool any_counted = false;  // else nothing is claimed of FLOPs
};

// Kernels whose names say that they multiply, and those of them whose operators have no FLOPs.
Products ProductsOf(const Trace& trace) {
  const Roofline& roofline = MeasureCounted(trace);
  const DeviceSpans& spans = DeviceTimeline(trace);
  std::unordered_map<uint32_t, bool> multiplies;  // by name
  Products products;
  products.any_counted = std::ranges::any_of(
      roofline.points, [](const RooflinePoint& point) { return point.flops > 0; });
  if (!products.any_counted) return products;
  for (const RooflinePoint& point : roofline.points) {
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
  const Roofline& roofline = MeasureCounted(trace);
  const DeviceSpans& spans = DeviceTimeline(trace);
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
