#include "collector/report/steps/recoverable.h"

#include <array>
#include <atomic>
#include <numeric>
#include <optional>
#include <utility>

#include "collector/facts/causes/critical_path.h"
#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/numbers/interval_set.h"

namespace ranktap::collector {
namespace {

// What both the waterfall and the path tell apart: the path says where the host was when it
// launched, the waterfall why it was late.
enum class Bearer : uint8_t { kCompute, kTransfer, kMemory, kLaunched, kHost };
constexpr size_t kBearers = 5;

constexpr std::array<Bearer, kCauses> kBearerOf = [] {
  std::array<Bearer, kCauses> bearers;
  bearers.fill(Bearer::kHost);
  const auto set = [&bearers](Cause cause, Bearer bearer) {
    bearers[static_cast<size_t>(cause)] = bearer;
  };
  set(Cause::kCompute, Bearer::kCompute);
  set(Cause::kTransfer, Bearer::kTransfer), set(Cause::kWait, Bearer::kTransfer);
  set(Cause::kMemory, Bearer::kMemory);
  set(Cause::kLatency, Bearer::kLaunched), set(Cause::kDependency, Bearer::kLaunched);
  return bearers;
}();

// A set of moments, mostly given in their order.
class MomentSet {
 public:
  // As much of each large one: it takes the block that another gave back (KeepLargeBlocks).
  [[gnu::always_inline]] void Add(int64_t start, int64_t end, size_t reserved) {
    if (set_.empty() || set_.back().second != start) {
      Begin(start, end, reserved);
    } else {
      set_.back().second = end;
    }
  }
  bool is_empty() const { return set_.empty(); }
  std::vector<Interval> Take() { return is_sorted_ ? std::move(set_) : Merged(std::move(set_)); }

 private:
  static constexpr size_t kMany = 4096;
  void Begin(int64_t start, int64_t end, size_t reserved) {
    if (set_.size() == kMany) set_.reserve(reserved);
    is_sorted_ &= set_.empty() || set_.back().second < start;
    set_.emplace_back(start, end);
  }

  std::vector<Interval> set_;
  bool is_sorted_ = true;
};

// How long a set of moments is, given by start.
struct MomentSum {
  int64_t ns = 0, start = INT64_MIN, end = INT64_MIN;
  bool is_known = true;  // false: one came that starts before the last
  void Add(int64_t from, int64_t until) {
    is_known &= from >= start;
    start = from;
    from = std::max(from, end);
    if (from >= until) return;
    ns += until - from;
    end = until;
  }
};

// While the path computes, the device does: it bears all of that. So the sum needs no moments,
// which are half of the path's.
enum class Computed : uint8_t { kAsMoments, kAsSum };

// The path on one rank, within its counted steps.
class PathOfRank {
 public:
  PathOfRank(const Trace& trace, const RankWaterfall& waterfall, Computed compute)
      : reserved_(DeviceTimeline(trace).size()), compute_(compute) {
    if (waterfall.counted == 0 || waterfall.on_host) return;
    for (const Step& step : waterfall.steps.list) {
      if (!step.warm_up) counted_.emplace_back(step.start, step.end);
    }
    counted_ = Merged(std::move(counted_));
  }

  const std::vector<Interval>& counted() const { return counted_; }
  bool is_empty() const { return covered_.is_empty(); }
  std::vector<Interval> TakeCovered() { return covered_.Take(); }
  bool sums_compute() const { return compute_ == Computed::kAsSum; }
  const MomentSum& computed() const { return computed_; }
  void Add(Cause cause, int64_t start, int64_t end) {
    const Bearer bearer = kBearerOf[static_cast<size_t>(cause)];
    // Mostly within the steps in which the piece before it was.
    if (at_ < counted_.size() && counted_[at_].first <= start && end <= counted_[at_].second) {
      AddCounted(bearer, start, end);
      return;
    }
    while (at_ > 0 && counted_[at_ - 1].second > start) --at_;
    while (at_ < counted_.size() && counted_[at_].second <= start) ++at_;
    for (size_t i = at_; i < counted_.size() && counted_[i].first < end; ++i) {
      const int64_t from = std::max(start, counted_[i].first);
      const int64_t until = std::min(end, counted_[i].second);
      if (from < until) AddCounted(bearer, from, until);
    }
  }
  std::vector<SetCursor> Take() {
    std::vector<SetCursor> cursors;
    for (MomentSet& moments : by_bearer_) cursors.emplace_back(moments.Take());
    return cursors;
  }

 private:
  [[gnu::always_inline]] void AddCounted(Bearer bearer, int64_t start, int64_t end) {
    if (bearer == Bearer::kCompute && sums_compute()) {
      computed_.Add(start, end);
    } else {
      by_bearer_[static_cast<size_t>(bearer)].Add(start, end, reserved_);
    }
    covered_.Add(start, end, reserved_);
  }

