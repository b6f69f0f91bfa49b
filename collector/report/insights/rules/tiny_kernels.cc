// Kernels that take no longer than it takes to start them.
#include <fmt/core.h>

#include <unordered_map>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/stream_numbers.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kTinyNs = 5'000;  // as long as a launch takes at best
constexpr double kLeastOfKernels = 0.5;
constexpr double kLeastKernelsPerStep = 20;
constexpr double kLeastShareOfTinyKernels = 0.2;  // of the step, with the gaps before them

struct Tiny {
  int64_t kernels = 0, count = 0, busy_ns = 0, gap_ns = 0;
  std::vector<Interval> gaps;  // between two of them on one stream
  bool is_most() const {
    return static_cast<double>(count) >= kLeastOfKernels * static_cast<double>(kernels);
  }
};

bool IsTiny(const DeviceSpan& span) {
  return span.table == DeviceSpan::Table::kKernel && span.kind == WorkKind::kCompute &&
         span.end - span.start < kTinyNs;
}

Tiny CountTiny(const RankFacts& rank) {
  Tiny tiny;
  SetCursor counted(rank.counted());
  for (const DeviceSpan& span : rank.spans()) {
    const bool is_kernel =
        span.table == DeviceSpan::Table::kKernel && span.kind == WorkKind::kCompute;
    if (!is_kernel || !counted.Holds(span.start)) continue;
    ++tiny.kernels;
    const int64_t length = span.end - span.start;
    const bool is_tiny = length < kTinyNs;  // no branch: nobody could foretell it
    tiny.count += is_tiny;
    tiny.busy_ns += is_tiny ? length : 0;
  }
  return tiny;
}

void AddGaps(const RankFacts& rank, Tiny* tiny) {
  std::vector<bool> after_tiny(rank.spans().size());  // itself tiny, as is the one before it
  StreamNumbers streams;
  std::vector<bool> was_tiny;  // by stream
  size_t place = 0;
  for (const DeviceSpan& span : rank.spans()) {
    const uint32_t stream = streams.Of(span);
    if (stream == was_tiny.size()) was_tiny.push_back(false);
    const bool is_tiny = IsTiny(span);
    after_tiny[place++] = is_tiny & was_tiny[stream];
    was_tiny[stream] = is_tiny;
  }
  rank.ForEachLost(BitOf(Cause::kHost) | BitOf(Cause::kLatency), [&](const LostPiece& piece) {
    if (piece.span == kNone || !after_tiny[piece.span]) return;
    tiny->gap_ns += piece.length();
    tiny->gaps.emplace_back(piece.start, piece.end);
  });
}

// Names the operators that launch most of them.
std::string MostAt(const RankFacts& rank) {
  std::unordered_map<std::string, int64_t> by_place;
  for (const DeviceSpan& span : rank.spans()) {
    if (IsTiny(span) && rank.IsCounted(span.start)) ++by_place[rank.PlaceOf(span)];
  }
  std::string most;
  int64_t count = 0;
  for (const auto& [place, times] : by_place) {
    if (place.empty() || times < count || (times == count && most < place)) continue;
    most = place;
    count = times;
  }
  return most;
}

}  // namespace

Answer FindTinyKernels(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  Tiny tiny = CountTiny(rank);
  if (tiny.kernels == 0) return CannotTell("no kernels are recorded");
  if (!tiny.is_most() || rank.TimesPerStep(tiny.count) < kLeastKernelsPerStep) return {};
  AddGaps(rank, &tiny);
  if (!rank.IsWorth(rank.PerStep(tiny.busy_ns + tiny.gap_ns), kLeastShareOfTinyKernels)) return {};
  const int64_t gaps = rank.PerStep(tiny.gap_ns);
  std::string where = MostAt(rank);
  Insight insight{
      .finding = fmt::format(
          "{} of {} kernels run for less than {}: they take {} {}, and {} more pass between them"
          "{}.",
          FormatCount(tiny.count), FormatCount(tiny.kernels), FormatNs(kTinyNs),
          FormatNs(rank.PerStep(tiny.busy_ns)), rank.OfStep(), FormatNs(gaps),
          where.empty() ? "" : fmt::format("; most come from {}", where)),
      .where = std::move(where),
      .count = tiny.count,
      .lost_ns = gaps,
      .saving = Saving{.moments = std::move(tiny.gaps),
                       .causes = BitOf(Cause::kHost) | BitOf(Cause::kLatency)}};
  return {.insights = {std::move(insight)}};
}

}  // namespace ranktap::collector
