// Two ranks at a time: what they exchange in collectives, and how long one waits for the other.
#include <map>
#include <vector>

#include "collector/facts/collectives.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

struct Pair {
  const Trace* rank = nullptr;
  const Trace* other = nullptr;
  int64_t collectives = 0, bytes = 0, transfer_ns = 0;
  int64_t waits = 0, wait_ns = 0;  // of `rank` for `other`, which came last
};
using Pairs = std::map<std::pair<uint32_t, uint32_t>, Pair>;  // by traces

struct Exchange {
  int64_t collectives = 0, bytes = 0, transfer_ns = 0;
};

// A pair of each collective would be the square of the ranks for each call: pairs are made of each
// set of members once.
void AddExchanges(const Run& run, Pairs* pairs) {
  std::map<std::vector<uint32_t>, Exchange> by_members;
  for (const CollectiveRun& call : MatchDeviceOrHostCollectives(run)) {
    if (call.members.size() < 2) continue;
    std::vector<uint32_t> members;
    for (const CollectiveMember& member : call.members) members.push_back(member.trace);
    Exchange& exchange = by_members[std::move(members)];
    ++exchange.collectives;
    exchange.bytes += call.bytes;
    exchange.transfer_ns += call.shortest();
  }
  for (const auto& [members, exchange] : by_members) {
    for (const uint32_t a : members) {
      for (const uint32_t b : members) {
        if (a == b) continue;
        Pair& pair = (*pairs)[{a, b}];
        pair.collectives += exchange.collectives;
        pair.bytes += exchange.bytes;
        pair.transfer_ns += exchange.transfer_ns;
      }
    }
  }
}

void AddWaits(const Run& run, Pairs* pairs) {
  for (const CollectiveRun& call : MatchDeviceOrHostCollectives(run)) {
    if (call.members.size() < 2) continue;
    const int64_t transfer = call.shortest();
    const uint32_t last = call.members[call.last_arriver()].trace;
    for (const CollectiveMember& member : call.members) {
      if (member.trace == last) continue;
      Pair& pair = (*pairs)[{member.trace, last}];
      ++pair.waits;
      pair.wait_ns += member.length() - transfer;
    }
  }
}

const ColumnsOf<Pair> kPairColumns = {
    {"rank", Unit::kCount, kRankMeaning, [](const Pair& pair) { return RankCell(*pair.rank); }},
    {"other_rank", Unit::kCount, "The other rank of the pair.",
     [](const Pair& pair) { return RankCell(*pair.other); }},
    {"collectives", Unit::kCount, "The collectives that both were in.",
     [](const Pair& pair) { return pair.collectives; }},
    {"bytes", Unit::kBytes, "The bytes of these collectives; empty if the trace does not say.",
     [](const Pair& pair) { return pair.bytes == 0 ? Cell() : Cell(pair.bytes); }},
    {"transfer_ns", Unit::kNs, "The time of these collectives without waiting.",
     [](const Pair& pair) { return pair.transfer_ns; }},
    {"waits", Unit::kCount, "How often the other rank arrived last.",
     [](const Pair& pair) { return pair.waits; }},
    {"wait_ns", Unit::kNs, "The time that the rank waited in them for the other, added up.",
     [](const Pair& pair) { return pair.wait_ns; }},
};

}  // namespace

Table TabulateRankPairs(const Run& run, const ReportOptions&) {
  Pairs pairs;
  AddExchanges(run, &pairs);
  AddWaits(run, &pairs);
  std::vector<Pair> rows;
  for (auto& [traces, pair] : pairs) {
    pair.rank = &run.traces[traces.first];
    pair.other = &run.traces[traces.second];
    rows.push_back(pair);
  }
  Table table =
      TableOf("What two ranks exchange, and how long one waits for the other", kPairColumns, rows);
  if (rows.empty()) table.notes.push_back("no collective with two traced members");
  return table;
}

}  // namespace ranktap::collector
