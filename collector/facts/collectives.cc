#include "collector/facts/collectives.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "collector/facts/collective_types.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/gloo_calls.h"
#include "collector/facts/numbers/merge_runs.h"
#include "collector/facts/operators/op_tensors.h"
#include "collector/facts/rank_windows.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// Calls of one description, or of one kernel on one stream.
struct Identity {
  CollectiveRun as;  // without members
  std::string key;   // equal: the same group on all ranks that say so
  bool has_group = true;
  uint32_t device = 0, stream = 0;  // where it has none
  size_t sharers = 1;               // traces whose calls it may meet, to reserve room for
  uint64_t sequence = 0;            // 0: its calls are counted
};
// A collective as one rank ran it. 64 ranks have millions, all at once.
struct Call {
  uint32_t identity = 0;  // index into Calls::identities
  uint32_t work = 0;      // as CollectiveMember's, and so its times
  int64_t start = 0, end = 0;
};
struct Calls {
  uint32_t trace = 0;
  std::vector<Identity> identities;
  std::vector<Call> list;

  CollectiveMember MemberOf(const Call& call) const {
    return {trace, call.work, call.start, call.end};
  }
};

Identity Identify(const Run& run, uint32_t t, const DeviceSpan& span, const Collective* described) {
  const Trace& trace = run.traces[t];
  Identity identity;
  CollectiveRun& as = identity.as;
  CollectiveName name;
  name.type = TypeOfCollective(trace, span);
  std::string& key = identity.key;
  if (NamesGroup(described)) {
    const std::string& description = described->group_description;
    name.group = description.empty() || description == "undefined"
                     ? fmt::format("group {}", described->group)
                     : description;
    as.group_size = described->group_size;
    as.bytes = FullBufferBytes(name.type, *described);
    key = fmt::format("{}|{}", described->group, described->group_ranks);
    // One name without its members may be a different group on each rank.
    if (described->group_ranks.empty() && described->group_size != 0 &&
        trace.info.world_size.value_or(described->group_size) != described->group_size) {
      key += fmt::format("|{}", t);
    }
  } else {
    // Streams have numbers of their own in each process: of several, MatchByOrder decides.
    const bool is_one = run.traces.size() == 1;
    name.group = is_one ? fmt::format("stream {}", span.stream) : "not recorded";
    key = is_one ? fmt::format("{}|{}|{}", name.group, span.device, name.type)
                 : fmt::format("not recorded|{}", name.type);
    identity.has_group = false;
    identity.device = span.device;
    identity.stream = span.stream;
  }
  const bool is_pair = name.type == "send" || name.type == "recv" || name.type == "sendrecv";
  if (is_pair) key += fmt::format("|{}", t);
  if (!is_pair) identity.sharers = std::min<size_t>(as.group_size, run.traces.size());
  // Calls without a number are counted within a window.
  if (described == nullptr || described->sequence == 0) {
    if (const uint32_t window = WindowOf(run, t); window > 0) {
      key += fmt::format("|window {}", window);
    }
  }
  as.name = std::make_shared<const CollectiveName>(std::move(name));
  return identity;
}

Calls CallsOf(const Run& run, uint32_t t) {
  const Trace& trace = run.traces[t];
  Calls calls{.trace = t};
  // By device, stream, kernel and the operator that says what it is.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, std::string_view>, uint32_t> undescribed;
  std::unordered_map<const Collective*, uint32_t> by_description;
  const size_t count = CommunicationOf(trace);
  if (count == 0) return calls;
  calls.list.reserve(count);
  const auto identity_of = [&](const DeviceSpan& span, const Collective* described) {
    const auto next = static_cast<uint32_t>(calls.identities.size());
    const uint32_t identity = described != nullptr
                                  ? by_description.try_emplace(described, next).first->second
                                  : undescribed
                                        .try_emplace({span.device, span.stream, span.name,
                                                      OperatorThatCommunicates(trace, span.row)},
                                                     next)
                                        .first->second;
    if (identity == next) {
      calls.identities.push_back(Identify(run, t, span, described));
      calls.identities.back().sequence = described == nullptr ? 0 : described->sequence;
    }
    return identity;
  };
  DeviceTimeline(trace).ForEachOfKind(
      WorkKind::kCommunication, [&](uint32_t work, const DeviceSpan& span) {
        const uint32_t identity = identity_of(span, DescriptionOf(trace, span.row));
        calls.list.push_back({identity, work, span.start, span.end});
      });
  return calls;
}