  size_t reserved_;
  Computed compute_;
  MomentSum computed_;
  std::vector<Interval> counted_;
  size_t at_ = 0;
  std::array<MomentSet, kBearers> by_bearer_;
  MomentSet covered_;  // mostly one moment for each run of counted steps
};

std::vector<PathOfRank> PathsOf(const Run& run, Computed compute) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  std::vector<PathOfRank> paths;
  for (size_t t = 0; t < run.traces.size(); ++t) {
    paths.emplace_back(run.traces[t], waterfalls[t], compute);
  }
  const CriticalPath& path = FindCriticalPath(run);
  path.ForEach([&paths](const PathSegment& segment) {
    paths[segment.trace].Add(segment.cause, segment.start, segment.end);
  });
  if (path.empty()) return paths;
  // The path ends with the last work of a device; the host may end its last step later.
  const PathSegment& last = path.last();
  const std::vector<Step>& steps = waterfalls[last.trace].steps.list;
  if (!steps.empty()) paths[last.trace].Add(Cause::kHost, last.end, steps.back().end);
  return paths;
}

// Calls visit(cause, start, end) for what the path bears of each cause on one rank, by start, but
// for what is summed. Returns how long the path is there.
template <typename Visit>
int64_t ForEachBorne(const Trace& trace, const std::vector<Interval>& waits, PathOfRank* path,
                     Visit&& visit) {
  const std::vector<Interval> covered = path->TakeCovered();
  std::vector<SetCursor> cursors = path->Take();
  SweepDeviceWithin(trace, waits, covered, path->counted().front().first,
                    path->counted().back().second,
                    [&](Cause cause, int64_t start, int64_t end, uint32_t) {
                      if (cause == Cause::kWait) return;
                      if (cause == Cause::kCompute && path->sums_compute()) return;
                      const Bearer bearer = kBearerOf[static_cast<size_t>(cause)];
                      cursors[static_cast<size_t>(bearer)].Split(
                          start, end, [&](int64_t from, int64_t until, bool on_path) {
                            if (on_path) visit(static_cast<size_t>(cause), from, until);
                          });
                    });
  return Length(covered);
}

// Calls visit(trace, its waits for others, path) for each trace to which the path comes, several
// at once.
template <typename Visit>
void ForEachPathAtOnce(const Run& run, Computed compute, Visit&& visit) {
  FindCriticalPath(run);  // while another thread may still make the waterfalls
  std::vector<PathOfRank> paths = PathsOf(run, compute);
  const std::vector<std::vector<Interval>>& waits = WaitsForOtherRanks(run);
  ForEachTraceAtOnce(run, [&](uint32_t t) {
    if (paths[t].is_empty()) return;
    PathOfRank path = std::move(paths[t]);  // which is let go
    visit(t, waits[t], &path);
  });
}

// Sums alone: moments may be as large as the trace.
struct BorneTimes {
  std::vector<CauseTimes> by_trace;
  int64_t covered = 0;
};

// Nothing where a sum is not known.
std::optional<BorneTimes> FindBorne(const Run& run, Computed compute) {
  BorneTimes borne{std::vector<CauseTimes>(run.traces.size(), CauseTimes{})};
  std::vector<int64_t> covered(run.traces.size());
  std::atomic<bool> is_known = true;
  ForEachPathAtOnce(
      run, compute, [&](uint32_t t, const std::vector<Interval>& waits, PathOfRank* path) {
        if (!path->computed().is_known) is_known = false;
        CauseTimes times{};
        covered[t] = ForEachBorne(
            run.traces[t], waits, path,
            [&times](size_t cause, int64_t from, int64_t until) { times[cause] += until - from; });
        times[static_cast<size_t>(Cause::kCompute)] += path->computed().ns;
        borne.by_trace[t] = times;
      });
  borne.covered = std::accumulate(covered.begin(), covered.end(), int64_t{0});
  return is_known ? std::optional(std::move(borne)) : std::nullopt;
}

const BorneTimes& BorneTimesOf(const Run& run) {
  return run.memo.Get<BorneTimes>([&run] {
    std::optional<BorneTimes> borne = FindBorne(run, Computed::kAsSum);
    return borne ? *std::move(borne) : *FindBorne(run, Computed::kAsMoments);
  });
}

std::vector<MomentsByCause> FindMoments(const Run& run) {
  std::vector<MomentsByCause> moments(run.traces.size());
  const auto find = [&](uint32_t t, const std::vector<Interval>& waits, PathOfRank* path) {
    std::array<MomentSet, kCauses> sets;
    const size_t reserved = DeviceTimeline(run.traces[t]).size();
    ForEachBorne(run.traces[t], waits, path, [&](size_t cause, int64_t from, int64_t until) {
      sets[cause].Add(from, until, reserved);
    });
    for (size_t c = 0; c < kCauses; ++c) moments[t][c] = sets[c].Take();
  };
  ForEachPathAtOnce(run, Computed::kAsMoments, find);
  return moments;
}

}  // namespace

const std::vector<MomentsByCause>& MomentsOnCriticalPath(const Run& run) {
  struct Moments {
    std::vector<MomentsByCause> by_trace;
  };
  return run.memo.Get<Moments>([&run] { return Moments{FindMoments(run)}; }).by_trace;
}

int64_t CoveredByCriticalPath(const Run& run) { return BorneTimesOf(run).covered; }

std::vector<CauseTimes> BorneByCriticalPath(const Run& run,
                                            const std::vector<RankWaterfall>& waterfalls) {
  std::vector<CauseTimes> borne = BorneTimesOf(run).by_trace;
  for (size_t t = 0; t < borne.size(); ++t) {
    for (int64_t& ns : borne[t]) {
      ns = waterfalls[t].counted == 0 ? 0 : ns / static_cast<int64_t>(waterfalls[t].counted);
    }
  }
  return borne;
}

}  // namespace ranktap::collector
