#include "collector/cli/report_summary.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "collector/trace/group_calls.h"

namespace ranktap::collector {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::string_view kUsual[] = {"verdict", "ranks", "waterfall", "kernels"};
// For files that tell of an allocator alone.
constexpr std::string_view kMemory[] = {"memory", "memory-peak"};
// For dumps of PyTorch's Flight Recorder.
constexpr std::string_view kFlight[] = {"hang", "hang-by-rank"};
// For a run in which nothing ran on a device.
constexpr std::string_view kHost[] = {"verdict", "ranks", "waterfall", "steps", "modules", "ops"};

// The same of other profilers' files: these have operators in each step, and mostly one rank.
constexpr std::string_view kForeignHost[] = {"verdict", "ops",       "modules",
                                             "steps",   "waterfall", "ranks"};

std::vector<const Report*> Named(Names names) {
  std::vector<const Report*> reports;
  for (const std::string_view name : names) reports.push_back(FindReport(name));
  return reports;
}

}  // namespace

std::vector<const Report*> SummaryOf(const Run& run) {
  const auto is_memory = [](const Trace& trace) { return trace.origin == TraceOrigin::kMemory; };
  const auto on_host = [](const Trace& trace) {
    return trace.kernels.size() + trace.copies.size() + trace.memsets.size() == 0;
  };
  const auto is_flight = [](const Trace& trace) { return GroupCallsOf(trace).is_dump; };
  if (std::ranges::all_of(run.traces, is_memory)) return Named(kMemory);
  if (std::ranges::all_of(run.traces, is_flight)) return Named(kFlight);
  if (!std::ranges::all_of(run.traces, on_host)) return Named(kUsual);
  const bool is_ours = std::ranges::any_of(run.traces, &Trace::is_ours);
  return Named(is_ours ? Names(kHost) : Names(kForeignHost));
}

std::vector<const Report*> UsualSummary() { return Named(kUsual); }

}  // namespace ranktap::collector
