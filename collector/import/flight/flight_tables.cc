#include "collector/import/flight/flight_tables.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

namespace ranktap::collector {
namespace {

constexpr uint32_t kMostRanks = 1 << 22;

// "[0, 1, 2]"
std::vector<uint32_t> RanksIn(std::string_view text) {
  std::vector<uint32_t> ranks;
  while (!text.empty()) {
    uint32_t rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error == std::errc() && rank < kMostRanks) ranks.push_back(rank);
    text.remove_prefix(std::max<size_t>(1, static_cast<size_t>(end - text.data())));
  }
  std::ranges::sort(ranks);
  const auto again = std::ranges::unique(ranks);
  ranks.erase(again.begin(), again.end());
  return ranks;
}

// "send 0->1" and "recv 1<-0": the number of the other one; 0: "?", or it is not there.
uint32_t PeerIn(std::string_view name) {
  const size_t send = name.find("->"), recv = name.find("<-");
  const size_t at = std::min(send, recv);
  if (at == name.npos) return 0;
  uint32_t peer = 0;
  const std::string_view text = name.substr(at + 2);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), peer);
  return error == std::errc() && end != text.data() && peer < kMostRanks ? peer + 1 : 0;
}

// Gloo's recorder never says "completed": a call of it has ended once it is retired. NCCL's retires
// what timed out, too.
bool IsOpen(const FlightEntry& entry, std::string_view backend) {
  if (entry.state == "completed") return false;
  const bool is_nccl = backend.starts_with("nccl");
  return is_nccl || !entry.is_retired;
}

}  // namespace

void FlightTables::AddGroup(std::string_view name, std::string_view description,
                            std::string_view ranks) {
  const std::vector<uint32_t> members = RanksIn(ranks);
  // Gloo's recorder has one group, without a name, whose members are those of the last that the
  // program made: often all ranks.
  const bool may_be_all = !members.empty() && members.back() + 1 == members.size();
  if (may_be_all) {
    const auto size = static_cast<uint32_t>(members.size());
    trace_->info.world_size = std::max(trace_->info.world_size.value_or(0), size);
  }
  if (name.empty()) return;
  ProcessGroup& group = trace_->process_groups[GroupNamed(name, description)];
  group.ranks = members;
  group.size = static_cast<uint32_t>(members.size());
}

uint32_t FlightTables::GroupNamed(std::string_view name, std::string_view description) {
  const std::pair<std::string, std::string> key(name, description);
  const auto [at, is_new] =
      groups_.try_emplace(key, static_cast<uint32_t>(trace_->process_groups.size()));
  if (is_new) trace_->process_groups.push_back({.name = key.first, .description = key.second});
  return at->second;
}

uint32_t FlightTables::Intern(const std::string& text) {
  if (text.empty()) return 0;
  const auto [at, is_new] = texts_.try_emplace(text, 0);
  if (is_new) at->second = trace_->dictionary.AppendString(text);
  return at->second;
}

void FlightTables::AddEntry(const FlightEntry& entry) {
  const size_t colon = entry.name.rfind(':');
  const std::string backend = colon == entry.name.npos ? "" : entry.name.substr(0, colon);
  const std::string call = entry.name.substr(colon == entry.name.npos ? 0 : colon + 1);
  const std::string function = call.substr(0, call.find(' '));
  ++trace_->events;
  if (function == "coalesced") return CloseCoalesced(entry);
  GroupCall row;
  row.group = GroupNamed(entry.group, entry.description);
  if (std::string& of = trace_->process_groups[row.group].backend; of.empty()) of = backend;
  row.function = Intern(function);
  row.in_sizes = Intern(entry.in_sizes);
  row.out_sizes = Intern(entry.out_sizes);
  row.in_types = Intern(entry.in_types);
  row.out_types = Intern(entry.out_types);
  row.stack = entry.stack;
  row.is_send = function == "send";
  row.is_recv = function == "recv";
  row.peer = row.is_send || row.is_recv ? PeerIn(call) : 0;
  row.number = entry.is_p2p ? entry.p2p : entry.collective;
  row.entered_ns = entry.entered_ns;
  row.is_open = IsOpen(entry, backend);
  calls_.push_back(row);
}

// The calls of a batch stay "scheduled" for ever; the entry behind them tells how it went.
void FlightTables::CloseCoalesced(const FlightEntry& end) {
  const uint32_t group = GroupNamed(end.group, end.description);
  const bool is_open = IsOpen(end, "nccl");
  const uint64_t number = end.is_p2p ? end.p2p : end.collective;
  for (size_t i = calls_.size(); i > 0; --i) {
    GroupCall& call = calls_[i - 1];
    if (call.group != group) continue;
    if (call.number != number || (call.is_send || call.is_recv) != end.is_p2p) break;
    call.is_open = is_open;
  }
}

// Calls of one group and kind end in their order: one before a call that has ended is not open.
void FlightTables::CloseEarlier() {
  std::set<std::tuple<uint32_t, bool, bool, uint32_t>> ended;
  for (size_t i = calls_.size(); i > 0; --i) {
    GroupCall& call = calls_[i - 1];
    const std::tuple kind(call.group, call.is_send, call.is_recv, call.peer);
    if (!call.is_open) {
      ended.insert(kind);
    } else if (ended.contains(kind)) {
      call.is_open = false;
    }
  }
}

void FlightTables::Finish() {
  CloseEarlier();
  KeepGroupCalls({.is_dump = true, .list = std::move(calls_)}, trace_);
}

}  // namespace ranktap::collector
