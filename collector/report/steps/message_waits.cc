#include "collector/report/steps/message_waits.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "collector/facts/causes/host_places.h"
#include "collector/facts/causes/stragglers.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/message_peers.h"
#include "collector/facts/numbers/interval_set.h"
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

// Index of its trace; nullopt: not known.
std::optional<uint32_t> PeerOf(const Run& run, uint32_t t, std::string_view kind) {
  if (run.traces.size() == 2) return 1 - t;
  const std::optional<uint32_t> rank = PeerOfMessages(run.traces[t], kind);
  for (uint32_t other = 0; rank && other < run.traces.size(); ++other) {
    if (other != t && run.traces[other].info.rank == *rank) return other;
  }
  return std::nullopt;
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
  const Trace& trace = run.traces[t];
  const int64_t received = Length(Messages(trace, kReceive)), sent = Length(Messages(trace, kSend));
  if (received + sent == 0) return "";
  const bool receives = received >= sent;
  const std::optional<uint32_t> peer = PeerOf(run, t, receives ? kReceive : kSend);
  std::string who = RankName(trace);
  who[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(who[0])));
  return fmt::format(
      " {} waits {} of each {} step ({}) {} {}{}.", who, FormatNs(wait), FormatNs(most->mean_step),
      FormatShare(wait, most->mean_step), receives ? "to receive from" : "to send to",
      peer ? RankName(run.traces[*peer]) : "another rank", peer ? WhatPeerDoes(run, *peer) : "");
}

}  // namespace ranktap::collector
