#include "collector/facts/kernel_period.h"

#include <algorithm>
#include <utility>

namespace ranktap::collector {
namespace {

constexpr double kSamePeriod = 0.95;
constexpr size_t kLagsTried = 64;
constexpr size_t kLeastTimes = 3;

// Distances between uses of names that are used a few times: the step's length is among them.
// `names` count from 0 with few holes.
std::vector<size_t> CandidateLags(const std::vector<uint32_t>& names) {
  constexpr uint32_t kNever = UINT32_MAX;
  struct Uses {
    uint32_t last = kNever, before_last = kNever;
    uint32_t count = 0;
  };
  std::vector<Uses> uses;
  for (const uint32_t name : names) {
    if (name >= uses.size()) uses.resize(name + 1);
    ++uses[name].count;
  }
  std::vector<uint32_t> votes(names.size(), 0);  // by lag
  for (uint32_t i = 0; i < names.size(); ++i) {
    Uses& of = uses[names[i]];
    if (of.count < kLeastTimes) continue;
    if (of.last != kNever) ++votes[i - of.last];
    if (of.before_last != kNever) ++votes[i - of.before_last];
    of.before_last = of.last;
    of.last = i;
  }
  std::vector<std::pair<size_t, size_t>> ranked;
  for (size_t lag = 1; lag < votes.size(); ++lag) {
    if (votes[lag] != 0) ranked.emplace_back(votes[lag] * lag, lag);
  }
  std::sort(ranked.rbegin(), ranked.rend());
  if (ranked.size() > kLagsTried) ranked.resize(kLagsTried);
  std::vector<size_t> lags;
  for (const auto& [weight, lag] : ranked) lags.push_back(lag);
  std::sort(lags.begin(), lags.end());
  return lags;
}

}  // namespace

KernelPeriod FindKernelPeriod(const Trace& trace) {
  const Kernels& kernels = trace.kernels;
  std::vector<uint32_t> names, rows;
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    if (kernels.start[i] == kUntimed) continue;
    names.push_back(std::min<uint32_t>(kernels.name[i], trace.dictionary.strings()));
    rows.push_back(i);
  }
  for (const size_t lag : CandidateLags(names)) {
    if (lag < 2 || lag * kLeastTimes > names.size()) continue;
    const auto allowed =
        static_cast<size_t>((1 - kSamePeriod) * static_cast<double>(names.size() - lag));
    size_t other = 0;
    for (size_t i = 0; i + lag < names.size() && other <= allowed; ++i) {
      other += names[i] != names[i + lag];
    }
    if (other > allowed) continue;
    KernelPeriod period{.first_kernels = {}, .kernels = lag};
    for (size_t i = 0; i < names.size(); i += lag) period.first_kernels.push_back(rows[i]);
    return period;
  }
  return {};
}

}  // namespace ranktap::collector
