#include "collector/facts/hang/find_hang.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "collector/facts/hang/unlike_calls.h"
#include "collector/facts/hang/wait_graph.h"

namespace ranktap::collector {
namespace {

using Ranks = std::set<uint32_t>;

// One call, whoever stands in it: messages by their two ends.
using Place = std::tuple<uint32_t, uint64_t, bool, uint32_t, uint32_t>;
Place PlaceOf(const OpenWait& wait) {
  const JobCall& call = *wait.call;
  if (call.is_collective()) return {call.group, call.number, false, 0, 0};
  return {call.group, 0, true, wait.rank, call.peer.value_or(wait.rank)};
}

std::vector<uint32_t> ListOf(const Ranks& ranks) { return {ranks.begin(), ranks.end()}; }

class Finder {
 public:
  explicit Finder(const JobCalls& job) : job_(job), table_(job), graph_(job, table_) {}

  std::vector<HangFinding> Find() {
    std::vector<HangFinding> ended;
    for (auto& [key, finding] : FindUnlikeCalls(table_)) {
      if (finding.has_ended) {
        ended.push_back(finding);
      } else {
        AddUnlike(key, finding);
      }
    }
    std::ranges::stable_partition(
        ended, [](const HangFinding& of) { return of.cause == HangCause::kOtherCall; });
    AddEnds();
    AddCircles();
    if (findings_.empty()) AddWithoutReason();
    // A call of another function shifts all that follow; another size that ended does not.
    for (HangFinding& finding : ended) {
      const bool is_first = finding.cause == HangCause::kOtherCall;
      findings_.insert(is_first ? findings_.begin() : findings_.end(), std::move(finding));
    }
    return std::move(findings_);
  }

 private:
  void Explain(const Ranks& ranks) {
    explained_.insert(ranks.begin(), ranks.end());
    explained_.merge(graph_.WaitFor(ListOf(ranks)));
  }

  void AddUnlike(const CallKey& key, HangFinding finding) {
    Ranks stand;
    for (const OpenWait& wait : graph_.waits()) {
      const JobCall& call = *wait.call;
      const bool is_here = call.is_collective() && call.group == key.group;
      if (is_here && call.number >= key.number) stand.insert(wait.rank);
      const bool is_named =
          finding.is_guilty && std::ranges::binary_search(finding.ranks, wait.rank);
      if (is_here && call.number == key.number && !is_named) finding.waiting.push_back(wait.rank);
    }
    stand.insert(finding.ranks.begin(), finding.ranks.end());
    AddInTurn(ListOf(stand), &finding);
    Explain(stand);
    findings_.push_back(std::move(finding));
  }

  // Those that wait for these ranks in other calls than the finding's, by call.
  void AddInTurn(const std::vector<uint32_t>& ranks, HangFinding* finding) {
    Ranks told(finding->waiting.begin(), finding->waiting.end());
    told.insert(finding->ranks.begin(), finding->ranks.end());
    std::map<Place, WaitingRanks> calls;
    for (const uint32_t rank : graph_.WaitFor(ranks)) {
      if (told.contains(rank)) continue;
      for (const OpenWait* const wait : graph_.Of(rank)) {
        if (wait->awaited.empty()) continue;
        WaitingRanks& here = calls[PlaceOf(*wait)];
        here.call = *wait->call;
        here.awaited = wait->awaited;
        here.ranks.push_back(rank);
        break;
      }
    }
    for (auto& [place, here] : calls) finding->in_turn.push_back(std::move(here));
  }

  // The call in which most ranks wait for this one.
  std::pair<Place, const OpenWait*> MostWaitedIn(uint32_t rank) const {
    std::map<Place, size_t> waiting;
    std::pair<Place, const OpenWait*> most;
    for (const OpenWait* const wait : graph_.For(rank)) ++waiting[PlaceOf(*wait)];
    size_t count = 0;
    for (const OpenWait* const wait : graph_.For(rank)) {
      const Place place = PlaceOf(*wait);
      if (waiting[place] <= count) continue;
      count = waiting[place];
      most = {place, wait};
    }
    return most;
  }

  void AddEnds() {
    std::map<Place, HangFinding> known, without_file;
    Ranks ends;
    for (const uint32_t rank : graph_.Ends()) {
      if (explained_.contains(rank)) continue;
      ends.insert(rank);
      const auto [place, wait] = MostWaitedIn(rank);
      HangFinding& finding = (job_.Knows(rank) ? known : without_file)[place];
      finding.cause = job_.Knows(rank) ? HangCause::kNotEntered : HangCause::kNoFile;
      finding.is_guilty = job_.Knows(rank);
      finding.ranks.push_back(rank);
      finding.call = *wait->call;
    }
    std::vector<HangFinding> found;
    for (auto& [place, finding] : known) found.push_back(Completed(place, std::move(finding)));
    for (auto& [place, finding] : without_file) {
      if (!known.contains(place)) found.push_back(Completed(place, std::move(finding)));
    }
    std::ranges::stable_sort(found, [](const HangFinding& a, const HangFinding& b) {
      return std::tuple(a.cause, b.waiting.size() + b.in_turn.size()) <
             std::tuple(b.cause, a.waiting.size() + a.in_turn.size());
    });
    for (HangFinding& finding : found) findings_.push_back(std::move(finding));
    Explain(ends);
  }

