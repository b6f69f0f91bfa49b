#include "collector/report/claims/claim.h"

#include <array>

#include "collector/report/claims/cross_checks.h"
#include "collector/report/steps/trusted_time.h"

namespace ranktap::collector {
namespace {

std::string PartsDisagree(const Run& run) { return WhatDisagrees(run); }

constexpr CrossCheck kChecks[] = {
    {Claim::kLargestLoss, "missing", &WhatIsMissing},
    {Claim::kLargestLoss, "parts", &PartsDisagree},
    {Claim::kLateRank, "group", &MoreRanksThanTheGroupHas},
    {Claim::kLateRank, "steps", &RanksMakeUnlikeSteps},
    {Claim::kLateRank, "bound", &WaitsAreLongerThanSteps},
    {Claim::kLateRank, "arrivals", &AnotherRankArrivesLast},
    {Claim::kLateRank, "pace", &AnotherRankFallsBehind},
    {Claim::kTransfer, "members", &MembersAreMissing},
    {Claim::kRecoverable, "launches", &LaunchesAreMissing},
    {Claim::kRecoverable, "path", &PathIsCutOff},
    {Claim::kRecoverable, kOfLargestAlone, &CauseIsNotInTheFile},
    {Claim::kBusy, "launches", &WorkIsNotInTheFile},
    {Claim::kBusy, "devices", &DevicesSayOtherwise},
    {Claim::kFlops, "kernels", &ProductsAreNotCounted},
    {Claim::kPeak, "bound", &RateIsOverThePeak},
    {Claim::kPeak, "types", &KernelsSayAnotherType},
};

Ruling Rule(const Run& run, Claim claim) {
  for (const CrossCheck& check : kChecks) {
    if (check.claim != claim) continue;
    if (std::string why = check.disagreement(run); !why.empty()) {
      return {check.against, std::move(why)};
    }
  }
  return {};
}

template <Claim claim>
const Ruling& Kept(const Run& run) {
  struct Of {
    Ruling ruling;
  };
  return run.memo.Get<Of>([&run] { return Of{Rule(run, claim)}; }).ruling;
}

}  // namespace

std::string_view NameOf(Claim claim) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "largest loss", "late rank", "transfer", "recoverable", "busy", "FLOPs", "peak"};
  return kNames[static_cast<size_t>(claim)];
}

std::span<const CrossCheck> AllCrossChecks() { return kChecks; }

const Ruling& RulingOn(const Run& run, Claim claim) {
  switch (claim) {
    case Claim::kLargestLoss:
      return Kept<Claim::kLargestLoss>(run);
    case Claim::kLateRank:
      return Kept<Claim::kLateRank>(run);
    case Claim::kTransfer:
      return Kept<Claim::kTransfer>(run);
    case Claim::kRecoverable:
      return Kept<Claim::kRecoverable>(run);
    case Claim::kBusy:
      return Kept<Claim::kBusy>(run);
    case Claim::kFlops:
      return Kept<Claim::kFlops>(run);
    case Claim::kPeak:
      return Kept<Claim::kPeak>(run);
  }
  __builtin_unreachable();
}

}  // namespace ranktap::collector
