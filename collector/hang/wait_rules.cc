#include "collector/hang/wait_rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/hang/call_place.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kLeastLimitNs = 20 * kSecondNs;
// A rank this young may still compile, read a checkpoint or wait for one that does.
constexpr uint64_t kYoungNs = 120 * kSecondNs;
constexpr uint64_t kSuspicionNs = 5 * kSecondNs;
// A main thread that waits uses none at all; the clock of a thread is not exact.
constexpr double kIdleShare = 0.001, kBusyShare = 0.5;
constexpr int kStillLooks = 3;
constexpr uint64_t kStillNs = 2 * kSecondNs;
constexpr size_t kMostEndedWaits = 256;

bool IsStopped(const RankLook& look) { return look.state == 'T'; }

bool SameFunctions(const ThreadStack& a, const ThreadStack& b) {
  return std::ranges::equal(a.frames, b.frames, [](const StackFrame& one, const StackFrame& other) {
    return one.file == other.file && one.function == other.function;
  });
}

std::string Capitalized(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string Others(size_t waiting, size_t all) {
  return fmt::format("{} of {} {} ", waiting, all, waiting == 1 ? "waits" : "wait");
}

const char* AdviceFor(WaitCause cause) {
  switch (cause) {
    case WaitCause::kEnded:
      return "look at that rank's last lines on stderr; a rank may not end before the others have "
             "left their last collective";
    case WaitCause::kStopped:
      return "kill -CONT lets it go on; a scheduler or a shell's Ctrl-Z may have stopped it";
    case WaitCause::kStuck:
      return "see what that line waits for; ranktap stacks shows all its threads";
    case WaitCause::kMoves:
      return "is this rank's work meant to be done alone? Split it, or let the others skip the "
             "collective";
    case WaitCause::kOtherCall:
      return "every rank of a group must make the same calls in the same order; look for an if on "
             "the rank, or for uneven numbers of batches";
    case WaitCause::kAllEntered:
      return "compare shapes, dtypes and groups of the call; else look at the network";
    case WaitCause::kDevices:
      return "a collective or a kernel does not end: compare shapes, dtypes and groups of the "
             "calls; else look at the GPUs and the network";
    case WaitCause::kOtherNode:
      return "look at the other machines of the job";
    case WaitCause::kDebugged:
      return "continue in the debugger";
    case WaitCause::kAsksTerminal:
      return "answer at that terminal";
    default:
      return "";
  }
}

}  // namespace

const char* NameOf(WaitCause cause) {
  constexpr const char* kNames[] = {"none",          "ended",      "stopped",     "stuck",
                                    "moves",         "other call", "all entered", "devices",
                                    "other machine", "debugger",   "terminal",    "unknown"};
  return kNames[static_cast<size_t>(cause)];
}

void WaitRules::Compare(const RankLook& look, uint64_t now_ns, Rank* rank) const {
  const ThreadStack* const then = MainThreadOf(rank->full.stacks);
  const ThreadStack* const now = MainThreadOf(look.stacks);
  const bool is_same = rank->full.is_full && (then == nullptr) == (now == nullptr) &&
                       (now == nullptr || then->frames == now->frames);
  rank->functions_move =
      rank->full.is_full && now != nullptr && then != nullptr && !SameFunctions(*then, *now);
  if (!is_same) {
    rank->same_looks = rank->still_looks = 0;
    rank->same_since = now_ns;
  }
  ++rank->same_looks;
  const RankWork &before = rank->full.work, &work = look.work;
  const bool did_work = work.bytes != before.bytes || work.children_cpu != before.children_cpu ||
                        work.children_bytes != before.children_bytes ||
                        work.work_ended != before.work_ended;
  // Of a thread that computes, its pages and its helpers tell that it gets on: operators take
  // memory and other threads.
  const bool computes = rank->wanted > kBusyShare;
  const bool gets_on =
      computes && (look.motion == StackMotion::kChanges || work.faults != before.faults ||
                   work.others_cpu != before.others_cpu || look.sleeps != rank->full.sleeps);
  if (!rank->full.is_full || did_work || gets_on || rank->functions_move) {
    rank->worked_ns = now_ns;
    rank->still_looks = 0;
  } else if (!computes || now == nullptr || look.motion == StackMotion::kStays) {
    ++rank->still_looks;
  }
}

