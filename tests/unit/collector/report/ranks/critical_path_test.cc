// The critical path of jobs whose chain of waits is known.
#include "collector/facts/causes/critical_path.h"
#include "collector/report/reports.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

// By rank and cause; the host's time after a wait is the host's here.
std::vector<CauseTimes> Sums(const CriticalPath& path, size_t ranks) {
  std::vector<CauseTimes> sums(ranks, CauseTimes{});
  path.ForEach([&sums](const PathSegment& piece) {
    sums[piece.trace][static_cast<size_t>(piece.cause)] += piece.ns;
  });
  return sums;
}

TEST(CriticalPath, IsThePlantedChainOverAllRanksWhateverTheirClocks) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    JobShape shape{.ranks = 1 + seed % 6, .seed = seed, .steps = 12, .jitter_ns = 80'000};
    shape.clocks.resize(shape.ranks);
    for (uint32_t rank = 1; rank < shape.ranks; ++rank) {
      shape.clocks[rank].offset_ns = (rank % 2 == 0 ? -1 : 1) * int64_t{rank} * 700'000'000;
    }
    SyntheticJob job(shape);
    const CriticalPath& path = FindCriticalPath(job.run());
    std::vector<CauseTimes> planted = job.critical();
    int64_t length = 0;
    path.ForEach([&length](const PathSegment& piece) { length += piece.ns; });
    EXPECT_EQ(length, job.total_ns());
    const std::vector<CauseTimes> found = Sums(path, shape.ranks);
    for (size_t rank = 0; rank < shape.ranks; ++rank) {
      planted[rank][static_cast<size_t>(Cause::kHost)] +=
          std::exchange(planted[rank][static_cast<size_t>(Cause::kSync)], 0);
      for (size_t c = 0; c < kCauses; ++c) {
        EXPECT_EQ(found[rank][c], planted[rank][c])
            << NameOf(static_cast<Cause>(c)) << " of rank " << rank;
      }
    }
  }
}

TEST(CriticalPath, APersistentStragglerHasItAll) {
  SyntheticJob job({.layers = 1, .late = {{.rank = 2, .cause = Cause::kHost, .ns = 400'000}}});
  const Table table = TabulateCriticalPath(job.run(), {});
  for (size_t row = 0; row < table.rows.size(); ++row) {
    EXPECT_EQ(CellAt<int64_t>(table, row, "rank"), 2);
  }
  EXPECT_EQ(CellAt<std::string>(table, 0, "cause"), "host");
  EXPECT_EQ(CellAt<int64_t>(table, 0, "path_ns"), 8 * (400'000 + 40'000));
}

TEST(CriticalPath, OfARunWithoutDeviceWorkIsEmpty) {
  collector::Run run;
  run.traces.emplace_back();
  EXPECT_TRUE(TabulateCriticalPath(run, {}).rows.empty());
}

}  // namespace
}  // namespace ranktap::collector
