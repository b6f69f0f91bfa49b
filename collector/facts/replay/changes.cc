#include "collector/facts/replay/changes.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/replay/changed_lines.h"
#include "collector/facts/replay/changed_modules.h"
#include "collector/facts/replay/host_pieces.h"
#include "collector/facts/replay/step_places.h"
#include "collector/facts/steps.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

bool IsOfDevice(const TimedGraph& graph, uint32_t node) {
  const NodeKind kind = graph.kind[node];
  return (kind == NodeKind::kWork || kind == NodeKind::kTransfer) && graph.row[node] != kNone;
}
DeviceSpan SpanOf(const Run& run, const TimedGraph& graph, uint32_t node) {
  return DeviceTimeline(run.traces[graph.trace[node]])[graph.row[node]];
}

std::optional<Failure> ChangeKernels(const Run& run, const Change& change, GraphEdit* edit) {
  const TimedGraph& graph = JobGraphOf(run).graph;
  std::map<std::pair<uint32_t, uint32_t>, bool> known;  // by trace and name
  bool any = false, has_device = false;
  for (uint32_t node = 0; node < graph.size(); ++node) {
    if (!IsOfDevice(graph, node)) continue;
    has_device = true;
    const Trace& trace = run.traces[graph.trace[node]];
    const DeviceSpan& span = SpanOf(run, graph, node);
    const auto matches = [&] {
      const std::string name = NameOf(trace, span);
      const auto fits = [&](const std::string& word) {
        return ::fnmatch(change.what.c_str(), word.c_str(), 0) == 0;
      };
      return change.what == name || fits(name) || fits(BaseKernelName(name)) ||
             fits(TellingKernelName(name)) || fits(std::string(trace.dictionary.String(span.name)));
    };
    bool is_wanted = false;
    if (span.name == 0) {
      is_wanted = matches();
    } else {
      const auto [at, is_new] = known.try_emplace({graph.trace[node], span.name}, false);
      if (is_new) at->second = matches();
      is_wanted = at->second;
    }
    if (is_wanted) edit->share[node] *= change.factor;
    any |= is_wanted;
  }
  if (any) return std::nullopt;
  if (!has_device) return Failure{"no rank used a device, so that it has no kernels"};
  return Failure{fmt::format("no kernel matches '{}': report RUN kernels names them", change.what)};
}

std::optional<Failure> ChangeComm(const Run& run, const Change& change, GraphEdit* edit) {
  const TimedGraph& graph = JobGraphOf(run).graph;
  bool any = false;
  for (uint32_t node = 0; node < graph.size(); ++node) {
    const bool is_alone = graph.kind[node] == NodeKind::kWork && IsOfDevice(graph, node) &&
                          SpanOf(run, graph, node).kind == WorkKind::kCommunication;
    if (graph.kind[node] != NodeKind::kTransfer && !is_alone) continue;
    edit->share[node] *= change.factor;
    any = true;
  }
  if (any) return std::nullopt;
  const auto communicates = [](const RankWaterfall& of) {
    return of.mean[static_cast<size_t>(Cause::kTransfer)] +
               of.mean[static_cast<size_t>(Cause::kWait)] >
           0;
  };
  return Failure{std::ranges::none_of(ComputeWaterfalls(run), communicates)
                     ? "the run has no collectives"
                     : "one rank's file does not tell what collectives moved from what they "
                       "waited for: name the files of all ranks"};
}

std::optional<Failure> ChangeData(const Run& run, const Change& change, GraphEdit* edit) {
  const JobGraph& job = JobGraphOf(run);
  bool any = false;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    HostPieces pieces;
    for (const auto& [begin, end] : DataLoading(run.traces[t])) pieces.push_back({begin, end, 1});
    any |= !pieces.empty();
    ScaleHost(run, t, pieces, change.factor, edit);
  }
  for (uint32_t node = 0; node < job.graph.size(); ++node) {
    if (job.graph.kind[node] == NodeKind::kBatch) edit->share[node] *= change.factor;
  }
  if (any) return std::nullopt;
  return Failure{"no rank was seen in a DataLoader"};
}

// A batch is then made after the one so many before.
std::optional<Failure> ChangeWorkers(const Run& run, const Change& change, GraphEdit* edit) {
  const JobGraph& job = JobGraphOf(run);
  const TimedGraph& graph = job.graph;
  const auto workers = static_cast<size_t>(change.factor);
  bool any = false;
  for (const std::vector<uint32_t>& batches : job.batches) {
    for (size_t number = 0; number < batches.size(); ++number) {
      const uint32_t before = number < workers ? kNone : batches[number - workers];
      for (uint32_t e = graph.first_edge[batches[number]];
           e < graph.first_edge[batches[number] + 1]; ++e) {
        edit->without[e] = graph.from[e] != before;
      }
      any = true;
    }
  }
  if (any) return std::nullopt;
  return Failure{"no step waited for the workers of a DataLoader that were busy"};
}

double MedianOf(std::vector<double> values) { return Median(std::move(values)); }

// visit(node, thing) for a rank's work on devices: the name, and which of that name in its step it
// is, so that the first layer of a rank is compared with the first layer of another.
template <typename Visit>
void ForEachWork(const Run& run, uint32_t t, Visit&& visit) {
  const TimedGraph& graph = JobGraphOf(run).graph;
  const Trace& trace = run.traces[t];
  StepFinder finder(trace, DetectSteps(trace));
  std::map<std::string, size_t> seen;
  int64_t step = -1;
  for (uint32_t node = 0; node < graph.size(); ++node) {
    if (graph.trace[node] != t || graph.kind[node] != NodeKind::kWork) continue;
    if (!IsOfDevice(graph, node)) continue;
    const DeviceSpan& span = SpanOf(run, graph, node);
    if (const int64_t now = finder.IndexOf(span); now != step) {
      step = now;
      seen.clear();
    }
    const std::string name = NameOf(trace, span);
    visit(node, fmt::format("work {} {}", seen[name]++, name));
  }
}

