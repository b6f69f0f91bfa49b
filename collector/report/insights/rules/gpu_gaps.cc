// Long stretches in which no device of the rank does anything (nsys: gpu_gaps).
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"
#include "collector/report/steps/verdict_words.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kNsysGapNs = 500'000'000;  // nsys analyze gpu_gaps' default
// In a loop of short steps no gap is that long: there a tenth of a step, and no less than a launch
// that goes slow. Without steps one that fills half of a short trace.
constexpr double kShareOfStep = 0.1;
constexpr int64_t kLeastNs = 1'000'000;

struct IdleGap {
  int64_t start = 0, end = 0;
  uint32_t next = kNone;  // span
  std::array<int64_t, kCauses> times{};
  int64_t length() const { return end - start; }
  Cause MainCause() const {
    return static_cast<Cause>(std::ranges::max_element(times) - times.begin());
  }
};

// Pieces that touch are one gap; time in which capture was off is none.
std::vector<IdleGap> GapsOf(const RankFacts& rank, int64_t shortest) {
  std::vector<IdleGap> gaps;
  std::vector<LostPiece> open;
  const auto close = [&] {
    if (!open.empty() && open.back().end - open.front().start >= shortest) {
      IdleGap& gap = gaps.emplace_back(
          IdleGap{.start = open.front().start, .end = open.back().end, .next = open.back().span});
      for (const LostPiece& piece : open) {
        gap.times[static_cast<size_t>(piece.cause)] += piece.length();
      }
    }
    open.clear();
  };
  rank.ForEachLost(kIdleCauses, [&](const LostPiece& piece) {
    if (!open.empty() && open.back().end != piece.start) close();
    open.push_back(piece);
  });
  close();
  return gaps;
}

struct Alike {
  int64_t count = 0, ns = 0;
  IdleGap longest;
  std::vector<Interval> moments;
};

Insight About(const RankFacts& rank, const std::string& place, Cause cause, int64_t shortest,
              Alike gaps) {
  const int64_t lost = rank.PerStep(gaps.ns);
  return {.finding = fmt::format(
              "No device runs anything for {} or longer {}, which takes {} {} ({}); the longest "
              "lasts {} and begins {} into the trace{}. Mostly it is {}.",
              FormatNs(shortest), rank.TimesAStep(gaps.count), FormatNs(lost), rank.OfStep(),
              FormatShare(lost, rank.step_ns()), FormatNs(gaps.longest.length()),
              FormatNs(gaps.longest.start - rank.trace().first_ns),
              gaps.longest.next == kNone ? ", after all else that the steps run"
              : place.empty()            ? ""
                                         : fmt::format(", before what {} launches", place),
              DescribeLoss(cause)),
          .where = place,
          .count = gaps.count,
          .lost_ns = lost,
          .saving = Saving{.moments = std::move(gaps.moments), .causes = kIdleCauses}};
}

}  // namespace

Answer FindGpuGaps(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  int64_t shortest = kNsysGapNs;
  if (!rank.has_steps()) shortest = std::clamp(rank.step_ns() / 2, kLeastNs, kNsysGapNs);
  if (rank.has_steps()) {
    const auto share = static_cast<int64_t>(kShareOfStep * static_cast<double>(rank.step_ns()));
    shortest = std::clamp(share, kLeastNs, kNsysGapNs);
  }
  std::map<std::pair<std::string, Cause>, Alike> by_place;
  for (const IdleGap& gap : GapsOf(rank, shortest)) {
    const std::string place = gap.next == kNone ? "" : rank.PlaceOf(rank.spans()[gap.next]);
    Alike& alike = by_place[{place, gap.MainCause()}];
    ++alike.count;
    alike.ns += gap.length();
    alike.moments.emplace_back(gap.start, gap.end);
    if (gap.length() > alike.longest.length()) alike.longest = gap;
  }
  Answer answer;
  for (auto& [key, gaps] : by_place) {
    answer.insights.push_back(About(rank, key.first, key.second, shortest, std::move(gaps)));
  }
  return answer;
}

}  // namespace ranktap::collector
