// What sentences say, and who must agree before they say it. A claim is a statement that several
// tables can make: each rests on facts, and its checks ask the other tables that know the same
// thing. Where one of them disagrees nothing is claimed: the sentence says that it is undecided,
// and gives the check's reason.
//
//   claim       rests on                                 checks
//   late rank   the lengths of matched collectives  ->   arrivals, pace, group, bound, steps
//   "the other ranks wait for rank 1"                    arrivals: "by their clocks rank 0 comes
//   is not said: who is late is undecided                last to them"
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "collector/trace/run.h"

namespace ranktap::collector {

enum class Claim : uint8_t {
  kLargestLoss,  // and every share of time: nothing of the run is missing, and its parts add up
  kLateRank,     // the rank that the others wait for
  kTransfer,     // communication moves data all the time, so that none of it is waiting
  kRecoverable,  // what of the largest loss can be won back
  kBusy,         // the share of the time in which devices work
  kFlops,        // the arithmetic of a step
  kPeak,         // the rate that it is compared with
};

std::string_view NameOf(Claim claim);  // "late rank"

// Pure. Empty: the two agree, or one of them does not know.
using Disagreement = std::string (*)(const Run& run);

struct CrossCheck {
  Claim claim{};
  std::string_view against;  // what else knows it, by one word: "pace"
  Disagreement disagreement = nullptr;
};

// The check of kRecoverable that speaks of the largest loss; the others speak of every loss.
inline constexpr std::string_view kOfLargestAlone = "cause";

// The table of contents of this folder.
std::span<const CrossCheck> AllCrossChecks();

struct Ruling {
  std::string_view against;  // of the first check that disagrees; empty: the claim may be made
  std::string why;           // for "... is undecided: <why>"
  bool is_undecided() const { return !against.empty(); }
};

// Worked out once and kept in the run's memo.
const Ruling& RulingOn(const Run& run, Claim claim);

}  // namespace ranktap::collector
