// The device, or a host without one, waits for the data loader.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/host_activity.h"
#include "collector/report/claims/late_loader.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

// A loader that keeps up takes what its queue takes: 0.1 to 1 ms of steps of 100 ms.
constexpr double kLeastShareOfDataLoading = 0.03;  // of the step
constexpr size_t kMostNumbers = 5;

// PyTorch names the iterator of a loader without workers so.
constexpr std::string_view kOwnProcess = "_SingleProcessDataLoaderIter";

bool LoadsInItsOwnProcess(const Trace& trace) {
  const Operators& ops = trace.operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string_view name = trace.dictionary.String(ops.name[i]);
    if (name.find(kOwnProcess) != name.npos) return true;
  }
  return false;
}

struct Wait {
  int64_t step = 0, ns = 0;
};

// "3 of 60 steps (15, 35, 55) wait 200.0 ms each for the data loader, the others 1.000 ms". Empty:
// it is not a few that wait.
std::string DescribeFewWaits(const RankWaterfall& waterfall) {
  std::vector<Wait> waits;
  int64_t all = 0;
  for (size_t i = 0; i < waterfall.steps.list.size(); ++i) {
    if (waterfall.steps.list[i].warm_up) continue;
    const int64_t ns = waterfall.times[i][static_cast<size_t>(Cause::kDataLoading)];
    waits.push_back({waterfall.steps.list[i].number, ns});
    all += ns;
  }
  const size_t few = waits.size() / 10;
  std::ranges::stable_sort(waits, std::greater(), &Wait::ns);
  int64_t sum = 0;
  size_t count = 0;
  while (count < few && sum * 2 < all) sum += waits[count++].ns;
  if (count == 0 || sum * 2 < all) return "";
  while (count < few && waits[count].ns * 2 > waits[0].ns) sum += waits[count++].ns;
  const int64_t others = (all - sum) / static_cast<int64_t>(waits.size() - count);
  std::ranges::sort(waits.begin(), waits.begin() + static_cast<ptrdiff_t>(count), {}, &Wait::step);
  std::string numbers;
  for (size_t i = 0; i < std::min(count, kMostNumbers); ++i) {
    numbers += fmt::format("{}{}", i == 0 ? "" : ", ", waits[i].step);
  }
  return fmt::format("{} of {} {}s ({}{}) wait {} each for the data loader, the others {}", count,
                     waits.size(), waterfall.steps.noun(), numbers,
                     count > kMostNumbers ? ", ..." : "",
                     FormatNs(sum / static_cast<int64_t>(count)), FormatNs(others));
}

constexpr std::string_view kAdviceForFew =
    "See what these batches have in common: a slow file or server, or the begin of an epoch, where "
    "persistent_workers=True keeps the workers. More workers do not shorten one read.";

}  // namespace

Answer FindDataLoading(const RankFacts& rank) {
  if (rank.waterfall().counted == 0) return CannotTell("no steps are recorded");
  const Trace& trace = rank.trace();
  if (trace.ranges.size() + trace.operators.size() + trace.python_calls.size() == 0) {
    return CannotTell("no ranges and no operators are recorded");
  }
  const int64_t lost = rank.waterfall().mean[static_cast<size_t>(Cause::kDataLoading)];
  if (!rank.IsWorth(lost, kLeastShareOfDataLoading)) return {};
  const std::vector<Interval> loading = Intersection(DataLoading(trace), rank.counted());
  Insight insight{
      .finding = fmt::format("{} waits for the data loader for {} {} ({}), {}.",
                             rank.has_device() ? "An idle device" : "The host", FormatNs(lost),
                             rank.OfStep(), FormatShare(lost, rank.step_ns()),
                             rank.TimesAStep(static_cast<int64_t>(loading.size()))),
      .count = static_cast<int64_t>(loading.size()),
      .lost_ns = lost};
  if (std::string few = DescribeFewWaits(rank.waterfall()); !few.empty()) {
    insight.finding = few + fmt::format(": {} of all time.", FormatShare(lost, rank.step_ns()));
    insight.advice = kAdviceForFew;
  } else if (LoadsInItsOwnProcess(trace)) {
    insight.finding += " It loads in the training process itself (num_workers=0).";
  }
  if (const std::string why = DescribeLateLoader(trace, rank.waterfall()); !why.empty()) {
    insight.finding += " " + why;
  }
  if (rank.has_device()) {
    insight.saving = Saving{.moments = rank.counted(), .causes = BitOf(Cause::kDataLoading)};
  }
  return {.insights = {std::move(insight)}};
}

}  // namespace ranktap::collector
