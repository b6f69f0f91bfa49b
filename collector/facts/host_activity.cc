#include "collector/facts/host_activity.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "collector/facts/gloo_calls.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// Whether this thread's waits and saves hold the training: it makes steps, or nobody does.
class TrainingThreads {
 public:
  explicit TrainingThreads(const Trace& trace) {
    for (const uint32_t row : RangesIn(trace, kStepDomain))
      writers_.insert(trace.ranges.writer[row]);
  }
  bool Have(uint16_t writer) const { return writers_.empty() || writers_.contains(writer); }

 private:
  std::set<uint16_t> writers_;
};

bool LoadsData(std::string_view name) {
  for (const std::string_view part : {"DataLoader", "dataloader", "data_loader", "data loading",
                                      "get_batch", "next_batch", "load_batch", "__next__"}) {
    if (name.find(part) != name.npos) return true;
  }
  return false;
}

template <typename Named>
void AddLoading(const Trace& trace, const Named& table, std::vector<Interval>* set) {
  const TrainingThreads threads(trace);
  std::vector<int8_t> loads(trace.dictionary.strings() + 1, -1);
  for (size_t i = 0; i < table.size(); ++i) {
    int8_t& known = loads[std::min<size_t>(table.name[i], loads.size() - 1)];
    if (known < 0) known = LoadsData(trace.dictionary.String(table.name[i])) ? 1 : 0;
    if (known == 1 && threads.Have(table.writer[i]))
      set->emplace_back(table.start[i], table.end[i]);
  }
}

// Cut at the start of the last that began before their ends; `spans` by start.
std::vector<CollectiveMember> Exposed(std::vector<CollectiveMember> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const CollectiveMember& a, const CollectiveMember& b) { return a.start < b.start; });
  for (size_t i = 0, last = 0; i < spans.size(); ++i) {
    while (last + 1 < spans.size() && spans[last + 1].start < spans[i].end) ++last;
    spans[i].start = std::max(spans[i].start, spans[std::max(i, last)].start);
  }
  return spans;
}

// Of several groups nothing says which a call is of, so that no rank's is matched with another's
// (MatchHostCollectives). The host is in a collective all the same.
void AddUnmatchedGloo(const Run& run, uint32_t t, std::vector<CollectiveMember>* calls) {
  const Trace& trace = run.traces[t];
  if (trace.is_ours()) return;
  const Operators& ops = trace.operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!trace.dictionary.String(ops.name[i]).starts_with("gloo:")) continue;
    calls->push_back({t, kNone, ops.start[i], ops.end[i]});
  }
}

}  // namespace

std::vector<uint32_t> PhasesOfSteps(const Trace& trace) {
  const TrainingThreads threads(trace);
  std::vector<uint32_t> rows = RangesIn(trace, kPhaseDomain);
  std::erase_if(rows, [&](uint32_t row) {
    const std::string_view name = trace.dictionary.String(trace.ranges.name[row]);
    const bool may_be_beside = name == proto::kDataPhase || name == proto::kCheckpointPhase;
    return may_be_beside && !threads.Have(trace.ranges.writer[row]);
  });
  return rows;
}

std::vector<Interval> PhaseIntervals(const Trace& trace, std::string_view phase) {
  std::vector<Interval> set;
  for (const uint32_t row : PhasesOfSteps(trace)) {
    if (trace.dictionary.String(trace.ranges.name[row]) != phase) continue;
    set.emplace_back(trace.ranges.start[row], trace.ranges.end[row]);
  }
  return Merged(std::move(set));
}

std::vector<Interval> OperatorsNamed(const Trace& trace, std::string_view beginning) {
  std::vector<Interval> set;
  const Operators& ops = trace.operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (trace.dictionary.String(ops.name[i]).starts_with(beginning)) {
      set.emplace_back(ops.start[i], ops.end[i]);
    }
  }
  return Merged(std::move(set));
}