void WaitRules::Take(RankLook look, uint64_t now_ns) {
  const auto [at, is_new] = ranks_.try_emplace(look.rank);
  Rank& rank = at->second;
  if (is_new || rank.glance.pid != look.pid) rank = {.first_ns = now_ns};
  std::erase_if(ended_, [&look](const EndedRank& ended) { return ended.rank == look.rank; });
  if (rank.glanced_ns != 0 && now_ns > rank.glanced_ns) {
    const auto passed = static_cast<double>(now_ns - rank.glanced_ns);
    rank.cpu = static_cast<double>(look.cpu_ns - rank.glance.cpu_ns) / passed;
    rank.wanted = rank.cpu + static_cast<double>(look.queue_ns - rank.glance.queue_ns) / passed;
    // In one call of CUDA's since the last look it may spin.
    const bool is_in_call =
        !look.cuda_call.empty() && look.cuda_call_ns >= now_ns - rank.glanced_ns;
    const bool ran = is_in_call ? look.work_ended != rank.glance.work_ended
                                : look.sleeps != rank.glance.sleeps || rank.cpu > kIdleShare ||
                                      (look.state == 'R' && rank.cpu > 0);
    if (ran) {
      const bool waited = rank.blocked_since && now_ns - *rank.blocked_since >= kStillNs;
      ended_waits_.push_back(waited ? now_ns - *rank.blocked_since : 0);
      if (ended_waits_.size() > kMostEndedWaits) ended_waits_.pop_front();
      rank.blocked_since.reset();
    } else if (!rank.blocked_since) {
      rank.blocked_since = rank.glanced_ns;
    }
  }
  if (look.is_full) {
    Compare(look, now_ns, &rank);
    rank.full = look;
  }
  rank.glance = std::move(look);
  rank.glanced_ns = now_ns;
}

void WaitRules::TakeEnded(const EndedRank& ended) {
  const auto rank = ranks_.find(ended.rank);
  // A launcher may have started the rank again by now.
  if (rank == ranks_.end() || rank->second.glance.pid != ended.pid) return;
  ranks_.erase(rank);
  ended_.push_back(ended);
}

bool WaitRules::IsSuspicious(uint64_t now_ns) const {
  if (Count() < 2) return false;
  const uint64_t after = limits_.waits_after_ns == 0
                             ? kSuspicionNs
                             : std::min(kSuspicionNs, limits_.waits_after_ns / 4);
  return std::ranges::any_of(ranks_, [&](const auto& entry) {
    const auto& blocked = entry.second.blocked_since;
    return blocked && now_ns - *blocked >= after;
  });
}

bool WaitRules::AllStopped() const {
  return !ranks_.empty() && std::ranges::all_of(ranks_, [](const auto& entry) {
    return IsStopped(entry.second.glance);
  });
}

size_t WaitRules::Count() const { return std::max<size_t>(world_, ranks_.size() + ended_.size()); }

bool WaitRules::IsWaiting(const Rank& rank) const {
  return rank.full.is_full && rank.blocked_since && !IsStopped(rank.glance) &&
         (!CollectiveOf(rank.full).empty() || WaitsForDevice(rank.full));
}

bool WaitRules::IsMovingInACall(const Rank& rank) const {
  return rank.full.is_full && !rank.blocked_since && !IsStopped(rank.glance) &&
         !CollectiveOf(rank.full).empty();
}

// Five times what nine of ten waits took that have ended.
uint64_t WaitRules::LimitNs() const {
  if (limits_.waits_after_ns != 0) return limits_.waits_after_ns;
  if (ended_waits_.empty()) return kLeastLimitNs;
  std::vector<uint64_t> waits(ended_waits_.begin(), ended_waits_.end());
  const auto at = waits.begin() + static_cast<ptrdiff_t>((waits.size() - 1) * 9 / 10);
  std::ranges::nth_element(waits, at);
  return std::max(kLeastLimitNs, 5 * *at);
}

WaitCause WaitRules::CauseOf(const Rank& awaited, uint64_t now_ns, uint64_t limit_ns) const {
  if (IsInDebugger(awaited.full)) return WaitCause::kDebugged;
  if (IsStopped(awaited.glance)) return WaitCause::kStopped;
  if (ReadsTerminal(awaited.full)) return WaitCause::kAsksTerminal;
  if (awaited.full.stacks.threads.empty()) return WaitCause::kUnreadable;
  const uint64_t still = awaited.wanted > kBusyShare ? limit_ns : kStillNs;
  // Where the machine stood still for seconds, one look has nothing new whatever the rank does.
  const bool is_stuck = awaited.still_looks >= kStillLooks && now_ns - awaited.worked_ns >= still &&
                        now_ns - awaited.same_since >= still;
  return is_stuck ? WaitCause::kStuck : WaitCause::kMoves;
}

