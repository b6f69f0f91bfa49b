#include "collector/trace/load/map_spans.h"

#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "collector/trace/model.h"

#if defined(__x86_64__)
#define RANKTAP_WIDE [[gnu::target("avx2")]]
#else
#define RANKTAP_WIDE
#endif

namespace ranktap::collector {
namespace {

// Loops over 64-bit values and roundings to whole numbers, which x86-64's SSE2 has not.
bool HasWideLoops() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return true;
#endif
}

// Whole numbers of less than 2^51 are the low bits of this one with them added, and the reverse:
// no processor before AVX-512 turns several of 64 bits into doubles at once.
constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52
constexpr double kMostShifted = 1.0 * (uint64_t{1} << 50);
constexpr uint64_t kMostValue = uint64_t{1} << 62;

// ClockMap::Line::At of a block's values, which it keeps as differences to one of them.
struct StraightMap {
  uint64_t from_origin;  // of a difference of 0
  double ns_per_tick;
  uint64_t to_base;

  [[gnu::always_inline]] uint32_t operator()(int64_t later) const {
    const auto ticks = static_cast<uint64_t>(later) + from_origin;
    const double ns =
        (std::bit_cast<double>(ticks + std::bit_cast<uint64_t>(kShift)) - kShift) * ns_per_tick;
    const double whole = __builtin_trunc(ns + __builtin_copysign(0.5, ns));
    return static_cast<uint32_t>(std::bit_cast<uint64_t>(whole + kShift) -
                                 std::bit_cast<uint64_t>(kShift) + to_base);
  }
};

struct LeastAndMost {
  uint32_t least = UINT32_MAX, most = 0;
};

RANKTAP_WIDE LeastAndMost LimitsOf(std::span<const uint32_t> later) {
  LeastAndMost limits;
  for (const uint32_t value : later) {
    limits.least = std::min(limits.least, value);
    limits.most = std::max(limits.most, value);
  }
  return limits;
}

// `start_to_end`: the starts' base less that of the ends.
RANKTAP_WIDE void MapEnds(StraightMap map, std::span<const uint32_t> starts, int64_t start_to_end,
                          std::span<uint32_t> ends) {
  for (size_t i = 0; i < ends.size(); ++i) {
    ends[i] = map(std::max<int64_t>(ends[i], starts[i] + start_to_end));
  }
}
RANKTAP_WIDE void MapStarts(StraightMap map, std::span<uint32_t> starts) {
  for (uint32_t& start : starts) start = map(start);
}

// `value` by Line::At, where the sums of StraightMap are exact.
bool IsExact(const ClockMap::Line& line, uint64_t value) {
  const double ticks = static_cast<double>(static_cast<int64_t>(value - line.origin()));
  return std::abs(ticks) < kMostShifted && std::abs(ticks * line.ns_per_tick()) < kMostShifted;
}

// Both blocks at once. False, and nothing is written: their values are kept whole, are of several
// lines, or are too far from the line's beginning or from each other.
bool MapOnOneLine(const ClockMap& clock, ClockMap::Line* line, TimeColumn::Later starts,
                  TimeColumn::Later ends, Bounds* bounds) {
  if (starts.rows.empty() || ends.rows.empty()) return false;
  const LeastAndMost start = LimitsOf(starts.rows), end = LimitsOf(ends.rows);
  const uint64_t least = *starts.base + start.least;
  const uint64_t most = std::max(*starts.base + start.most, *ends.base + end.most);
  if (*starts.base > kMostValue || *ends.base > kMostValue || least == 0 || most > kMostValue) {
    return false;
  }
  if (!line->Holds(least)) *line = clock.LineOf(least);
  if (!line->Holds(most) || !IsExact(*line, least) || !IsExact(*line, most)) return false;

  const uint64_t first_start = *starts.base + starts.rows[0];
  const uint64_t first_end = std::max(first_start, *ends.base + ends.rows[0]);
  const uint64_t to_start = TimeColumn::BaseFor(line->At(first_start));
  const uint64_t to_end = TimeColumn::BaseFor(line->At(first_end));
  const int64_t mapped_least = line->At(least), mapped_most = line->At(most);
  for (const uint64_t base : {to_start, to_end}) {
    if (!TimeColumn::Fits(base, mapped_least) || !TimeColumn::Fits(base, mapped_most)) return false;
  }
  const auto map_from = [line](uint64_t base, uint64_t to) {
    return StraightMap{.from_origin = base - line->origin(),
                       .ns_per_tick = line->ns_per_tick(),
                       .to_base = static_cast<uint64_t>(line->raw_ns()) - to};
  };
  MapEnds(map_from(*ends.base, to_end), starts.rows,
          static_cast<int64_t>(*starts.base - *ends.base), ends.rows);
  MapStarts(map_from(*starts.base, to_start), starts.rows);
  *starts.base = to_start, *ends.base = to_end;
  bounds->Cover(mapped_least, mapped_most);
  return true;
}

void MapEach(const ClockMap& clock, Zero zero, ClockMap::Line* at, std::span<int64_t> start,
             std::span<int64_t> end, Bounds* bounds) {
  ClockMap::Line line = *at;
  Bounds seen = *bounds;
  for (size_t i = 0; i < start.size(); ++i) {
    const auto begin = static_cast<uint64_t>(start[i]), finish = static_cast<uint64_t>(end[i]);
    if (begin == 0 && zero == Zero::kMeansUntimed) {
      start[i] = end[i] = kUntimed;
      continue;
    }
    const int64_t mapped = clock.Map(begin, &line);
    // CUPTI writes an end of 0 when its buffers ran out under a running kernel.
    const int64_t last = finish < begin ? mapped : clock.Map(finish, &line);
    start[i] = mapped;
    end[i] = last;
    seen.Cover(mapped, last);
  }
  *at = line;
  *bounds = seen;
}

}  // namespace

// One pass over the columns, which are larger than any cache.
void MapSpans(const ClockMap& clock, Zero zero, TimeColumn* starts, TimeColumn* ends,
              Bounds* bounds) {
  const bool is_wide = HasWideLoops();
  std::array<int64_t, TimeColumn::kBlock> start, end;
  ClockMap::Line line = clock.LineOf(0);
  for (size_t first = 0, rows = starts->size(); first < rows; first += start.size()) {
    const size_t count = std::min(start.size(), rows - first);
    if (is_wide &&
        MapOnOneLine(clock, &line, starts->LaterFrom(first), ends->LaterFrom(first), bounds)) {
      continue;
    }
    const std::span block_starts(start.data(), count), block_ends(end.data(), count);
    starts->Read(first, block_starts);
    ends->Read(first, block_ends);
    MapEach(clock, zero, &line, block_starts, block_ends, bounds);
    starts->Write(first, block_starts);
    ends->Write(first, block_ends);
  }
}

}  // namespace ranktap::collector
