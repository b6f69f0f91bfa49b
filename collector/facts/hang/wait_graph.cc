#include "collector/facts/hang/wait_graph.h"

#include <algorithm>
#include <tuple>

namespace ranktap::collector {

WaitGraph::WaitGraph(const JobCalls& job, const CallTable& table) {
  AddCollectives(job, table);
  AddMessages(job);
  for (size_t i = 0; i < waits_.size(); ++i) {
    of_.emplace(waits_[i].rank, i);
    for (const uint32_t rank : waits_[i].awaited) for_.emplace(rank, i);
  }
}

void WaitGraph::AddCollectives(const JobCalls& job, const CallTable& table) {
  for (const auto& [key, participants] : table.collectives()) {
    const auto is_open = [](const auto& of) { return of.second->is_open; };
    if (std::ranges::none_of(participants, is_open)) continue;
    std::vector<uint32_t> awaited;
    for (const uint32_t rank : job.groups[key.group].ranks) {
      if (!table.HasEntered(rank, key)) awaited.push_back(rank);
    }
    for (const auto& [rank, call] : participants) {
      if (call->is_open) waits_.push_back({call, rank, awaited});
    }
  }
}

// What has ended has met its other half: the k-th open send meets the k-th open recv.
void WaitGraph::AddMessages(const JobCalls& job) {
  using Way = std::tuple<uint32_t, uint32_t, uint32_t>;  // group, from, to
  std::map<Way, std::vector<OpenWait>> sends, recvs;
  for (const auto& [rank, calls] : job.ranks) {
    for (const JobCall& call : calls) {
      if (!call.is_open || call.is_collective()) continue;
      const uint32_t peer = call.peer.value_or(rank);  // its own: nobody knows whom it waits for
      auto& list = call.is_send ? sends[{call.group, rank, peer}] : recvs[{call.group, peer, rank}];
      list.push_back({&call, rank, {}});
      if (peer != rank) list.back().awaited.push_back(peer);
    }
  }
  const auto add = [this](std::map<Way, std::vector<OpenWait>>* all,
                          const std::map<Way, std::vector<OpenWait>>& others) {
    for (auto& [way, list] : *all) {
      const auto other = others.find(way);
      const size_t met = other == others.end() ? 0 : other->second.size();
      for (size_t i = 0; i < list.size(); ++i) {
        if (i < met) list[i].awaited.clear();
        waits_.push_back(std::move(list[i]));
      }
    }
  };
  const std::map<Way, std::vector<OpenWait>> sent = sends;
  add(&sends, recvs);
  add(&recvs, sent);
}

std::vector<const OpenWait*> WaitGraph::Of(uint32_t rank) const {
  std::vector<const OpenWait*> found;
  const auto [from, to] = of_.equal_range(rank);
  for (auto at = from; at != to; ++at) found.push_back(&waits_[at->second]);
  return found;
}

std::vector<const OpenWait*> WaitGraph::For(uint32_t rank) const {
  std::vector<const OpenWait*> found;
  const auto [from, to] = for_.equal_range(rank);
  for (auto at = from; at != to; ++at) found.push_back(&waits_[at->second]);
  return found;
}

bool WaitGraph::Waits(uint32_t rank) const {
  const auto [from, to] = of_.equal_range(rank);
  return std::any_of(from, to,
                     [this](const auto& at) { return !waits_[at.second].awaited.empty(); });
}

std::vector<uint32_t> WaitGraph::Ends() const {
  std::vector<uint32_t> ends;
  for (auto at = for_.begin(); at != for_.end(); at = for_.upper_bound(at->first)) {
    if (!Waits(at->first)) ends.push_back(at->first);
  }
  return ends;
}

std::set<uint32_t> WaitGraph::WaitFor(const std::vector<uint32_t>& ranks) const {
  std::set<uint32_t> found;
  std::vector<uint32_t> next = ranks;
  while (!next.empty()) {
    const uint32_t rank = next.back();
    next.pop_back();
    for (const OpenWait* const wait : For(rank)) {
      if (found.insert(wait->rank).second) next.push_back(wait->rank);
    }
  }
  return found;
}

std::vector<uint32_t> WaitGraph::Circle(const std::set<uint32_t>& explained) const {
  for (const OpenWait& start : waits_) {
    if (start.awaited.empty() || explained.contains(start.rank)) continue;
    std::vector<uint32_t> path;
    for (uint32_t rank = start.rank;;) {
      const auto again = std::ranges::find(path, rank);
      if (again != path.end()) return {again, path.end()};
      path.push_back(rank);
      const std::vector<const OpenWait*> waits = Of(rank);
      const auto wait =
          std::ranges::find_if(waits, [](const OpenWait* of) { return !of->awaited.empty(); });
      if (wait == waits.end()) break;
      rank = (*wait)->awaited.front();
    }
  }
  return {};
}

const OpenWait* WaitGraph::Between(uint32_t rank, uint32_t awaited) const {
  for (const OpenWait* const wait : Of(rank)) {
    if (std::ranges::binary_search(wait->awaited, awaited)) return wait;
  }
  return nullptr;
}

}  // namespace ranktap::collector
