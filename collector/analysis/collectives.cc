#include "collector/analysis/collectives.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "collector/analysis/device_timeline.h"

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

}  // namespace

int64_t CollectiveRun::shortest() const { return members[last_arriver()].length(); }

size_t CollectiveRun::last_arriver() const {
  size_t shortest = 0;
  for (size_t i = 1; i < members.size(); ++i) {
    if (members[i].length() < members[shortest].length()) shortest = i;
  }
  return shortest;
}

std::vector<CollectiveRun> MatchCollectives(const Run& run) {
  // By group, type where no group is known, and number in it.
  std::map<std::pair<std::string, uint64_t>, CollectiveRun> matched;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    const Trace& trace = run.traces[t];
    std::map<std::string, uint64_t> counts;
    for (const DeviceSpan& span : DeviceTimeline(trace)) {
      if (span.kind != WorkKind::kCommunication) continue;
      const Collective* const call = DescriptionOf(trace, span.row);
      CollectiveRun found;
      found.type =
          TypeOf(call != nullptr && !call->name.empty() ? std::string_view(call->name)
                                                        : trace.dictionary.String(span.name));
      std::string key;
      if (call != nullptr && !(call->group.empty() && call->group_ranks.empty())) {
        found.group = call->group_description.empty() || call->group_description == "undefined"
                          ? "group " + call->group
                          : call->group_description;
        found.group_size = call->group_size;
        found.bytes = FullBufferBytes(found.type, *call);
        key = call->group + "|" + call->group_ranks;
        // One name without its members may be a different group on each rank.
        if (call->group_ranks.empty() && call->group_size != 0 &&
            trace.info.world_size.value_or(call->group_size) != call->group_size) {
          key += "|" + std::to_string(t);
        }
      } else {
        found.group = "stream " + std::to_string(span.stream);
        key = found.group + "|" + std::to_string(span.device) + "|" + found.type;
        if (run.traces.size() > 1) key = found.group + "|" + found.type;
      }
      const bool is_pair = found.type == "send" || found.type == "recv" || found.type == "sendrecv";
      if (is_pair) key += "|" + std::to_string(t);
      const uint64_t ordinal = counts[key]++;
      const uint64_t number = call != nullptr && call->sequence != 0 ? call->sequence : ordinal;
      // A sequence number names one call, which may run several kernels.
      CollectiveRun& collective = matched[{key, number << 8}];
      CollectiveRun* into = &collective;
      if (!collective.members.empty() && collective.members.back().trace == t) {
        into = &matched[{key + "|again", ordinal}];
      }
      if (into->members.empty()) *into = std::move(found);
      into->members.push_back({t, span.row, span.start, span.end});
    }
  }
  std::vector<CollectiveRun> list;
  for (auto& [key, collective] : matched) list.push_back(std::move(collective));
  std::stable_sort(list.begin(), list.end(), [](const CollectiveRun& a, const CollectiveRun& b) {
    return a.members[0].start < b.members[0].start;
  });
  return list;
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