std::vector<Interval> ForwardPasses(const Trace& trace) {
  std::vector<Interval> set;
  for (const uint32_t row : RangesIn(trace, kModuleDomain)) {
    if (trace.ranges.depth[row] != 0) continue;
    set.emplace_back(trace.ranges.start[row], trace.ranges.end[row]);
  }
  return Merged(std::move(set));
}

std::vector<Interval> Messages(const Trace& trace, std::string_view kind) {
  std::vector<Interval> set = OperatorsNamed(trace, kind);
  for (size_t row = 0; row < trace.ranges.size(); ++row) {
    if (trace.dictionary.String(trace.ranges.name[row]) != kind) continue;
    set.emplace_back(trace.ranges.start[row], trace.ranges.end[row]);
  }
  return Merged(std::move(set));
}

std::vector<HostCommunication> CommunicationOfHosts(const Run& run) {
  std::vector<HostCommunication> of(run.traces.size());
  std::vector<std::vector<CollectiveMember>> waits(of.size()), transfers(of.size());
  for (const CollectiveRun& collective : MatchHostCollectives(run)) {
    const int64_t transfer = collective.shortest();
    for (CollectiveMember member : collective.members) {
      CollectiveMember wait = member;
      wait.end = member.start = member.end - transfer;
      if (wait.length() > 0) waits[wait.trace].push_back(wait);
      transfers[member.trace].push_back(member);
    }
  }
  const bool of_several_groups = HasSeveralProfiledGlooGroups(run);
  for (size_t t = 0; t < of.size(); ++t) {
    if (of_several_groups) AddUnmatchedGloo(run, static_cast<uint32_t>(t), &transfers[t]);
    for (const CollectiveMember& span : Exposed(std::move(waits[t]))) {
      of[t].waits.emplace_back(span.start, span.end);
    }
    for (const CollectiveMember& span : Exposed(std::move(transfers[t]))) {
      of[t].transfers.emplace_back(span.start, span.end);
    }
    of[t].waits = Merged(std::move(of[t].waits));
    of[t].transfers = Merged(std::move(of[t].transfers));
  }
  return of;
}

std::vector<Interval> GraphCaptures(const Trace& trace) {
  enum class Call : uint8_t { kOther, kBegin, kEnd, kInstantiate };
  std::vector<Call> calls(trace.dictionary.apis() + 1, Call::kOther);
  bool any = false;
  for (uint32_t id = 0; id < trace.dictionary.apis(); ++id) {
    const std::string_view name = trace.dictionary.Api(id).name;
    if (name.find("StreamBeginCapture") != name.npos) calls[id] = Call::kBegin;
    if (name.find("StreamEndCapture") != name.npos) calls[id] = Call::kEnd;
    if (name.find("GraphInstantiate") != name.npos) calls[id] = Call::kInstantiate;
    any = any || calls[id] != Call::kOther;
  }
  if (!any) return {};
  std::vector<Interval> set;
  std::map<uint16_t, int64_t> begun;  // by thread
  const ApiCalls& api_calls = trace.api_calls;
  for (size_t i = 0; i < api_calls.size(); ++i) {
    const Call call = calls[std::min<size_t>(api_calls.api[i], calls.size() - 1)];
    if (call == Call::kOther) continue;
    const uint16_t thread = api_calls.writer[i];
    if (call == Call::kInstantiate) set.emplace_back(api_calls.start[i], api_calls.end[i]);
    // A call of the runtime and the driver's below it are one capture.
    if (call == Call::kBegin) begun.try_emplace(thread, api_calls.start[i]);
    if (call == Call::kEnd && begun.contains(thread)) {
      set.emplace_back(begun[thread], api_calls.end[i]);
      begun.erase(thread);
    }
  }
  return Merged(std::move(set));
}

std::vector<Interval> DataLoading(const Trace& trace) {
  std::vector<Interval> set = PhaseIntervals(trace, proto::kDataPhase);
  AddLoading(trace, trace.ranges, &set);
  AddLoading(trace, trace.operators, &set);
  AddLoading(trace, trace.python_calls, &set);
  return Merged(std::move(set));
}

}  // namespace ranktap::collector
