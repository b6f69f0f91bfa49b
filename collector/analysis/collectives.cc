#include "collector/analysis/collectives.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <unordered_map>

#include "collector/analysis/device_timeline.h"
#include "collector/analysis/each_trace.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

std::string Letters(std::string_view text) {
  std::string letters;
  for (const char byte : text) {
    if (std::isalpha(static_cast<unsigned char>(byte)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
    }
  }
  return letters;
}

// "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "_allgather_base", "nccl:all_reduce" -> one word.
std::string TypeOf(std::string_view name) {
  const std::string letters = Letters(name);
  for (const std::string_view type :
       {"allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "sendrecv", "barrier",
        "reduce", "gather", "scatter", "send", "recv"}) {
    if (letters.find(type) != letters.npos) return std::string(type);
  }
  return "other";
}

int64_t BytesPerElement(std::string_view dtype) {
  const std::string type = Letters(dtype);
  if (type == "double" || type == "long") return 8;
  if (type == "float" || type == "int") return 4;
  if (type == "half" || type == "bfloat" || type == "short") return 2;
  if (type == "byte" || type == "char" || type == "bool") return 1;
  return 0;
}

int64_t FullBufferBytes(const std::string& type, const Collective& call) {
  const uint64_t larger = std::max(call.in_elements, call.out_elements);
  const uint64_t elements = type == "allgather" || type == "reducescatter" ? larger
                            : call.in_elements != 0                        ? call.in_elements
                                                                           : larger;
  return elements > (uint64_t{1} << 50)
             ? 0
             : static_cast<int64_t>(elements) * BytesPerElement(call.dtype);
}

// The description on the kernel, else on the operator that launched it or one around that.
const Collective* DescriptionOf(const Trace& trace, uint32_t kernel) {
  uint32_t index = trace.kernels.collective.At(kernel);
  uint32_t op = trace.kernels.op.At(kernel);
  while (index == 0 && op != 0) {
    index = trace.operators.collective.At(op - 1);
    const uint32_t parent = trace.operators.parent[op - 1];
    op = parent == kNone ? 0 : parent + 1;
  }
  return index == 0 || index > trace.collectives.size() ? nullptr : &trace.collectives[index - 1];
}

// A collective as one rank ran it.
struct Call {
  CollectiveRun as;  // without members
  std::string key;   // equal: the same group on all ranks that say so
  uint64_t sequence = 0;
  CollectiveMember member;
};

// What is the same for all calls of one description, or of one kernel on one stream.
void Identify(const Run& run, uint32_t t, const DeviceSpan& span, const Collective* described,
              Call* call) {
  const Trace& trace = run.traces[t];
  CollectiveRun& as = call->as;
  as.type =
      TypeOf(described != nullptr && !described->name.empty() ? std::string_view(described->name)
                                                              : trace.dictionary.String(span.name));
  std::string& key = call->key;
  if (described != nullptr && !(described->group.empty() && described->group_ranks.empty())) {
    const std::string& description = described->group_description;
    as.group = description.empty() || description == "undefined" ? "group " + described->group
                                                                 : description;
    as.group_size = described->group_size;
    as.bytes = FullBufferBytes(as.type, *described);
    key = described->group + "|" + described->group_ranks;
    // One name without its members may be a different group on each rank.
    if (described->group_ranks.empty() && described->group_size != 0 &&
        trace.info.world_size.value_or(described->group_size) != described->group_size) {
      key += "|" + std::to_string(t);
    }
  } else {
    as.group = "stream " + std::to_string(span.stream);
    key =
        as.group + "|" + (run.traces.size() > 1 ? "" : std::to_string(span.device) + "|") + as.type;
  }
  const bool is_pair = as.type == "send" || as.type == "recv" || as.type == "sendrecv";
  if (is_pair) key += "|" + std::to_string(t);
}

std::vector<Call> CallsOf(const Run& run, uint32_t t) {
  const Trace& trace = run.traces[t];
  std::vector<Call> calls;
  std::unordered_map<uint64_t, Call> undescribed;  // by stream and kernel
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    if (span.kind != WorkKind::kCommunication) continue;
    const Collective* const described = DescriptionOf(trace, span.row);
    if (described != nullptr) {
      Identify(run, t, span, described, &calls.emplace_back());
      calls.back().sequence = described->sequence;
    } else {
      const auto [known, is_new] =
          undescribed.try_emplace(uint64_t{span.stream} << 32 | (span.name ^ span.device << 24));
      if (is_new) Identify(run, t, span, nullptr, &known->second);
      calls.push_back(known->second);
    }
    calls.back().member = {t, span.row, span.start, span.end};
  }
  return calls;
}