class Matcher {
 public:
  explicit Matcher(size_t calls) { list_.reserve(calls); }  // unused ones cost address space
  // Adds one trace's calls.
  void Add(const Calls& calls) {
    std::vector<uint32_t> numbers;  // of the keys, by identity
    for (const Identity& identity : calls.identities) numbers.push_back(Number(identity.key));
    std::vector<uint64_t> counts(keys_.size());  // by key
    list_.reserve(std::max(list_.capacity(), calls.list.size()));
    for (const Call& call : calls.list) {
      const Identity& identity = calls.identities[call.identity];
      const uint32_t key = numbers[call.identity];
      const uint64_t ordinal = counts[key]++;
      CollectiveRun* into = &Find(key, identity.sequence != 0 ? identity.sequence : ordinal);
      // A sequence number names one call, which may run several kernels.
      if (!into->members.empty() && into->members.back().trace == calls.trace) {
        into = &Find(Number(identity.key + "|again"), ordinal);
      }
      if (into->members.empty()) {
        *into = identity.as;
      } else if (into->members.size() == 1) {  // not before: calls that nobody shares are many
        into->members.reserve(identity.sharers);
      }
      into->members.push_back(calls.MemberOf(call));
    }
  }
  // Oldest first.
  std::vector<CollectiveRun> Take() {
    std::vector<std::pair<int64_t, uint32_t>> order;  // start, row
    order.reserve(list_.size());
    for (const CollectiveRun& run : list_) order.emplace_back(run.members[0].start, order.size());
    if (std::ranges::is_sorted(order)) return std::move(list_);
    MergeRuns(&order);  // calls that no other rank shares are in order of each rank
    std::vector<CollectiveRun> sorted;
    sorted.reserve(list_.size());
    for (const auto& [start, row] : order) sorted.push_back(std::move(list_[row]));
    return sorted;
  }

 private:
  // Rows of list_ of one key. Calls that carry no number count up from 0.
  struct Rows {
    std::vector<size_t> counted;
    std::unordered_map<uint64_t, size_t> numbered;
  };

  uint32_t Number(const std::string& key) {
    return keys_.try_emplace(key, static_cast<uint32_t>(keys_.size())).first->second;
  }
  CollectiveRun& Find(uint32_t key, uint64_t number) {
    if (key >= rows_.size()) rows_.resize(key + 1);
    Rows& rows = rows_[key];
    if (number < rows.counted.size()) return list_[rows.counted[number]];
    if (const auto found = rows.numbered.find(number); found != rows.numbered.end()) {
      return list_[found->second];
    }
    if (number == rows.counted.size()) {
      rows.counted.push_back(list_.size());
    } else {
      rows.numbered.emplace(number, list_.size());
    }
    return list_.emplace_back();
  }

  std::unordered_map<std::string, uint32_t> keys_;
  std::vector<Rows> rows_;  // by key
  std::vector<CollectiveRun> list_;
};

// What is known of a group of gloo's.
std::string HostGroupName(const ProcessGroup* group, uint32_t size) {
  if (group != nullptr) return GlooGroupName(*group);
  return size == 0 ? "gloo" : fmt::format("gloo group of {}", size);
}

// Tells apart groups of one size that have other members. One name for ranks whose members are not
// known may be several groups, so that each is alone.
std::string HostGroupKey(const Trace& trace, uint32_t t, uint32_t size) {
  if (trace.info.world_size.value_or(size) == size) return "";
  const ProcessGroup* of_size = nullptr;
  size_t groups = 0;
  for (const ProcessGroup& group : trace.process_groups) {
    if (group.size != size || !IsOfGloo(group)) continue;
    of_size = &group;
    ++groups;
  }
  if (groups != 1 || of_size->ranks.empty()) return fmt::format("|only {}", t);
  return fmt::format("|{}", fmt::join(of_size->ranks, ","));
}

