#include "collector/report/steps/message_waits.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "collector/facts/causes/host_places.h"
#include "collector/facts/causes/stragglers.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/host_activity.h"
#include "collector/report/cells.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/verdict_words.h"

namespace ranktap::collector {
namespace {

constexpr auto kWait = static_cast<size_t>(Cause::kWait);
constexpr int64_t kLeastShare = 20;  // a step is so many times the wait, at most

// ", which spends 25.10 ms of it in the forward pass": what takes most of the peer's step.
std::string WhatPeerDoes(const Run& run, uint32_t peer) {
  const RankWaterfall& waterfall = ComputeWaterfalls(run)[peer];
  if (waterfall.counted == 0 || !waterfall.on_host) return "";
  std::string what;
  int64_t most = waterfall.mean_step / kLeastShare;
  const auto offer = [&](int64_t ns, std::string_view words) {
    if (ns <= most || words.empty()) return;
    most = ns;
    what = words;
  };
  for (size_t c = 0; c < kCauses; ++c) {
    const auto cause = static_cast<Cause>(c);
    if (cause != Cause::kHost && cause != Cause::kWait) {
      offer(waterfall.mean[c], DescribeHostsTime(cause));
    }
  }
  for (const HostPlace& place : PlacesOfHost(run, peer, waterfall)) offer(place.ns, place.where);
  return what.empty() ? "" : fmt::format(", which spends {} of it {}", FormatNs(most), what);
}

}  // namespace

std::string DescribeMessageWaits(const Run& run) {
  if (run.traces.size() < 2 || !StragglersOf(run).empty()) return "";
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const auto most = std::ranges::max_element(waterfalls, {},
                                             [](const RankWaterfall& w) { return w.mean[kWait]; });
  const int64_t wait = most->mean[kWait];
  if (most->counted == 0 || wait == 0 || wait * kLeastShare < most->mean_step) return "";
  const auto t = static_cast<uint32_t>(most - waterfalls.begin());
  if (ReceivedMessages(run.traces[t]).empty()) return "";
  const bool is_pair = run.traces.size() == 2;
  const uint32_t peer = 1 - std::min<uint32_t>(t, 1);
  std::string who = RankName(run.traces[t]);
  who[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(who[0])));
  return fmt::format(" {} waits {} of each {} step ({}) to receive from {}{}.", who, FormatNs(wait),
                     FormatNs(most->mean_step), FormatShare(wait, most->mean_step),
                     is_pair ? RankName(run.traces[peer]) : "another rank",
                     is_pair ? WhatPeerDoes(run, peer) : "");
}

}  // namespace ranktap::collector
