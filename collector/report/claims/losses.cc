#include "collector/report/claims/losses.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "collector/facts/causes/stragglers.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/report/claims/claim.h"
#include "collector/report/claims/cross_checks.h"
#include "collector/report/claims/late_rank.h"
#include "collector/report/steps/loss_place.h"
#include "collector/report/steps/recoverable.h"
#include "collector/report/steps/verdict_words.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

// Not lost: what a rank without a device computes.
bool IsHostsWork(Cause cause) {
  return cause == Cause::kOptimizer || cause == Cause::kBackward || cause == Cause::kForward;
}

// What the path bears of waiting: of what the late rank does longer than the others, if that is
// known, and of all that it does if not.
int64_t RecoverableOfWait(const Run& run, const std::vector<CauseTimes>& borne,
                          const Straggler& straggler) {
  int64_t sum = 0;
  for (size_t t = 0; t < borne.size(); ++t) {
    const std::optional<uint32_t> rank = run.traces[t].info.rank;
    if (t != straggler.trace && (!rank || rank != run.traces[straggler.trace].info.rank)) continue;
    sum += straggler.cause ? TimeOf(*straggler.cause, borne[t])
                           : std::accumulate(borne[t].begin(), borne[t].end(), int64_t{0});
  }
  return straggler.cause ? std::min(sum, straggler.excess_ns) : sum;
}

std::vector<Loss> LossesOf(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const MeanStep mean = MeanOfRanks(waterfalls);
  const std::string why_not_known = LaunchesAreMissing(run);
  std::vector<Loss> losses;
  if (mean.ranks == 0) return losses;
  for (size_t c = 1; c < kCauses; ++c) {
    const auto cause = static_cast<Cause>(c);
    if (IsHostsWork(cause)) continue;
    Loss loss{.cause = cause, .finding = ""};
    int64_t most = -1;
    for (uint32_t t = 0; t < waterfalls.size(); ++t) {
      if (waterfalls[t].counted == 0) continue;
      loss.ns += waterfalls[t].mean[c];
      const bool is_first_of_equals = waterfalls[t].mean[c] == most &&
                                      run.traces[t].info.rank < run.traces[loss.trace].info.rank;
      if (waterfalls[t].mean[c] > most || is_first_of_equals) {
        most = waterfalls[t].mean[c];
        loss.trace = t;
      }
    }
    loss.ns /= mean.ranks;
    if (loss.ns == 0) continue;
    if (cause == Cause::kWait && !StragglersOf(run).empty()) {
      loss.finding = DescribeLateRank(run);
      loss.blames = !RulingOn(run, Claim::kLateRank).is_undecided();
      if (loss.blames) loss.trace = StragglersOf(run)[0].trace;
      // As the sentence and the rule have it: what a rank that waits would win.
      const int64_t wait = ExposedWaitFor(run, StragglersOf(run));
      if (loss.blames && wait <= mean.ns) loss.ns = std::max(loss.ns, wait);
    } else if (cause == Cause::kHost && !why_not_known.empty()) {
      loss.finding = fmt::format("an idle device, why is not known: {}", why_not_known);
    } else {
      loss.finding = DescribeLoss(cause);
    }
    losses.push_back(std::move(loss));
  }
  SortRows(&losses, [](const Loss& a, const Loss& b) { return a.ns > b.ns; });
  return losses;
}

}  // namespace

const std::vector<Loss>& FindLosses(const Run& run) {
  struct Losses {
    std::vector<Loss> list;
  };
  return run.memo.Get<Losses>([&run] { return Losses{LossesOf(run)}; }).list;
}

void AddRecoverable(const Run& run, std::vector<Loss>* losses) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const std::vector<CauseTimes> borne = BorneByCriticalPath(run, waterfalls);
  for (Loss& loss : *losses) {
    if (loss.cause == Cause::kWait) {
      if (loss.blames) {
        loss.recoverable_ns =
            std::min(loss.ns, RecoverableOfWait(run, borne, StragglersOf(run)[0]));
      }
      continue;
    }
    // The path changes ranks within a step: no rank can win back more than it loses.
    int64_t most = 0;
    for (size_t t = 0; t < borne.size(); ++t) {
      loss.recoverable_ns += borne[t][static_cast<size_t>(loss.cause)];
      most = std::max(most, waterfalls[t].mean[static_cast<size_t>(loss.cause)]);
    }
    // Where one rank alone loses it, the others' part is in what they wait for that rank.
    loss.recoverable_ns = std::min({loss.recoverable_ns, most, loss.ns});
  }
  const Ruling& ruling = RulingOn(run, Claim::kRecoverable);
  if (!ruling.is_undecided() || losses->empty()) return;
  for (Loss& loss : *losses) {
    loss.recoverable_known = ruling.against == kOfLargestAlone && &loss != &losses->front();
  }
}

void AddPlaces(const Run& run, const MeanStep& mean, std::vector<Loss>* losses) {
  const LossPlaces& places = FindLossPlaces(run);
  for (Loss& loss : *losses) {
    if (loss.blames || !mean.IsWorthSaying(loss.ns)) continue;
    const LossPlace& place = places[static_cast<size_t>(loss.cause)];
    loss.finding += place.waits_for + place.where;
  }
}

}  // namespace ranktap::collector
