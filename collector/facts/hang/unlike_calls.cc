#include "collector/facts/hang/unlike_calls.h"

#include <algorithm>
#include <set>
#include <string>

namespace ranktap::collector {
namespace {

using Classes = std::map<std::string, Participants>;

Classes BySignature(const Participants& participants) {
  Classes classes;
  for (const auto& [rank, call] : participants) {
    classes[SignatureOf(*call)].emplace_back(rank, call);
  }
  return classes;
}

// nullptr: no signature is of more than half of the ranks.
const Participants* MajorityOf(const Classes& classes, size_t all) {
  for (const auto& [signature, participants] : classes) {
    if (participants.size() * 2 > all) return &participants;
  }
  return nullptr;
}

// From the call on, what `behind` calls is what `ahead` called one call later.
bool IsOneBehind(const CallTable& table, const CallKey& key, uint32_t behind, uint32_t ahead) {
  const auto from = [&](uint32_t rank) {
    std::vector<const JobCall*> calls = table.CallsOf(rank, key.group);
    std::erase_if(calls, [&key](const JobCall* call) { return call->number < key.number; });
    return calls;
  };
  const std::vector<const JobCall*> late = from(behind), early = from(ahead);
  if (late.empty() || early.size() < 2) return false;
  for (size_t i = 0; i < late.size() && i + 1 < early.size(); ++i) {
    if (SignatureOf(*late[i]) != SignatureOf(*early[i + 1])) return false;
  }
  return true;
}

HangFinding FindingOf(const CallTable& table, const CallKey& key, const Participants& all,
                      const Classes& classes) {
  HangFinding finding;
  const Participants* const majority = MajorityOf(classes, all.size());
  const Participants& usual = majority != nullptr ? *majority : classes.begin()->second;
  finding.is_guilty = majority != nullptr;
  finding.call = *usual.front().second;
  finding.others = usual.size();
  for (const auto& [rank, call] : all) {
    const bool is_usual = SignatureOf(*call) == SignatureOf(finding.call);
    if (!is_usual && !finding.other_call) finding.other_call = *call;
    if (!is_usual || !finding.is_guilty) finding.ranks.push_back(rank);
  }
  const bool other_function = finding.other_call->function != finding.call.function;
  finding.cause = other_function ? HangCause::kOtherCall : HangCause::kOtherSignature;
  finding.has_ended = std::ranges::none_of(all, [](const auto& of) { return of.second->is_open; });
  finding.left_out = other_function && finding.is_guilty &&
                     IsOneBehind(table, key, finding.ranks.front(), usual.front().first);
  return finding;
}

}  // namespace

std::map<CallKey, HangFinding> FindUnlikeCalls(const CallTable& table) {
  std::map<CallKey, HangFinding> found;
  std::set<uint32_t> groups;
  for (const auto& [key, participants] : table.collectives()) {
    if (participants.size() < 2 || groups.contains(key.group)) continue;
    const Classes classes = BySignature(participants);
    if (classes.size() < 2) continue;
    groups.insert(key.group);
    found.emplace(key, FindingOf(table, key, participants, classes));
  }
  return found;
}

}  // namespace ranktap::collector
