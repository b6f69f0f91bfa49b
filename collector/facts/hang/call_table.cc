#include "collector/facts/hang/call_table.h"

#include <fmt/core.h>

#include <algorithm>

namespace ranktap::collector {

CallTable::CallTable(const JobCalls& job) : job_(job) {
  for (const auto& [rank, calls] : job.ranks) {
    std::map<uint32_t, CallKey> latest;  // by group
    for (const JobCall& call : calls) {
      if (!call.is_collective()) continue;
      CallKey key{call.group, call.number, 0};
      if (const auto before = latest.find(call.group);
          before != latest.end() && before->second.number == call.number) {
        key.place = before->second.place + 1;
      }
      latest[call.group] = key;
      collectives_[key].emplace_back(rank, &call);
    }
    for (const auto& [group, key] : latest) last_[{rank, group}] = key;
  }
}

bool CallTable::HasEntered(uint32_t rank, const CallKey& key) const {
  const auto last = last_.find({rank, key.group});
  return last != last_.end() && last->second >= key;
}

std::vector<const JobCall*> CallTable::CallsOf(uint32_t rank, uint32_t group) const {
  std::vector<const JobCall*> found;
  const auto calls = job_.ranks.find(rank);
  if (calls == job_.ranks.end()) return found;
  for (const JobCall& call : calls->second) {
    if (call.is_collective() && call.group == group) found.push_back(&call);
  }
  return found;
}

std::string SignatureOf(const JobCall& call) {
  const auto has = [&call](std::string_view part) {
    return call.function.find(part) != call.function.npos;
  };
  const bool is_uneven = has("all_to_all") || has("alltoall") || call.function.ends_with("_v");
  const bool is_gather = call.function == "gather", is_scatter = call.function == "scatter";
  const auto in = [&](std::string_view text) { return is_scatter ? std::string_view() : text; };
  const auto out = [&](std::string_view text) { return is_gather ? std::string_view() : text; };
  return fmt::format("{}|{}|{}|{}|{}|{}", call.function, is_uneven ? "" : in(call.in_sizes),
                     is_uneven ? "" : out(call.out_sizes), in(call.in_types), out(call.out_types),
                     call.bytes);
}

}  // namespace ranktap::collector
