#include "collector/live/live_names.h"

#include "collector/facts/communication_kernels.h"
#include "collector/facts/step_names.h"
#include "collector/file/entry_set.h"
#include "proto/framework_marks.h"
#include "proto/sample_marks.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostNameBytes = 80;

LivePhase PhaseNamed(std::string_view name) {
  if (name == proto::kDataPhase) return LivePhase::kData;
  if (name == proto::kBackwardPhase) return LivePhase::kBackward;
  if (name == proto::kOptimizerPhase) return LivePhase::kOptimizer;
  if (name == proto::kCheckpointPhase) return LivePhase::kCheckpoint;
  if (name == proto::kCompilationPhase) return LivePhase::kCompilation;
  if (name == proto::kCollectionPhase) return LivePhase::kCollection;
  return LivePhase::kNone;
}

}  // namespace

void LiveNames::Add(std::span<const std::byte> dictionary) {
  (void)ForEachEntry(dictionary, [this](uint32_t field, uint64_t id, std::string_view entry) {
    if (field == v1::Dictionary::kNvtxDomainsFieldNumber) AddDomain(id, TextOfEntry(entry));
    if (field == v1::Dictionary::kStringsFieldNumber) AddString(id, TextOfEntry(entry));
  });
}

void LiveNames::AddDomain(uint64_t id, std::string_view text) {
  if (id >= kMostDomains) return;
  if (id >= domains_.size()) domains_.resize(id + 1, LiveDomain::kPrograms);
  domains_[id] = text == proto::kStepDomain     ? LiveDomain::kSteps
                 : text == proto::kPhaseDomain  ? LiveDomain::kPhases
                 : text == proto::kCommDomain   ? LiveDomain::kCollectives
                 : text.starts_with("ranktap.") ? LiveDomain::kIgnored
                                                : LiveDomain::kPrograms;
}

void LiveNames::AddString(uint64_t id, std::string_view text) {
  if (const LivePhase phase = PhaseNamed(text); phase != LivePhase::kNone) {
    phases_[static_cast<size_t>(phase)] = id;
  }
  if (text == proto::kOutOfMemoryMark) out_of_memory_ = id;
  if (id < kMostKernels && IsCommunicationKernel(text)) {
    if (id >= kernels_.size()) kernels_.resize(id + 1);
    kernels_[id] = true;
  }
  if (text.size() > kMostNameBytes) return;
  if (text.starts_with("gloo:") && collectives_.size() < kMostCollectives) {
    collectives_.emplace(id, text);
  }
  if (StepLikeName(text).empty()) return;
  if (steps_.empty()) steps_.resize(kSteps);
  steps_[id % kSteps] = {id, NumberIn(text, -1)};
}

LivePhase LiveNames::Phase(uint64_t name) const {
  if (name == 0) return LivePhase::kNone;
  for (size_t i = 1; i < kLivePhases; ++i) {
    if (phases_[i] == name) return static_cast<LivePhase>(i);
  }
  return LivePhase::kNone;
}

std::optional<int64_t> LiveNames::Step(uint64_t name) const {
  if (name == 0 || steps_.empty() || steps_[name % kSteps].id != name) return std::nullopt;
  return steps_[name % kSteps].number;
}

std::string LiveNames::Collective(uint64_t name) const {
  const auto found = collectives_.find(name);
  return found == collectives_.end() ? "" : found->second;
}

size_t LiveNames::MemoryBytes() const {
  return domains_.size() + kernels_.size() / 8 + steps_.size() * sizeof(StepName) +
         collectives_.size() * 2 * kMostNameBytes;
}

}  // namespace ranktap::collector
