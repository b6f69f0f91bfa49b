#include "collector/report/steps/host_losses.h"

#include <fmt/core.h>

#include <map>
#include <string_view>
#include <utility>

#include "collector/facts/causes/host_places.h"
#include "collector/report/steps/verdict_words.h"

namespace ranktap::collector {

std::vector<Loss> LossesByPlace(const Run& run, int64_t ranks) {
  const std::vector<std::vector<HostPlace>> places = PlacesOfHosts(run);
  struct Place {
    int64_t ns = 0;
    uint32_t trace = 0;
    const HostPlace* most = nullptr;
  };
  std::map<std::string_view, Place> by_place;
  for (uint32_t t = 0; t < places.size(); ++t) {
    for (const HostPlace& place : places[t]) {
      Place& sum = by_place[place.where];
      sum.ns += place.ns;
      if (sum.most == nullptr || place.ns > sum.most->ns) {
        sum.most = &place;
        sum.trace = t;
      }
    }
  }
  std::vector<Loss> losses;
  for (const auto& [where, place] : by_place) {
    Loss loss{.cause = Cause::kHost, .ns = place.ns / ranks, .trace = place.trace};
    loss.finding = where.empty() ? DescribeHostsTime(Cause::kHost) : where;
    if (!place.most->inside.empty()) loss.finding += fmt::format(" (in {})", place.most->inside);
    if (!place.most->line.empty()) loss.finding += ", at " + place.most->line;
    losses.push_back(std::move(loss));
  }
  return losses;
}

}  // namespace ranktap::collector
