// Memory asked of the driver in steps that should find it in the allocator's cache.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>

#include "collector/facts/framework/memory_blocks.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfDeviceAllocations = 0.01;  // of the step
// What is held and never given out at the peak, of what is held.
constexpr double kLeastUnused = 0.25;
constexpr uint64_t kLeastUnusedBytes = uint64_t{512} << 20;

bool IsDriverAllocation(std::string_view api) {
  for (const std::string_view name :
       {"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost", "cudaMallocHost", "cuMemAlloc",
        "cuMemFree", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "hipMalloc",
        "hipFree", "hipHostMalloc", "hipHostFree"}) {
    // "cudaMallocAsync" asks a pool of the driver's.
    if (api.starts_with(name) && api.find("Async") == api.npos) return true;
  }
  return false;
}

struct AllocationCalls {
  std::vector<Interval> moments;
  int64_t count = 0, refused = 0;
  std::map<std::string, int64_t> by_api, by_place;
};

AllocationCalls AllocationsInSteps(const RankFacts& rank) {
  AllocationCalls found;
  const Trace& trace = rank.trace();
  const ApiCalls& calls = trace.api_calls;
  std::vector<bool> allocates(trace.dictionary.apis() + 1);
  for (uint32_t id = 0; id < trace.dictionary.apis(); ++id) {
    allocates[id] = IsDriverAllocation(trace.dictionary.Api(id).name);
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!allocates[std::min<size_t>(calls.api[i], allocates.size() - 1)]) continue;
    if (!rank.IsCounted(calls.start[i])) continue;
    found.moments.emplace_back(calls.start[i], calls.end[i]);
    ++found.count;
    found.refused += calls.status.At(i) != 0 ? 1 : 0;
    ++found.by_api[trace.dictionary.Api(calls.api[i]).name];
    found.by_place[rank.PlaceAt(calls.writer[i], calls.start[i])] += calls.end[i] - calls.start[i];
  }
  found.moments = Merged(std::move(found.moments));
  return found;
}

std::string KeyOfMost(const std::map<std::string, int64_t>& sums) {
  const auto most =
      std::ranges::max_element(sums, {}, [](const auto& entry) { return entry.second; });
  return most == sums.end() ? "" : most->first;
}

// By device: the most that was ever in use and held.
struct Peaks {
  uint64_t allocated = 0, reserved = 0;
};

}  // namespace

Answer FindAllocationsInSteps(const RankFacts& rank) {
  if (!rank.has_steps()) return CannotTell("no steps are known");
  if (rank.trace().api_calls.size() == 0) return CannotTell("no CUDA calls are recorded");
  AllocationCalls found = AllocationsInSteps(rank);
  const int64_t lost = rank.PerStep(Length(found.moments));
  if (found.refused == 0 && !rank.IsWorth(lost, kLeastShareOfDeviceAllocations)) return {};
  if (found.count == 0) return {};
  return {.insights = {
              {.finding = fmt::format(
                   "The host asks the driver for memory or gives it back {} ({}, mostly {}), for "
                   "{} {} ({}){}.",
                   rank.TimesAStep(found.count), Counted(static_cast<size_t>(found.count), "call"),
                   KeyOfMost(found.by_api), FormatNs(lost), rank.OfStep(),
                   FormatShare(lost, rank.step_ns()),
                   found.refused == 0
                       ? ""
                       : fmt::format("; {} failed and had to be tried again", found.refused)),
               .where = KeyOfMost(found.by_place),
               .count = found.count,
               .lost_ns = lost,
               .saving = Saving{.moments = std::move(found.moments),
                                .causes = BitOf(Cause::kHost) | BitOf(Cause::kSync)}}}};
}

Answer FindMemoryFragmentation(const RankFacts& rank) {
  const Allocations& all = rank.trace().allocations;
  std::map<uint32_t, Peaks> by_device;
  for (size_t i = 0; i < all.size(); ++i) {
    const uint32_t device = MemoryDeviceOf(all, i);
    if (device == kNone || all.reserved.At(i) == 0) continue;
    Peaks& peaks = by_device[device];
    peaks.allocated = std::max(peaks.allocated, all.allocated.At(i));
    peaks.reserved = std::max(peaks.reserved, all.reserved.At(i));
  }
  if (by_device.empty()) return CannotTell("the allocator's memory is not recorded");
  Answer answer;
  for (const auto& [device, peaks] : by_device) {
    const uint64_t unused = peaks.reserved - std::min(peaks.reserved, peaks.allocated);
    if (unused < kLeastUnusedBytes ||
        static_cast<double>(unused) < kLeastUnused * static_cast<double>(peaks.reserved)) {
      continue;
    }
    answer.insights.push_back(
        {.device = device,
         .finding = fmt::format(
             "The allocator holds {} of device {}, and at most {} are ever in use: {} ({}) lie "
             "in pieces that fit nothing.",
             FormatBytes(peaks.reserved), device, FormatBytes(peaks.allocated), FormatBytes(unused),
             FormatShare(static_cast<int64_t>(unused), static_cast<int64_t>(peaks.reserved)))});
  }
  return answer;
}

}  // namespace ranktap::collector
