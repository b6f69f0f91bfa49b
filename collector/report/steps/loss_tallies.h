// Adds up where a loss arises. A part of loss_place.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "collector/facts/samples/host_samples.h"

namespace ranktap::collector {

// Time by name.
struct Tally {
  Tally() = default;
  Tally(Tally&&) = default;  // not copied: `last` stays behind
  int64_t total = 0;
  std::map<std::string, int64_t, std::less<>> by_name;
  std::pair<const std::string, int64_t>* last = nullptr;  // asked for: mostly the next, too

  void Add(std::string_view name, int64_t ns) {
    total += ns;
    if (name.empty()) return;
    if (last == nullptr || last->first != name) {
      auto found = by_name.find(name);
      if (found == by_name.end()) found = by_name.emplace(name, 0).first;
      last = &*found;
    }
    last->second += ns;
  }
  void Add(const Tally& other) {
    total += other.total;
    for (const auto& [name, ns] : other.by_name) by_name[name] += ns;
  }
  // The first by name where several are equal, so that each reading says the same.
  const std::pair<const std::string, int64_t>* Largest() const {
    const auto at =
        std::max_element(by_name.begin(), by_name.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return at == by_name.end() ? nullptr : &*at;
  }
  bool HasMost(int64_t ns) const { return ns * 2 > total; }
};

// All that is added up of one cause.
struct Tallies {
  Tally phases, modules, lines, waits;
  std::map<std::string, Tally> operators;  // that launched what waits, by the name in `waits`
  LineTally in_syncs;                      // where the host waited until the device ran dry

  void AddUnnamed(int64_t ns) { phases.total += ns, modules.total += ns, lines.total += ns; }
  void Add(const Tallies& other) {
    phases.Add(other.phases), modules.Add(other.modules);
    lines.Add(other.lines), waits.Add(other.waits);
    for (const auto& [name, tally] : other.operators) operators[name].Add(tally);
    in_syncs.Add(other.in_syncs);
  }
};

}  // namespace ranktap::collector
