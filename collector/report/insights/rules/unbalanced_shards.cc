// Ranks that have more to compute than others, and not merely a slower device.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/numbers/describe.h"
#include "collector/report/cells.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastExcess = 0.02;  // of the step, computed more than the mean of ranks
// A device that is slow is so in most of its kernels: so much of the excess at least.
constexpr double kSlowDevice = 0.5;

struct KernelSum {
  int64_t ns = 0, count = 0;
};
using KernelSums = std::map<std::string, KernelSum>;

KernelSums SumKernels(const RankFacts& rank) {
  std::map<uint32_t, KernelSum> by_id;
  for (const DeviceSpan& span : rank.spans()) {
    const bool is_kernel = span.table == DeviceSpan::Table::kKernel;
    if (!is_kernel || span.kind != WorkKind::kCompute || !rank.IsCounted(span.start)) continue;
    KernelSum& sum = by_id[span.name];
    sum.ns += span.end - span.start;
    ++sum.count;
  }
  KernelSums sums;
  for (const auto& [id, sum] : by_id) {
    KernelSum& all = sums[ReadableKernelName(rank.trace().dictionary.String(id))];
    all.ns += rank.PerStep(sum.ns);
    all.count += sum.count;
  }
  return sums;
}

struct Load {
  uint32_t trace = 0;
  int64_t compute = 0;
};

std::vector<Load> Loads(const Run& run) {
  std::vector<Load> loads;
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  for (uint32_t t = 0; t < waterfalls.size(); ++t) {
    const RankWaterfall& waterfall = waterfalls[t];
    if (waterfall.counted == 0 || waterfall.on_host || waterfall.steps.source.empty()) continue;
    loads.push_back({t, waterfall.mean[static_cast<size_t>(Cause::kCompute)]});
  }
  return loads;
}

// How much longer the rank's kernels take than the same of another, in the median of their names.
double MedianRatio(const KernelSums& most, const KernelSums& least) {
  std::vector<double> ratios;
  for (const auto& [name, sum] : most) {
    const auto same = least.find(name);
    if (same == least.end() || same->second.ns == 0 || sum.count != same->second.count) continue;
    ratios.push_back(static_cast<double>(sum.ns) / static_cast<double>(same->second.ns));
  }
  return Median(ratios);
}

std::string LargestDifference(const KernelSums& most, const KernelSums& least) {
  std::string largest;
  int64_t excess = 0, more = 0, less = 0;
  for (const auto& [name, sum] : most) {
    const auto same = least.find(name);
    const int64_t other = same == least.end() ? 0 : same->second.ns;
    if (sum.ns - other <= excess) continue;
    excess = sum.ns - other;
    largest = TellingKernelName(name);
    more = sum.ns;
    less = other;
  }
  if (largest.empty()) return "";
  return fmt::format("; the largest difference is in {} ({} and {})", largest, FormatNs(more),
                     FormatNs(less));
}

}  // namespace

Answer FindUnbalancedShards(const Run& run) {
  const std::vector<Load> loads = Loads(run);
  if (loads.size() < 2)
    return CannotTell("fewer than two ranks with steps on a device are recorded");
  int64_t sum = 0;
  for (const Load& load : loads) sum += load.compute;
  const int64_t mean = sum / static_cast<int64_t>(loads.size());
  const Load most = *std::ranges::max_element(loads, {}, &Load::compute);
  const Load least = *std::ranges::min_element(loads, {}, &Load::compute);
  const RankFacts rank(run, most.trace);
  if (least.compute == 0 || !rank.IsWorth(most.compute - mean, kLeastExcess)) return {};
  const KernelSums more = SumKernels(rank), less = SumKernels(RankFacts(run, least.trace));
  const double ratio = static_cast<double>(most.compute) / static_cast<double>(least.compute);
  if (MedianRatio(more, less) - 1 >= kSlowDevice * (ratio - 1)) return {};
  Insight insight{.trace = most.trace,
                  .finding = fmt::format(
                      "{} computes {} {} and {} only {}: {} more than the mean of {} "
                      "ranks{}.",
                      RankName(run.traces[most.trace]), FormatNs(most.compute), rank.OfStep(),
                      RankName(run.traces[least.trace]), FormatNs(least.compute),
                      FormatNs(most.compute - mean), loads.size(), LargestDifference(more, less)),
                  .count = 1,
                  .lost_ns = most.compute - mean,
                  .saving = Saving{.moments = rank.counted(),
                                   .causes = BitOf(Cause::kCompute),
                                   .most_ns = most.compute - mean}};
  return {.insights = {std::move(insight)}};
}

}  // namespace ranktap::collector