  HangFinding Completed(const Place& place, HangFinding finding) {
    for (const OpenWait& wait : graph_.waits()) {
      if (PlaceOf(wait) == place) finding.waiting.push_back(wait.rank);
    }
    AddInTurn(finding.ranks, &finding);
    const auto calls = job_.ranks.find(finding.ranks.front());
    if (calls == job_.ranks.end()) return finding;
    const std::vector<const OpenWait*> open = graph_.Of(calls->first);
    if (!open.empty()) {
      finding.other_call = *open.front()->call;
    } else if (!calls->second.empty()) {
      finding.last_call = calls->second.back();
    }
    return finding;
  }

  void AddCircles() {
    for (std::vector<uint32_t> circle = graph_.Circle(explained_); !circle.empty();
         circle = graph_.Circle(explained_)) {
      findings_.push_back(FindingOf(circle));
      Explain({circle.begin(), circle.end()});
    }
  }

  HangFinding FindingOf(std::vector<uint32_t> circle) {
    std::vector<const OpenWait*> edges;
    for (size_t i = 0; i < circle.size(); ++i) {
      edges.push_back(graph_.Between(circle[i], circle[(i + 1) % circle.size()]));
    }
    const auto message =
        std::ranges::find_if(edges, [](const OpenWait* of) { return !of->call->is_collective(); });
    if (message != edges.end()) {
      const auto next = message + 1 == edges.end() ? edges.begin() : message + 1;
      HangFinding finding{.cause = HangCause::kPeerElsewhere,
                          .ranks = {(*message)->rank, (*next)->rank},
                          .is_guilty = false,
                          .call = *(*message)->call,
                          .other_call = *(*next)->call,
                          .waiting = {(*message)->rank}};
      AddInTurn(finding.ranks, &finding);
      return finding;
    }
    return OtherOrder(circle, edges);
  }

  HangFinding OtherOrder(std::vector<uint32_t> circle, const std::vector<const OpenWait*>& edges) {
    std::map<Place, std::vector<uint32_t>> calls;
    for (const OpenWait* const edge : edges) calls[PlaceOf(*edge)];
    for (const OpenWait& wait : graph_.waits()) {
      if (const auto at = calls.find(PlaceOf(wait)); at != calls.end()) {
        at->second.push_back(wait.rank);
      }
    }
    const auto by_size = [](const auto& of) { return of.second.size(); };
    const auto [fewest, most] = std::ranges::minmax_element(calls, {}, by_size);
    HangFinding finding{
        .cause = HangCause::kOtherOrder,
        .ranks = fewest->second,
        .is_guilty = calls.size() == 2 && fewest->second.size() < most->second.size()};
    const auto call_at = [&edges](const Place& place) {
      return *(*std::ranges::find_if(edges, [&place](const OpenWait* of) {
                return PlaceOf(*of) == place;
              }))->call;
    };
    if (!finding.is_guilty) {
      std::ranges::sort(circle);
      finding.ranks = std::move(circle);
    }
    // Equal numbers: the two extremes may be one.
    const auto other = fewest == most ? std::prev(calls.end()) : fewest;
    const auto usual = other == most && calls.size() > 1 ? calls.begin() : most;
    finding.call = call_at(usual->first);
    finding.waiting = usual->second;
    finding.other_call = call_at(other->first);
    AddInTurn(finding.ranks, &finding);
    return finding;
  }

  // Open calls that wait for nobody who is known.
  void AddWithoutReason() {
    std::map<Place, HangFinding> found;
    for (const OpenWait& wait : graph_.waits()) {
      if (!wait.awaited.empty() || explained_.contains(wait.rank)) continue;
      const bool is_known = job_.groups[wait.call->group].has_all_ranks;
      HangFinding& finding = found[PlaceOf(wait)];
      finding.cause = is_known ? HangCause::kAllEntered : HangCause::kUnknownRanks;
      finding.is_guilty = false;
      finding.call = *wait.call;
      finding.ranks.push_back(wait.rank);
      finding.waiting.push_back(wait.rank);
    }
    for (auto& [place, finding] : found) findings_.push_back(std::move(finding));
  }

  const JobCalls& job_;
  CallTable table_;
  WaitGraph graph_;
  Ranks explained_;
  std::vector<HangFinding> findings_;
};

}  // namespace

std::vector<HangFinding> FindHang(const JobCalls& job) { return Finder(job).Find(); }

}  // namespace ranktap::collector