// Ranges of gloo that torch.profiler saw: "gloo:all_reduce" on gloo's threads, with its inputs and
// without its group. So nothing where gloo has several.
Calls ProfiledGlooOf(const Run& run, uint32_t t) {
  const Trace& trace = run.traces[t];
  Calls calls{.trace = t};
  if (HasSeveralProfiledGlooGroups(run)) return calls;
  uint32_t size = trace.info.world_size.value_or(0);
  for (const ProcessGroup& group : trace.process_groups) {
    if (IsOfGloo(group)) size = group.size;
  }
  const std::string window = fmt::format("|window {}", WindowOf(run, t));
  const Operators& ops = trace.operators;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    const std::string_view name = trace.dictionary.String(ops.name[op]);
    if (!name.starts_with("gloo:")) continue;
    Identity& identity = calls.identities.emplace_back();
    CollectiveRun& as = identity.as;
    as.name = std::make_shared<const CollectiveName>(CollectiveName{
        CollectiveTypeOf(name), HostGroupName(GroupOfGlooRange(trace, 0, size), size)});
    as.group_size = size;
    as.bytes = TensorBytes(trace, ops.shapes.At(op), ops.types.At(op));
    const bool gathers = as.type() == "allgather" || as.type() == "gather";
    constexpr int64_t kMost = int64_t{1} << 50;  // more is no file's of a real job: not known
    if (gathers) as.bytes = size == 0 || as.bytes > kMost / size ? 0 : as.bytes * size;
    const bool is_pair = as.type() == "send" || as.type() == "recv";
    // Counted by type and size: a window may begin amid calls.
    identity.key = fmt::format("gloo|{}|{}|{}{}{}", size, as.type(), as.bytes, window,
                               is_pair ? fmt::format("|{}", t) : "");
    calls.list.push_back(
        {static_cast<uint32_t>(calls.list.size()), kNone, ops.start[op], ops.end[op]});
  }
  return calls;
}

// Gloo's collectives as the agent's ranges (proto::kCollectivePayload).
Calls HostCallsOf(const Run& run, uint32_t t) {
  const Trace& trace = run.traces[t];
  if (!trace.is_ours()) return ProfiledGlooOf(run, t);
  const Ranges& ranges = trace.ranges;
  Calls calls{.trace = t};
  std::map<std::pair<uint32_t, uint32_t>, size_t>
      contexts;  // by size and context: which of that size
  std::map<uint32_t, size_t> of_size;
  for (const uint32_t row : RangesIn(trace, kCommDomain)) {
    const uint32_t size = ranges.category.At(row);
    const auto [at, is_new] = contexts.try_emplace({size, ranges.color.At(row)}, of_size[size]);
    if (is_new) ++of_size[size];
    Identity& identity = calls.identities.emplace_back();
    const ProcessGroup* const group = GroupOfGlooRange(trace, ranges.color.At(row), size);
    identity.as.name = std::make_shared<const CollectiveName>(CollectiveName{
        CollectiveTypeOf(trace.dictionary.String(ranges.name[row])), HostGroupName(group, size)});
    identity.as.group_size = size;
    identity.as.bytes =
        static_cast<int64_t>(std::min<uint64_t>(ranges.payload.At(row), uint64_t{1} << 50));
    const bool is_named = IsNamedGlooContext(trace, ranges.color.At(row));
    identity.key =
        is_named ? fmt::format("group|{}|{}", group->name, fmt::join(group->ranks, ","))
                 : fmt::format("host|{}|{}{}", size, at->second, HostGroupKey(trace, t, size));
    calls.list.push_back(
        {static_cast<uint32_t>(calls.list.size()), kNone, ranges.start[row], ranges.end[row]});
  }
  return calls;
}

// The run has every rank of the job, as each of its files says.
bool HasAllRanks(const Run& run) {
  std::set<uint32_t> ranks;
  for (const Trace& trace : run.traces) {
    if (!trace.info.rank || !trace.info.world_size) return false;
    ranks.insert(*trace.info.rank);
  }
  return std::ranges::all_of(
      run.traces, [&ranks](const Trace& trace) { return *trace.info.world_size == ranks.size(); });
}

