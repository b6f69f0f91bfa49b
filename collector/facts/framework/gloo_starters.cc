#include "collector/facts/framework/gloo_starters.h"

#include <map>
#include <string>
#include <string_view>

namespace ranktap::collector {
namespace {

constexpr std::string_view kGloo = "gloo:", kDistributed = "c10d::";

std::string_view NameOf(const Trace& trace, uint32_t op) {
  return trace.dictionary.String(trace.operators.name[op]);
}

// "allreduce" of "gloo:all_reduce" and of "c10d::allreduce_".
std::string KindOf(std::string_view name, std::string_view prefix) {
  std::string kind;
  for (const char c : name.substr(prefix.size())) {
    if (c != '_') kind += c;
  }
  return kind;
}

using ByKind = std::map<std::string, std::vector<uint32_t>>;

// Coalesced and base variants of a call are one kind to gloo: "allgatherbase" runs "allgather".
ByKind::mapped_type* CollectivesOf(std::string kind, ByKind* waiting) {
  for (; !kind.empty(); kind.pop_back()) {
    if (const auto found = waiting->find(kind); found != waiting->end()) return &found->second;
  }
  return nullptr;
}

}  // namespace

bool IsGlooOperator(const Trace& trace, uint32_t op) {
  return NameOf(trace, op).starts_with(kGloo);
}

bool IsDistributedOperator(const Trace& trace, uint32_t op) {
  return NameOf(trace, op).starts_with(kDistributed);
}

// From the last to the first: a call takes the last collective of its kind that began after it and
// is free. So where a window ended between a call and its collective, the earlier pairs still fit.
std::vector<uint32_t> GlooStarters(const Trace& trace) {
  const Operators& ops = trace.operators;
  std::vector<uint32_t> starters(ops.size(), kNone);
  ByKind waiting;  // the first to be taken at the front
  std::map<const void*, size_t> taken;
  for (auto op = static_cast<uint32_t>(ops.size()); op-- > 0;) {
    const std::string_view name = NameOf(trace, op);
    if (name.starts_with(kGloo)) waiting[KindOf(name, kGloo)].push_back(op);
    if (!name.starts_with(kDistributed)) continue;
    const auto* const free = CollectivesOf(KindOf(name, kDistributed), &waiting);
    if (free == nullptr) continue;
    size_t& next = taken[free];
    if (next < free->size()) starters[(*free)[next++]] = op;
  }
  return starters;
}

}  // namespace ranktap::collector
