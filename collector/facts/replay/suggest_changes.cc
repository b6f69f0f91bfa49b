#include "collector/facts/replay/suggest_changes.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>

#include "collector/facts/device_timeline.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/replay/step_places.h"
#include "collector/facts/samples/host_samples.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostOfAKind = 4;

using NsByName = std::map<std::string, int64_t>;

void AddLargest(const NsByName& times, Change::Kind kind, double factor, std::vector<Change>* to) {
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [name, ns] : times) sorted.emplace_back(-ns, name);
  std::ranges::sort(sorted);
  sorted.resize(std::min(sorted.size(), kMostOfAKind));
  for (const auto& [ns, name] : sorted) to->push_back({kind, name, factor});
}

// Below the root, whose half is the host's half.
NsByName NsByModule(const Run& run) {
  NsByName times;
  for (const Trace& trace : run.traces) {
    for (const ModuleSpan& span : ModuleSpans(trace)) {
      if (span.depth == 0) continue;
      times[std::string(trace.dictionary.String(span.name))] += span.end - span.start;
    }
  }
  // A module that has only one child of its length says the same twice: the inner one is named.
  for (auto at = times.begin(); at != times.end();) {
    const auto below = std::ranges::find_if(times, [&](const auto& other) {
      return other.first.starts_with(at->first + ".") && other.second * 20 >= at->second * 19;
    });
    at = below == times.end() ? std::next(at) : times.erase(at);
  }
  return times;
}

NsByName NsByKernel(const Run& run) {
  NsByName times;
  for (const Trace& trace : run.traces) {
    for (const DeviceSpan& span : DeviceTimeline(trace)) {
      if (span.name == 0 || span.kind == WorkKind::kCommunication) continue;
      times[NameOf(trace, span)] += span.end - span.start;
    }
  }
  return times;
}

// The program's lines in steps, where the thread was not in a pass: those are the modules'.
NsByName NsByLine(const Run& run) {
  NsByName times;
  const StepPlaces& places = StepPlacesOf(run);
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    const HostSamples& samples = SamplesOf(run.traces[t]);
    for (const PlacedTime& piece : places.pieces[t]) {
      const std::string& place = places.names[piece.place];
      if (place == "forward" || place == "backward" || place == "optimizer") continue;
      samples.ForEachOfMain(piece.begin, piece.end, [&](const HostSample& sample, int64_t ns) {
        const SampledFrame* const frame = samples.Frame(samples.LineOf(sample.frame).line);
        if (frame == nullptr) return;
        times[fmt::format("{}:{}", ShortFile(frame->file), frame->line)] += ns;
      });
    }
  }
  return times;
}

}  // namespace

std::vector<Change> SuggestChanges(const Run& run) {
  std::vector<Change> changes;
  const bool loads = std::ranges::any_of(
      run.traces, [](const Trace& trace) { return !DataLoading(trace).empty(); });
  if (loads) changes.push_back({Change::Kind::kData, "", 0});
  const TimedGraph& graph = JobGraphOf(run).graph;
  if (std::ranges::find(graph.kind, NodeKind::kTransfer) != graph.kind.end()) {
    changes.push_back({Change::Kind::kComm, "", 0});
  }
  if (run.traces.size() > 1) {
    for (const Trace& trace : run.traces) {
      if (!trace.info.rank) continue;
      changes.push_back({Change::Kind::kRank, std::to_string(*trace.info.rank), 0});
    }
  }
  changes.push_back({Change::Kind::kHost, "", 0.5});
  AddLargest(NsByKernel(run), Change::Kind::kKernel, 0.5, &changes);
  AddLargest(NsByModule(run), Change::Kind::kModule, 0.5, &changes);
  AddLargest(NsByLine(run), Change::Kind::kLine, 0, &changes);
  return changes;
}

}  // namespace ranktap::collector