// Where each stands is told, and nobody is named: ranks that wait for the same kernel may have gone
// on to different lines.
void WaitRules::JudgeDevices(const std::vector<const Rank*>& waiting, WaitVerdict* verdict) const {
  std::map<std::string, std::vector<uint32_t>> places;
  for (const Rank* const rank : waiting) {
    const RankLook& look = rank->full;
    places[CallAt(look)].push_back(look.rank);
  }
  std::string text;
  for (const auto& [place, ranks] : places) {
    const std::string who = places.size() == 1 ? "" : RankText(ranks) + " ";
    text += fmt::format("{}{}in {}", text.empty() ? "" : ", ", who, place);
  }
  verdict->cause = WaitCause::kDevices;
  const std::string all =
      waiting.size() < Count()
          ? fmt::format("All {} ranks of this machine, of {},", waiting.size(), Count())
          : fmt::format("All {} ranks", waiting.size());
  verdict->sentence =
      fmt::format("{} wait for their devices since {}{} {}", all, DurationText(verdict->waited_ns),
                  places.size() == 1 ? "," : ":", text);
}

void WaitRules::JudgeAllIn(const std::vector<const Rank*>& waiting, WaitVerdict* verdict) const {
  const auto waits_for_device = [](const Rank* rank) { return WaitsForDevice(rank->full); };
  if (std::ranges::any_of(waiting, waits_for_device)) return JudgeDevices(waiting, verdict);
  // By function, else by line.
  std::map<std::string, std::vector<const Rank*>> calls;
  for (const Rank* const rank : waiting) calls[CollectiveOf(rank->full)].push_back(rank);
  if (calls.size() == 1) {
    calls.clear();
    for (const Rank* const rank : waiting) calls[CallAt(rank->full)].push_back(rank);
  }
  const std::string since = DurationText(verdict->waited_ns);
  if (calls.size() > 1) {
    auto usual = std::ranges::max_element(
        calls, [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    verdict->cause = WaitCause::kOtherCall;
    std::vector<uint32_t> usual_ranks, others;
    std::string others_text;
    for (const auto& [name, ranks] : calls) {
      std::vector<uint32_t> numbers;
      for (const Rank* const rank : ranks) numbers.push_back(rank->full.rank);
      std::vector<uint32_t>& into = name == usual->first ? usual_ranks : others;
      into.insert(into.end(), numbers.begin(), numbers.end());
      if (name == usual->first) continue;
      others_text +=
          fmt::format("{}{} {} in {}", others_text.empty() ? "" : ", ", RankText(numbers),
                      numbers.size() == 1 ? "stands" : "stand", CallAt(ranks.front()->full));
    }
    std::ranges::sort(others);
    verdict->awaited = others;
    verdict->waiting = usual_ranks;
    const bool has_majority = usual_ranks.size() > others.size();
    verdict->sentence = fmt::format(
        "{}, {} {} in {}, since {}{}", Capitalized(others_text), RankText(usual_ranks),
        usual_ranks.size() == 1 ? "stands" : "stand", CallAt(usual->second.front()->full), since,
        has_majority ? "" : "; no side has a majority, so that neither is named as the cause");
  } else if (waiting.size() < Count()) {
    verdict->cause = WaitCause::kOtherNode;
    verdict->sentence = fmt::format(
        "All {} ranks of this machine, of {}, wait in {} since {}; the rank that they wait for is "
        "not here",
        waiting.size(), Count(), CallAt(waiting.front()->full), since);
  } else {
    verdict->cause = WaitCause::kAllEntered;
    verdict->sentence = fmt::format("All {} ranks entered {} and wait in it since {}",
                                    waiting.size(), CallAt(waiting.front()->full), since);
  }
}

void WaitRules::JudgeAwaited(const std::vector<const Rank*>& awaited, uint64_t now_ns,
                             WaitVerdict* verdict) const {
  const std::string others = Others(verdict->waiting.size(), Count());
  const std::string since = "since " + DurationText(verdict->waited_ns);
  const RankLook& waits = ranks_.at(verdict->waiting.front()).full;
  const bool for_device = WaitsForDevice(waits);
  const std::string wait = WaitsIn(waits, verdict->waiting.size());
  if (!ended_.empty()) {
    const EndedRank& rank = ended_.front();
    verdict->cause = WaitCause::kEnded;
    for (const EndedRank& ended : ended_) verdict->awaited.push_back(ended.rank);
    std::ranges::sort(verdict->awaited);
    const std::string end = rank.end.wait_status ? ", by " + EndText(rank) : "";
    verdict->sentence =
        for_device
            ? fmt::format("Rank {} has ended{}; {}{} {}", rank.rank, end, others, wait, since)
            : fmt::format("Rank {} has ended{} and did not enter {}; {}{}", rank.rank,
                          end.empty() ? "" : end + ",", CallAt(waits), others, since);
    if (const std::string place = LastPlaceText(rank); !place.empty()) {
      verdict->sentence += ". " + Capitalized(place);
    }
    return;
  }
  const uint64_t limit = LimitNs();
  // The one that explains most: it is stopped, then stuck, then anything else.
  const Rank* guilty = awaited.front();
  WaitCause cause = CauseOf(*guilty, now_ns, limit);
  bool all_stuck = true;
  for (const Rank* const rank : awaited) {
    const WaitCause own = CauseOf(*rank, now_ns, limit);
    all_stuck = all_stuck && (own == WaitCause::kStuck || own == WaitCause::kStopped);
    verdict->awaited.push_back(rank->full.rank);
    if (own == WaitCause::kStopped && cause != WaitCause::kStopped) guilty = rank, cause = own;
  }
  if (cause == WaitCause::kStuck && !all_stuck) cause = WaitCause::kMoves;
  verdict->cause = cause;
  const std::string who = RankText(verdict->awaited);
  const std::string which =
      awaited.size() == 1 ? "" : fmt::format(" (of rank {})", guilty->full.rank);
  const std::string place = DescribePlace(guilty->full) + which;
  switch (cause) {
    case WaitCause::kMoves: {
      const ThreadStack* const stack = MainThreadOf(guilty->full.stacks);
      verdict->sentence =
          fmt::format("{}{} {} for {}, which runs {} ({}, {:.0f} % CPU)", others, wait, since, who,
                      stack == nullptr ? "no Python" : ChainOf(*stack),
                      guilty->functions_move       ? "functions change"
                      : guilty->same_looks == 1    ? "lines move"
                      : now_ns > guilty->worked_ns ? "stands at one line"
                                                   : "reads, writes or has children at work",
                      100 * guilty->cpu);
      return;
    }
    case WaitCause::kDebugged:
      verdict->sentence =
          fmt::format("{}{} for {}, which a debugger holds. {}", others, since, who, place);
      return;
    case WaitCause::kAsksTerminal:
      verdict->sentence =
          fmt::format("{}{} for {}, which reads a terminal. {}", others, since, who, place);
      return;
    case WaitCause::kUnreadable:
      verdict->sentence = fmt::format("{}{} {} for {}. {}", others, wait, since, who, place);
      return;
    default:
      verdict->sentence =
          for_device
              ? fmt::format("{} {} the others waiting; {}{} {}. {}", Capitalized(who),
                            awaited.size() == 1 ? "keeps" : "keep", others, wait, since, place)
              : fmt::format("{} did not enter {}; {}{}. {}", Capitalized(who), CallAt(waits),
                            others, since, place);
  }
}

WaitVerdict WaitRules::Judge(uint64_t now_ns) const {
  WaitVerdict verdict;
  std::vector<const Rank*> waiting, awaited;
  uint64_t since = 0;
  for (const auto& [number, rank] : ranks_) {
    if (!rank.full.is_full || IsMovingInACall(rank)) return verdict;
    const bool waits = IsWaiting(rank);
    (waits ? waiting : awaited).push_back(&rank);
    if (!waits) continue;
    verdict.waiting.push_back(number);
    since = std::max(since, *rank.blocked_since);
  }
  if (waiting.empty() || Count() < 2) return verdict;
  verdict.waited_ns = now_ns - since;
  if (awaited.empty() && ended_.empty()) {
    JudgeAllIn(waiting, &verdict);
  } else {
    JudgeAwaited(awaited, now_ns, &verdict);
  }
  verdict.sentence += ".";
  verdict.advice = AdviceFor(verdict.cause);
  const bool is_certain = verdict.cause == WaitCause::kEnded ||
                          verdict.cause == WaitCause::kStopped ||
                          (verdict.cause == WaitCause::kOtherCall && ranks_.size() >= world_);
  uint64_t youngest = 0;
  for (const auto& [number, rank] : ranks_) youngest = std::max(youngest, rank.first_ns);
  const bool is_young = limits_.waits_after_ns == 0 && !is_certain && now_ns - youngest < kYoungNs;
  if (verdict.waited_ns < LimitNs() || is_young) return verdict;
  const bool is_hang = is_certain || verdict.cause == WaitCause::kStuck ||
                       verdict.cause == WaitCause::kAllEntered ||
                       verdict.cause == WaitCause::kDevices;
  const bool may_be_hang =
      verdict.cause != WaitCause::kDebugged && verdict.cause != WaitCause::kAsksTerminal;
  verdict.grade = is_hang || (may_be_hang && verdict.waited_ns >= limits_.hang_after_ns)
                      ? WaitGrade::kHang
                      : WaitGrade::kWaits;
  return verdict;
}

std::vector<const RankLook*> WaitRules::Looks() const {
  std::vector<const RankLook*> looks;
  for (const auto& [number, rank] : ranks_) {
    if (rank.full.is_full) looks.push_back(&rank.full);
  }
  return looks;
}

}  // namespace ranktap::collector
