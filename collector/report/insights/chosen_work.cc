#include "collector/report/insights/chosen_work.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "collector/report/human_units.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

// The key with the largest sum; of equal ones the first.
std::string MostOf(const std::map<std::string, int64_t>& sums) {
  std::string most;
  int64_t ns = 0;
  for (const auto& [key, sum] : sums) {
    if (key.empty() || sum <= ns) continue;
    most = key;
    ns = sum;
  }
  return most;
}

}  // namespace

void ChosenWork::Add(const DeviceSpan& span) {
  if (!rank_.IsCounted(span.start)) return;
  spans_.push_back(span);
  total_ns_ += span.end - span.start;
}

void ChosenWork::Add(const ChosenWork& other) {
  spans_.insert(spans_.end(), other.spans_.begin(), other.spans_.end());
  total_ns_ += other.total_ns_;
}

std::string ChosenWork::Place() const {
  std::map<std::string, int64_t> sums;
  for (const DeviceSpan& span : spans_) sums[rank_.PlaceOf(span)] += span.end - span.start;
  return MostOf(sums);
}

std::string ChosenWork::KernelName() const {
  std::unordered_map<uint32_t, int64_t> by_id;
  for (const DeviceSpan& span : spans_) by_id[span.name] += span.end - span.start;
  std::map<std::string, int64_t> sums;
  for (const auto& [id, ns] : by_id) {
    if (id == 0) continue;
    sums[ShortKernelName(ReadableKernelName(rank_.trace().dictionary.String(id)))] += ns;
  }
  return TellingKernelName(MostOf(sums));
}

uint32_t ChosenWork::Device() const {
  const bool is_one = std::ranges::all_of(
      spans_, [this](const DeviceSpan& span) { return span.device == spans_[0].device; });
  return spans_.empty() || !is_one ? kNone : spans_[0].device;
}

const DeviceSpan& ChosenWork::Longest() const {
  return *std::ranges::max_element(spans_, {},
                                   [](const DeviceSpan& span) { return span.end - span.start; });
}

std::string ChosenWork::Taking() const {
  return fmt::format("taking {} {} ({})", FormatNs(per_step()), rank_.OfStep(),
                     FormatShare(per_step(), rank_.step_ns()));
}

Saving ChosenWork::ToSave(double share) const {
  Saving saving{.share = share};
  saving.causes = BitOf(Cause::kCompute) | BitOf(Cause::kMemory);
  for (const DeviceSpan& span : spans_) saving.moments.emplace_back(span.start, span.end);
  return saving;
}

Insight ChosenWork::AsInsight(std::string finding, double share) const {
  return {.device = Device(),
          .finding = std::move(finding),
          .where = Place(),
          .count = count(),
          .lost_ns = static_cast<int64_t>(static_cast<double>(per_step()) * share),
          .saving = ToSave(share)};
}

}  // namespace ranktap::collector
