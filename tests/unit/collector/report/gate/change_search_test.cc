// The search for the commit that changed a figure, on drawn runs: how often it is right, and with
// how many. The study in docs/measurements/gate.md prints these figures.
#include "collector/report/gate/change_search.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace ranktap::collector {
namespace {

struct DrawnCommits {
  double spread, change;
  int known = 0;  // runs of each end that were there before
  size_t commits = 64;
};

struct SearchStudy {
  int right = 0, wrong = 0, open = 0;
  std::vector<int> runs;
  int median() const { return runs[runs.size() / 2]; }
};

SearchStudy StudySearches(const DrawnCommits& drawn, int searches) {
  constexpr int kMostRuns = 40;
  std::mt19937 random(37);
  std::lognormal_distribution<double> factor(0, drawn.spread);
  std::uniform_int_distribution<size_t> any(1, drawn.commits);
  SearchStudy study;
  for (int i = 0; i < searches; ++i) {
    ChangeSearch search(drawn.commits);
    const size_t changed = any(random);
    const auto measure = [&](size_t position) {
      search.Add(position, 1e7 * factor(random) * (position >= changed ? 1 + drawn.change : 1));
    };
    for (int k = 0; k < drawn.known; ++k) {
      measure(0);
      measure(drawn.commits);
    }
    int runs = 0;
    ChangeSearch::Belief belief = search.Now();
    for (; !belief.is_sure() && runs < kMostRuns; ++runs) {
      measure(belief.measure.value());
      belief = search.Now();
    }
    const bool is_right = belief.first == changed && belief.last == changed;
    ++(!belief.is_sure() ? study.open : is_right ? study.right : study.wrong);
    study.runs.push_back(runs);
  }
  std::ranges::sort(study.runs);
  fmt::print(
      "{} commits, spread {:.1f} %, change {:.0f} %, {} known runs of each end: {} of {} "
      "right, {} wrong, {} open; runs: median {}, 90 % {}, most {}\n",
      drawn.commits, 100 * drawn.spread, 100 * drawn.change, drawn.known, study.right, searches,
      study.wrong, study.open, study.median(), study.runs[study.runs.size() * 9 / 10],
      study.runs.back());
  return study;
}

constexpr int kSearches = 200, kRightOnes = kSearches * 95 / 100;

TEST(ChangeSearch, FindsThreePercentAmong64CommitsWithTheGatesRunsInTenMore) {
  const SearchStudy study = StudySearches({.spread = 0.01, .change = 0.03, .known = 5}, kSearches);
  EXPECT_GE(study.right, kRightOnes);
  EXPECT_LE(study.median(), 10);
}

TEST(ChangeSearch, FindsItInTenRunsOfItsOwnWhereTheyDifferByHalfAPercent) {
  const SearchStudy study = StudySearches({.spread = 0.005, .change = 0.03}, kSearches);
  EXPECT_GE(study.right, kRightOnes);
  EXPECT_LE(study.median(), 10);
}

TEST(ChangeSearch, AtAWiderSpreadItTakesMoreRunsAndIsAsSure) {
  const SearchStudy study = StudySearches({.spread = 0.01, .change = 0.03}, kSearches);
  EXPECT_GE(study.right, kRightOnes);
  EXPECT_LE(study.wrong, kSearches * 5 / 100);
}

TEST(ChangeSearch, WhereNothingChangedItCannotTell) {
  const SearchStudy study = StudySearches({.spread = 0.01, .change = 0}, kSearches / 4);
  EXPECT_LE(study.wrong, kSearches / 4 * 5 / 100);
}

TEST(ChangeSearch, RunsThatDoNotDifferHalveTheCommits) {
  const SearchStudy study = StudySearches({.spread = 0, .change = 0.2}, 20);
  EXPECT_EQ(study.right, 20);
  EXPECT_LE(study.runs.back(), 2 + 6);
}

TEST(ChangeSearch, MeasuresBothEndsFirst) {
  ChangeSearch search(8);
  EXPECT_EQ(search.Now().measure, 0U);
  search.Add(0, 10);
  EXPECT_EQ(search.Now().measure, 8U);
  search.Add(8, 20);
  EXPECT_EQ(search.Now().measure, 4U);
}

TEST(ChangeSearch, ACommitThatIsSkippedIsNotPartedFromTheNextThatRuns) {
  ChangeSearch search(8);
  for (const size_t skipped : {3, 4, 5}) search.Skip(skipped);
  for (ChangeSearch::Belief belief = search.Now(); !belief.is_sure(); belief = search.Now()) {
    ASSERT_TRUE(belief.measure);
    ASSERT_FALSE(search.IsSkipped(*belief.measure));
    search.Add(*belief.measure, *belief.measure >= 4 ? 20 : 10);
  }
  EXPECT_EQ(search.Now().first, 3U);
  EXPECT_EQ(search.Now().last, 6U);
}

}  // namespace
}  // namespace ranktap::collector
