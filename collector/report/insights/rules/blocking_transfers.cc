// Copies and memsets by the calls that are not asynchronous (nsys: cuda_memcpy_sync,
// cuda_memset_sync).
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfBlockingTransfers =
    0.01;  // of the step, that the host spends in the calls
// cudaMemcpy of up to this much to the device returns when it is staged (CUDA's "API
// synchronization behavior"); nsys leaves these out, too.
constexpr uint64_t kStagedBytes = 64 << 10;
constexpr uint8_t kHostToDevice = 1;  // CUpti_ActivityMemcpyKind
constexpr uint32_t kCausesLost = BitOf(Cause::kMemory) | BitOf(Cause::kSync) | BitOf(Cause::kHost);

struct BlockingCalls {
  int64_t count = 0, bytes = 0;
  std::vector<Interval> on_host;            // the calls
  std::map<uint32_t, bool> rows;            // of the work's table
  std::map<std::string, int64_t> by_place;  // host time
  std::map<std::string, int64_t> by_name;   // calls
};

// BlockingCalls of counted steps that launched `work` and whose name has no "Async" in it.
template <typename Work, typename Picks>
BlockingCalls CallsThatBlock(const RankFacts& rank, const Work& work, std::string_view verb,
                             Picks&& picks) {
  const Trace& trace = rank.trace();
  BlockingCalls found;
  for (uint32_t i = 0; i < work.size(); ++i) {
    const uint32_t launch = work.launch[i];
    if (launch == kNone || work.start[i] == kUntimed || !rank.IsCounted(work.start[i])) continue;
    const std::string_view api = trace.dictionary.Api(trace.api_calls.api[launch]).name;
    if (api.find(verb) == api.npos || api.find("Async") != api.npos || !picks(i)) continue;
    const Interval call(trace.api_calls.start[launch], trace.api_calls.end[launch]);
    ++found.count;
    found.bytes += static_cast<int64_t>(work.bytes[i]);
    found.on_host.push_back(call);
    found.rows[i] = true;
    ++found.by_name[std::string(api)];
    found.by_place[rank.PlaceAt(trace.api_calls.writer[launch], call.first)] +=
        call.second - call.first;
  }
  found.on_host = Merged(std::move(found.on_host));
  return found;
}

// Exposed work of theirs, and the device's idle time that began during the calls.
std::vector<Interval> LostTo(const RankFacts& rank, const BlockingCalls& calls,
                             DeviceSpan::Table table) {
  std::vector<Interval> moments;
  const DeviceSpans& spans = rank.spans();
  rank.ForEachLost(kCausesLost, [&](const LostPiece& piece) {
    bool is_theirs = false;
    if (piece.cause != Cause::kMemory) {
      is_theirs = !Within(calls.on_host, piece.start, piece.start + 1).empty();
    } else if (piece.span != kNone) {
      const DeviceSpan& span = spans[piece.span];
      is_theirs = span.table == table && calls.rows.contains(span.row);
    }
    if (is_theirs) moments.emplace_back(piece.start, piece.end);
  });
  return moments;
}

const std::string& Most(const std::map<std::string, int64_t>& by_name) {
  return std::ranges::max_element(by_name, {}, [](const auto& entry) { return entry.second; })
      ->first;
}

Answer Judge(const RankFacts& rank, const BlockingCalls& calls, DeviceSpan::Table table) {
  const int64_t on_host = rank.PerStep(Length(calls.on_host));
  if (calls.count == 0 || !rank.IsWorth(on_host, kLeastShareOfBlockingTransfers)) return {};
  std::vector<Interval> moments = LostTo(rank, calls, table);
  const int64_t lost = rank.PerStep(Length(Merged(moments)));
  Insight insight{
      .finding = fmt::format(
          "{} is called {}, for {} in all, and holds the host for {} {} ({}); in {} of it or right "
          "after it the device computes nothing.",
          Most(calls.by_name), rank.TimesAStep(calls.count),
          FormatBytes(static_cast<uint64_t>(calls.bytes)), FormatNs(on_host), rank.OfStep(),
          FormatShare(on_host, rank.step_ns()), FormatNs(lost)),
      .where = Most(calls.by_place),
      .count = calls.count,
      .lost_ns = lost,
      .saving = Saving{.moments = std::move(moments), .causes = kCausesLost}};
  return {.insights = {std::move(insight)}};
}

}  // namespace

Answer FindBlockingCopies(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (!rank.has_launches()) return CannotTell("no launches are recorded");
  const Copies& copies = rank.trace().copies;
  const BlockingCalls calls = CallsThatBlock(rank, copies, "emcpy", [&copies](uint32_t i) {
    return copies.copy_kind[i] != kHostToDevice || copies.bytes[i] > kStagedBytes;
  });
  return Judge(rank, calls, DeviceSpan::Table::kCopy);
}

Answer FindBlockingMemsets(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (!rank.has_launches()) return CannotTell("no launches are recorded");
  const BlockingCalls calls =
      CallsThatBlock(rank, rank.trace().memsets, "emset", [](uint32_t) { return true; });
  return Judge(rank, calls, DeviceSpan::Table::kMemset);
}

}  // namespace ranktap::collector