// Calls without a group are matched by their order where that can only mean one thing: all ranks of
// the job are there, each makes them on one stream, and all make as many of a type. Else each is a
// rank's own: two of 128 ranks may share no group.
void MatchByOrder(const Run& run, std::vector<Calls>* calls) {
  if (calls->size() < 2) return;
  const bool is_whole = HasAllRanks(run);
  struct Of {
    std::map<size_t, size_t> counts;  // by trace; those of other windows have none
    std::set<std::tuple<size_t, uint32_t, uint32_t>> streams;
    bool IsOneCallOfAll() const {
      return streams.size() == counts.size() &&
             std::ranges::all_of(counts, [this](const auto& of_trace) {
               return of_trace.second == counts.begin()->second;
             });
    }
  };
  std::map<std::string, Of> by_key;
  for (size_t t = 0; t < calls->size(); ++t) {
    const std::vector<Identity>& identities = (*calls)[t].identities;
    std::vector<size_t> counts(identities.size());
    for (const Call& call : (*calls)[t].list) ++counts[call.identity];
    for (size_t i = 0; i < identities.size(); ++i) {
      if (identities[i].has_group) continue;
      Of& of = by_key[identities[i].key];
      of.counts[t] += counts[i];
      of.streams.emplace(t, identities[i].device, identities[i].stream);
    }
  }
  for (size_t t = 0; t < calls->size(); ++t) {
    for (Identity& identity : (*calls)[t].identities) {
      if (identity.has_group) continue;
      const Of& of = by_key.at(identity.key);
      if (is_whole && of.IsOneCallOfAll()) {
        identity.sharers = of.counts.size();
      } else {
        identity.key += fmt::format("|{}|{}|{}", t, identity.device, identity.stream);
      }
    }
  }
}

// The calls of a rank that has nobody to share them with are by start already.
std::vector<CollectiveRun> AsTheyAre(const Calls& calls) {
  std::vector<CollectiveRun> list;
  list.reserve(calls.list.size());
  for (const Call& call : calls.list) {
    list.push_back(calls.identities[call.identity].as);
    list.back().members.assign(1, calls.MemberOf(call));
  }
  return list;
}

template <typename CallsOfTrace>
std::vector<CollectiveRun> Match(const Run& run, CallsOfTrace&& calls_of) {
  if (run.traces.size() == 1) return AsTheyAre(calls_of(run, 0));
  std::vector<Calls> calls(run.traces.size());
  ForEachTraceAtOnce(run, [&](uint32_t t) { calls[t] = calls_of(run, t); });
  MatchByOrder(run, &calls);
  size_t all = 0;
  for (const Calls& of_trace : calls) all += of_trace.list.size();
  Matcher matcher(all);
  for (Calls& of_trace : calls) matcher.Add(std::exchange(of_trace, {}));
  return matcher.Take();
}

}  // namespace

int64_t CollectiveRun::shortest() const { return members[last_arriver()].length(); }

size_t CollectiveRun::last_arriver() const {
  size_t shortest = 0;
  for (size_t i = 1; i < members.size(); ++i) {
    if (members[i].length() < members[shortest].length()) shortest = i;
  }
  return shortest;
}

const std::vector<CollectiveRun>& MatchCollectives(const Run& run) {
  return run.memo.Get<std::vector<CollectiveRun>>([&run] { return Match(run, CallsOf); });
}

const std::vector<CollectiveRun>& MatchHostCollectives(const Run& run) {
  struct OnHost {
    std::vector<CollectiveRun> list;
  };
  return run.memo.Get<OnHost>([&run] { return OnHost{Match(run, HostCallsOf)}; }).list;
}

const std::vector<CollectiveOfWork>& CollectivesByWork(const Run& run) {
  return run.memo.Get<std::vector<CollectiveOfWork>>([&run] {
    std::vector<CollectiveOfWork> by_trace(run.traces.size());
    for (uint32_t t = 0; t < by_trace.size(); ++t)
      by_trace[t].Reserve(CommunicationOf(run.traces[t]));
    for (uint32_t index = 0; const CollectiveRun& call : MatchCollectives(run)) {
      for (const CollectiveMember& member : call.members) {
        by_trace[member.trace].Add(member.work, index);
      }
      ++index;
    }
    ForEachTraceAtOnce(run, [&](uint32_t t) { by_trace[t].Sort(); });
    return by_trace;
  });
}

const std::vector<CollectiveRun>& MatchDeviceOrHostCollectives(const Run& run) {
  const std::vector<CollectiveRun>& on_device = MatchCollectives(run);
  return on_device.empty() ? MatchHostCollectives(run) : on_device;
}

}  // namespace ranktap::collector
