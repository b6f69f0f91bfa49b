#include "collector/facts/hang/job_calls.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "collector/facts/gloo_calls.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/group_calls.h"

namespace ranktap::collector {
namespace {

bool IsDefault(const ProcessGroup& group) { return group.description == "default_pg"; }

bool HasStacks(const Trace& trace) {
  return std::ranges::any_of(GroupCallsOf(trace).list,
                             [](const GroupCall& call) { return call.stack != 0; });
}

// A capture whose calls of gloo can be numbered: from its first event on, with none missing.
bool IsCountable(const Trace& trace) {
  const auto lost = [](const Writer& writer) {
    return proto::Total(writer.lost) + proto::Total(writer.declared) > 0;
  };
  return trace.is_ours() && trace.gaps.empty() && std::ranges::none_of(trace.writers, lost) &&
         std::ranges::any_of(trace.process_groups, IsOfGloo);
}

// By rank, the file that counts.
std::map<uint32_t, const Trace*> TracesByRank(const Run& run) {
  std::map<uint32_t, const Trace*> traces;
  for (const Trace& trace : run.traces) {
    // What a rank did last lies behind the place where its file is cut off.
    const bool is_whole =
        (GroupCallsOf(trace).is_dump || IsCountable(trace)) && trace.damage.empty();
    if (!is_whole || !trace.info.rank) continue;
    const Trace*& of_rank = traces[*trace.info.rank];
    if (of_rank == nullptr || (!HasStacks(*of_rank) && HasStacks(trace))) of_rank = &trace;
  }
  return traces;
}

class Reader {
 public:
  explicit Reader(const Run& run) : traces_(TracesByRank(run)) {
    for (const auto& [rank, trace] : traces_) {
      told_world_ = std::max(told_world_, trace->info.world_size.value_or(0));
      job_.world = std::max({job_.world, rank + 1, told_world_});
    }
  }

  JobCalls Read() {
    for (const auto& [rank, trace] : traces_) {
      for (const ProcessGroup& group : trace->process_groups) {
        if (!group.ranks.empty()) GroupOf(group, group.ranks);
      }
    }
    for (const auto& [rank, trace] : traces_) ReadRank(rank, *trace);
    for (size_t i = 0; i < job_.groups.size(); ++i) FindRanks(i);
    for (auto& [rank, calls] : job_.ranks) NamePeers(*traces_.at(rank), &calls);
    return std::move(job_);
  }

 private:
  using Key = std::tuple<std::string, std::string, std::vector<uint32_t>>;

  uint32_t GroupOf(const ProcessGroup& group, const std::vector<uint32_t>& ranks) {
    const auto [at, is_new] = groups_.try_emplace(Key(group.name, group.description, ranks),
                                                  static_cast<uint32_t>(job_.groups.size()));
    if (is_new) {
      job_.groups.push_back({group.name, group.description, group.backend, ranks, !ranks.empty()});
    }
    JobGroup& known = job_.groups[at->second];
    if (known.backend.empty()) known.backend = group.backend;
    return at->second;
  }
  // Of a group whose ranks this file does not tell: as another file tells them.
  uint32_t GroupSeenBy(uint32_t rank, const ProcessGroup& group) {
    if (!group.ranks.empty()) return GroupOf(group, group.ranks);
    for (uint32_t i = 0; i < job_.groups.size(); ++i) {
      const JobGroup& known = job_.groups[i];
      const bool is_same = known.name == group.name && known.description == group.description;
      if (is_same && std::ranges::binary_search(known.ranks, rank)) return i;
    }
    return GroupOf(group, {});
  }

  void ReadRank(uint32_t rank, const Trace& trace) {
    std::vector<uint32_t> groups;
    for (const ProcessGroup& group : trace.process_groups) {
      groups.push_back(GroupSeenBy(rank, group));
      entered_[groups.back()].insert(rank);
    }
    const auto text = [&trace](uint32_t id) { return trace.dictionary.String(id); };
    std::vector<JobCall>& calls = job_.ranks[rank];
    if (trace.is_ours()) return ReadRanges(trace, groups, &calls);
    for (const GroupCall& call : GroupCallsOf(trace).list) {
      calls.push_back({.group = groups[call.group],
                       .number = call.number,
                       .function = text(call.function),
                       .in_sizes = text(call.in_sizes),
                       .out_sizes = text(call.out_sizes),
                       .in_types = text(call.in_types),
                       .out_types = text(call.out_types),
                       .stack = text(call.stack),
                       .entered_ns = call.entered_ns,
                       .is_send = call.is_send,
                       .is_recv = call.is_recv,
                       .is_open = call.is_open});
    }
  }

  // Gloo's collectives that the agent saw: the k-th range of a group is its call number k.
  static void ReadRanges(const Trace& trace, const std::vector<uint32_t>& groups,
                         std::vector<JobCall>* calls) {
    const Ranges& ranges = trace.ranges;
    std::map<const ProcessGroup*, uint64_t> numbers;
    for (const uint32_t row : RangesIn(trace, kCommDomain)) {
      const std::string_view name = trace.dictionary.String(ranges.name[row]);
      const ProcessGroup* const group =
          GroupOfGlooRange(trace, ranges.color.At(row), ranges.category.At(row));
      if (!name.starts_with("gloo:") || group == nullptr) continue;
      const auto index = static_cast<size_t>(group - trace.process_groups.data());
      calls->push_back({.group = groups[index],
                        .number = ++numbers[group],
                        .function = name.substr(name.find(':') + 1),
                        .entered_ns = ranges.start[row] + trace.realtime_offset_ns,
                        .bytes = ranges.payload.At(row),
                        .is_open = ranges.unfinished.At(row) != 0});
    }
  }

  void FindRanks(size_t index) {
    JobGroup& group = job_.groups[index];
    if (group.has_all_ranks) return;
    group.ranks.assign(entered_[index].begin(), entered_[index].end());
    if (!IsDefault({.description = group.description})) return;
    group.ranks.resize(job_.world);
    std::iota(group.ranks.begin(), group.ranks.end(), 0u);
    group.has_all_ranks = told_world_ >= job_.world;
  }

  // Peers are numbered within the group.
  void NamePeers(const Trace& trace, std::vector<JobCall>* calls) {
    if (trace.is_ours()) return;
    for (size_t i = 0; i < calls->size(); ++i) {
      const uint32_t peer = GroupCallsOf(trace).list[i].peer;
      const std::vector<uint32_t>& ranks = job_.groups[(*calls)[i].group].ranks;
      const bool is_known = job_.groups[(*calls)[i].group].has_all_ranks;
      if (peer != 0 && is_known && peer <= ranks.size()) (*calls)[i].peer = ranks[peer - 1];
    }
  }

  std::map<uint32_t, const Trace*> traces_;
  std::map<Key, uint32_t> groups_;
  std::map<size_t, std::set<uint32_t>> entered_;  // by group
  JobCalls job_;
  uint32_t told_world_ = 0;  // ranks of the largest group that a file tells
};

}  // namespace

const JobCalls& CallsOfJob(const Run& run) {
  return run.memo.Get<JobCalls>([&run] { return Reader(run).Read(); });
}

}  // namespace ranktap::collector