class Matcher {
 public:
  void Add(std::vector<Call> calls) {
    std::unordered_map<uint32_t, uint64_t> counts;  // by key
    for (Call& call : calls) {
      const uint32_t key = Number(call.key);
      const uint64_t ordinal = counts[key]++;
      const uint64_t number = call.sequence != 0 ? call.sequence : ordinal;
      CollectiveRun* into = &Find(key, number);
      // A sequence number names one call, which may run several kernels.
      if (!into->members.empty() && into->members.back().trace == call.member.trace) {
        into = &Find(Number(call.key + "|again"), ordinal);
      }
      if (into->members.empty()) *into = std::move(call.as);
      into->members.push_back(call.member);
    }
  }
  std::vector<CollectiveRun> Take() {
    // Rows of pointers first: a collective is ten words.
    std::vector<uint32_t> order(list_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
      return list_[a].members[0].start < list_[b].members[0].start;
    });
    std::vector<CollectiveRun> sorted;
    sorted.reserve(order.size());
    for (const uint32_t i : order) sorted.push_back(std::move(list_[i]));
    return sorted;
  }

 private:
  uint32_t Number(const std::string& key) {
    return keys_.try_emplace(key, static_cast<uint32_t>(keys_.size())).first->second;
  }
  CollectiveRun& Find(uint32_t key, uint64_t number) {
    std::unordered_map<uint64_t, size_t>& of_key = by_number_[key];
    const auto [at, is_new] = of_key.try_emplace(number, list_.size());
    if (is_new) list_.emplace_back();
    return list_[at->second];
  }

  std::unordered_map<std::string, uint32_t> keys_;
  std::unordered_map<uint32_t, std::unordered_map<uint64_t, size_t>> by_number_;
  std::vector<CollectiveRun> list_;
};

// The name of the only gloo group of this size, else what is known of it.
std::string HostGroupName(const Trace& trace, uint32_t size) {
  const ProcessGroup* of_size = nullptr;
  for (const ProcessGroup& group : trace.process_groups) {
    if (group.size != size || group.backend.find("gloo") == group.backend.npos) continue;
    if (of_size != nullptr) return "gloo group of " + std::to_string(size);
    of_size = &group;
  }
  if (of_size == nullptr) return "gloo group of " + std::to_string(size);
  const std::string& description = of_size->description;
  return description.empty() || description == "undefined" ? "group " + of_size->name : description;
}

// What gloo ran: the agent's ranges (proto::kCollectivePayload).
std::vector<Call> HostCallsOf(const Run& run, uint32_t t) {
  const Trace& trace = run.traces[t];
  const Ranges& ranges = trace.ranges;
  std::vector<Call> calls;
  std::map<std::pair<uint32_t, uint32_t>, size_t>
      contexts;  // by size and context: which of that size
  std::map<uint32_t, size_t> of_size;
  for (const uint32_t row : RangesIn(trace, kCommDomain)) {
    const uint32_t size = ranges.category.At(row);
    const auto [at, is_new] = contexts.try_emplace({size, ranges.color.At(row)}, of_size[size]);
    if (is_new) ++of_size[size];
    Call& call = calls.emplace_back();
    call.as.type = TypeOf(trace.dictionary.String(ranges.name[row]));
    call.as.group = HostGroupName(trace, size);
    call.as.group_size = size;
    call.as.bytes =
        static_cast<int64_t>(std::min<uint64_t>(ranges.payload.At(row), uint64_t{1} << 50));
    call.key = "host|" + std::to_string(size) + "|" + std::to_string(at->second);
    call.member = {t, kNone, ranges.start[row], ranges.end[row]};
  }
  return calls;
}

template <typename CallsOfTrace>
std::vector<CollectiveRun> Match(const Run& run, CallsOfTrace&& calls_of) {
  std::vector<std::vector<Call>> calls(run.traces.size());
  ForEachTraceAtOnce(run, [&](uint32_t t) { calls[t] = calls_of(run, t); });
  Matcher matcher;
  for (std::vector<Call>& of_trace : calls) matcher.Add(std::move(of_trace));
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

double BusFactor(const std::string& type, uint32_t n) {
  if (n < 2) return 1;
  const double others = static_cast<double>(n - 1) / n;
  if (type == "allreduce") return 2 * others;
  for (const char* const name : {"allgather", "reducescatter", "alltoall", "gather", "scatter"}) {
    if (type == name) return others;
  }
  return 1;
}

}  // namespace ranktap::collector
