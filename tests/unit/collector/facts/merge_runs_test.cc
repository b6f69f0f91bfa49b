#include "collector/facts/numbers/merge_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace ranktap::collector {
namespace {

TEST(MergeRuns, SortsAnyNumberOfRuns) {
  for (int runs = 0; runs < 20; ++runs) {
    std::vector<std::pair<int, int>> list;
    for (int run = 0; run < runs; ++run) {
      for (int i = 0; i <= run % 4; ++i) list.emplace_back(i * 7 + run % 3, list.size());
    }
    std::vector<std::pair<int, int>> sorted = list;
    std::ranges::sort(sorted);
    MergeRuns(&list);
    EXPECT_EQ(list, sorted) << runs;
  }
}

}  // namespace
}  // namespace ranktap::collector