// What each rank takes for each thing, a step: by place of its thread, on devices, for batches.
using Takes = std::map<std::string, double>;
Takes TakesOf(const Run& run, uint32_t t) {
  const JobGraph& job = JobGraphOf(run);
  const StepPlaces& places = StepPlacesOf(run);
  Takes takes;
  for (uint32_t place = 0; place < places.names.size(); ++place) {
    takes["host " + places.names[place]] = static_cast<double>(places.ns[t][place]);
  }
  const auto steps = static_cast<double>(std::max<size_t>(places.counted[t], 1));
  for (uint32_t node = 0; node < job.graph.size(); ++node) {
    if (job.graph.trace[node] != t) continue;
    const auto ns = static_cast<double>(job.graph.own[node]) / steps;
    if (job.graph.kind[node] == NodeKind::kBatch) takes["batches"] += ns;
  }
  ForEachWork(run, t, [&](uint32_t node, const std::string& thing) {
    takes[thing] += static_cast<double>(job.graph.own[node]) / steps;
  });
  return takes;
}

std::optional<Failure> ChangeRank(const Run& run, const Change& change, GraphEdit* edit) {
  uint32_t rank = 0;
  const char* const end = change.what.data() + change.what.size();
  const bool is_number = std::from_chars(change.what.data(), end, rank).ptr == end;
  uint32_t t = 0;
  while (t < run.traces.size() && run.traces[t].info.rank != rank) ++t;
  if (!is_number || t == run.traces.size()) {
    return Failure{fmt::format("the run has no rank {}", change.what)};
  }
  if (run.traces.size() < 2) return Failure{"the run has no other rank to compare with"};
  std::vector<Takes> all;
  for (uint32_t other = 0; other < run.traces.size(); ++other) all.push_back(TakesOf(run, other));
  std::map<std::string, double> factors;
  for (const auto& [thing, ns] : all[t]) {
    std::vector<double> others;
    for (uint32_t other = 0; other < all.size(); ++other) {
      if (other == t) continue;
      const auto found = all[other].find(thing);
      others.push_back(found == all[other].end() ? 0 : found->second);
    }
    if (ns > 0) factors[thing] = MedianOf(std::move(others)) / ns;
  }
  const JobGraph& job = JobGraphOf(run);
  const StepPlaces& places = StepPlacesOf(run);
  HostPieces pieces;
  for (const PlacedTime& piece : places.pieces[t]) {
    const auto factor = factors.find("host " + places.names[piece.place]);
    if (factor != factors.end()) pieces.push_back({piece.begin, piece.end, 1 - factor->second});
  }
  ScaleHost(run, t, pieces, 0, edit);
  for (uint32_t node = 0; node < job.graph.size(); ++node) {
    if (job.graph.trace[node] != t) continue;
    if (job.graph.kind[node] == NodeKind::kBatch) edit->share[node] *= factors["batches"];
  }
  ForEachWork(run, t, [&](uint32_t node, const std::string& thing) {
    if (const auto factor = factors.find(thing); factor != factors.end()) {
      edit->share[node] *= factor->second;
    }
  });
  return std::nullopt;
}

}  // namespace

std::string Describe(const Change& change) {
  switch (change.kind) {
    case Change::Kind::kKernel:
      return fmt::format("kernels {} x{:g}", change.what, change.factor);
    case Change::Kind::kModule:
      return fmt::format("module {} x{:g}", change.what, change.factor);
    case Change::Kind::kHost:
      return fmt::format("the host's time x{:g}", change.factor);
    case Change::Kind::kLine:
      return change.factor == 0 ? fmt::format("no {}", change.what)
                                : fmt::format("{} x{:g}", change.what, change.factor);
    case Change::Kind::kData:
      return change.factor == 0 ? "no DataLoader wait"
                                : fmt::format("making batches x{:g}", change.factor);
    case Change::Kind::kWorkers:
      return fmt::format("{:g} workers of the DataLoader", change.factor);
    case Change::Kind::kComm:
      return fmt::format("transfers between ranks x{:g}", change.factor);
    case Change::Kind::kRank:
      break;
  }
  return fmt::format("rank {} as the others", change.what);
}

std::optional<Failure> ApplyChange(const Run& run, const Change& change, Doubt doubt,
                                   GraphEdit* edit) {
  switch (change.kind) {
    case Change::Kind::kKernel:
      return ChangeKernels(run, change, edit);
    case Change::Kind::kModule:
      return ChangeModule(run, change, doubt, edit);
    case Change::Kind::kHost: {
      const TimedGraph& graph = JobGraphOf(run).graph;
      for (uint32_t node = 0; node < graph.size(); ++node) {
        if (graph.kind[node] == NodeKind::kHost) edit->share[node] *= change.factor;
      }
      return std::nullopt;
    }
    case Change::Kind::kLine:
      return ChangeLine(run, change, edit);
    case Change::Kind::kData:
      return ChangeData(run, change, edit);
    case Change::Kind::kWorkers:
      return ChangeWorkers(run, change, edit);
    case Change::Kind::kComm:
      return ChangeComm(run, change, edit);
    case Change::Kind::kRank:
      return ChangeRank(run, change, edit);
  }
  return std::nullopt;
}

}  // namespace ranktap::collector
