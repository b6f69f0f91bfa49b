#include "collector/cli/run_selection.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>

#include "collector/cli/host_roofs.h"
#include "collector/cli/ncu_files.h"
#include "collector/export/run_clock.h"
#include "collector/file/printable.h"
#include "collector/report/human_units.h"
#include "collector/report/jobs.h"
#include "collector/report/run_filter.h"
#include "collector/terminal/complain.h"
#include "collector/trace/group_calls.h"

namespace ranktap::collector {
namespace {

bool SelectJob(int64_t job, Run* run, std::vector<std::string>* notes) {
  std::string jobs = DescribeJobs(*run);
  if (job == 0) {
    if (!jobs.empty()) notes->push_back(std::move(jobs));
    return true;
  }
  if (KeepJob(job, run)) return true;
  Complain(jobs.empty() ? "the run holds no jobs to tell apart" : Printable(jobs));
  return false;
}

std::optional<NumberSet> Numbers(const std::string& text) {
  std::optional<NumberSet> set = ParseNumberSet(text);
  if (!set) Complain(fmt::format("'{}' is not a list of numbers; write it as 0,2-5", text));
  return set;
}

bool SelectRanks(const std::string& ranks, Run* run) {
  const std::optional<NumberSet> set = Numbers(ranks);
  if (!set) return false;
  std::set<int64_t> known;
  for (const Trace& trace : run->traces) {
    if (trace.info.rank) known.insert(*trace.info.rank);
  }
  KeepRanks(*set, run);
  if (!run->traces.empty()) return true;
  Complain(fmt::format("no rank of the run is among {}; it has {}", ranks,
                       known.empty() ? "files that do not say their rank" : ListOf(known)));
  return false;
}

bool SelectSteps(const std::string& steps, Run* run, std::vector<std::string>* notes) {
  const std::optional<NumberSet> set = Numbers(steps);
  if (!set) return false;
  Result<std::vector<std::string>> kept = KeepSteps(*set, run);
  if (!kept) {
    Complain(kept.message());
    return false;
  }
  notes->insert(notes->end(), kept->begin(), kept->end());
  return true;
}

bool SelectWindow(const std::string& text, int64_t first_event, Run* run) {
  const std::optional<TimeWindow> window = ParseWindow(text, first_event);
  if (!window) {
    Complain(NoWindow(text));
    return false;
  }
  std::vector<Interval> windows;
  for (const Trace& trace : run->traces) {
    const int64_t shift = RealtimeOffset(*run, trace);
    windows.emplace_back(window->from - shift, window->to - shift);
  }
  if (KeepWindows(windows, run)) return true;
  Complain(fmt::format("--window {}: nothing in the run began then", text));
  return false;
}

}  // namespace

void AddSelectionOptions(Arguments* app, RunSelection* selection) {
  app->Add("--job", &selection->job, "only this job, where a run holds several: 1")
      .From(1, 1'000'000);
  app->Add("--ranks", &selection->ranks, "only these ranks: 0,2-5");
  app->Add("--steps", &selection->steps, "only these steps: 10-19");
  app->Add("--window", &selection->window,
           "only what began FROM:TO after the run's first event (1.5s:2s)");
  AddKnownArithmeticOptions(app, &selection->known);
  AddHostRoofsOption(app, &selection->roofs);
  AddNcuOption(app, &selection->ncu);
}

bool SelectOfRun(const RunSelection& selection, Run* run, std::vector<std::string>* notes) {
  if (std::any_of(run->traces.begin(), run->traces.end(), [](const Trace& trace) {
        return trace.origin == TraceOrigin::kExecution && !GroupCallsOf(trace).is_dump;
      })) {
    notes->push_back(
        "an execution trace records no times: ranktap made them up, in the operators' order; rates "
        "follow from them");
  }
  const int64_t first_event = selection.window.empty() ? 0 : FirstRealtime(*run);
  return SelectJob(selection.job, run, notes) &&
         (selection.ranks.empty() || SelectRanks(selection.ranks, run)) &&
         (selection.steps.empty() || SelectSteps(selection.steps, run, notes)) &&
         (selection.window.empty() || SelectWindow(selection.window, first_event, run)) &&
         TakeKnownArithmetic(selection.known, *run) && TakeHostRoofs(selection.roofs, *run) &&
         TakeNcu(selection.ncu, *run, notes);
}

void NameTheRanks(const RunSelection& selection, Table* table) {
  constexpr std::string_view kAll = "all ranks";
  if (selection.ranks.empty() || !table->title.ends_with(kAll)) return;
  const bool is_one =
      std::ranges::all_of(selection.ranks, [](char c) { return c >= '0' && c <= '9'; });
  table->title.resize(table->title.size() - kAll.size());
  table->title += fmt::format("{} {}", is_one ? "rank" : "ranks", selection.ranks);
}

std::optional<TimeWindow> ParseWindow(const std::string& text, int64_t first_event) {
  // Far from the ends of what fits: a clock's offset is added.
  constexpr int64_t kEver = std::numeric_limits<int64_t>::max() / 4;
  TimeWindow window{-kEver, kEver};
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto read = [first_event](const std::string& part, int64_t* time) {
    if (part.empty()) return true;
    const auto after = ParseDuration(part);
    if (!after) return false;
    *time = first_event + static_cast<int64_t>(*after);
    return true;
  };
  if (!read(text.substr(0, colon), &window.from) || !read(text.substr(colon + 1), &window.to) ||
      window.from >= window.to) {
    return std::nullopt;
  }
  return window;
}

std::string NoWindow(const std::string& text) {
  return fmt::format(
      "--window '{}' is not FROM:TO; write two durations after the run's first event, such as "
      "1.5s:2s, 200ms: or :1s",
      text);
}

}  // namespace ranktap::collector
