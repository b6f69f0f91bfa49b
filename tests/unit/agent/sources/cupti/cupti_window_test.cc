// Which records a window takes, and when it is complete.
#include "agent/sources/cupti/cupti_window.h"

#include <gtest/gtest.h>

namespace ranktap::agent::cupti {
namespace {

KernelRecord KernelOf(uint32_t correlation) {
  KernelRecord record{};
  record.kind = Kind::kConcurrentKernel;
  record.correlation = correlation;
  return record;
}

template <typename Made>
const Record& As(const Made& record) {
  const void* const at = &record;
  return *static_cast<const Record*>(at);
}

bool Takes(Window& window, uint32_t correlation) { return window.Takes(As(KernelOf(correlation))); }

TEST(CuptiWindowTest, AnOpenWindowTakesEveryCallAndAClosingOneNoneAfterItsLast) {
  Window window;
  EXPECT_TRUE(Takes(window, 100));
  window.Close({.correlation = 50, .launch = 40}, /*all_came=*/false);
  EXPECT_TRUE(Takes(window, 50));
  EXPECT_FALSE(Takes(window, 51));
  MemcpyRecord copy{};
  copy.kind = Kind::kMemcpy;
  copy.correlation = 51;
  EXPECT_FALSE(window.Takes(As(copy)));
  window.End();
  EXPECT_TRUE(Takes(window, 51));
}

TEST(CuptiWindowTest, ARecordThatBelongsToNoCallIsTakenWhileAWindowCloses) {
  Window window;
  window.Close({.correlation = 1, .launch = 1}, false);
  ContextRecord context{};
  context.kind = Kind::kContext;
  EXPECT_TRUE(window.Takes(As(context)));
}

TEST(CuptiWindowTest, CorrelationIdsMayWrapInsideAWindow) {
  Window window;
  window.Close({.correlation = 5, .launch = 5}, false);
  EXPECT_TRUE(Takes(window, UINT32_MAX));
  EXPECT_FALSE(Takes(window, 6));
}

TEST(CuptiWindowTest, AWindowIsCompleteInTheFirstRoundThatBringsNothingAfterItsLastLaunch) {
  Window window;
  window.Close({.correlation = 9, .launch = 8}, false);
  EXPECT_FALSE(window.EndRound()) << "its last launch has no record yet";
  EXPECT_TRUE(Takes(window, 8));
  EXPECT_FALSE(window.EndRound()) << "this round has brought one";
  EXPECT_TRUE(Takes(window, 7)) << "a graph's nodes come in no order";
  EXPECT_FALSE(window.EndRound());
  EXPECT_TRUE(window.EndRound());
}

TEST(CuptiWindowTest, AWindowWithoutLaunchesIsCompleteAtOnce) {
  Window window;
  window.Close({.correlation = 9, .launch = 0}, false);
  EXPECT_TRUE(window.EndRound());
}

TEST(CuptiWindowTest, AWindowWhoseKernelsHaveAllComeWaitsForNone) {
  Window window;
  EXPECT_TRUE(Takes(window, 8));
  window.Close({.correlation = 9, .launch = 8}, /*all_came=*/true);
  EXPECT_TRUE(window.EndRound());
  window.End();
  window.Close({.correlation = 9, .launch = 8}, /*all_came=*/false);
  EXPECT_FALSE(window.EndRound()) << "the newest has come, one before it has not";
}

TEST(CuptiWindowTest, KernelsBetweenAParkedWindowAndTheNextOneAreOfNeither) {
  Window window;
  window.Close({.correlation = 50, .launch = 50}, false);
  window.End();
  window.Park();
  const auto is_between = [&](uint32_t id, uint32_t next_first) {
    return window.IsAfterPark(As(KernelOf(id)), next_first);
  };
  EXPECT_FALSE(is_between(50, 0));
  EXPECT_TRUE(is_between(51, 0));
  EXPECT_TRUE(is_between(51, 60));
  EXPECT_FALSE(is_between(60, 60));
  GraphTraceRecord graph{};
  graph.kind = Kind::kGraphTrace;
  graph.correlation = 51;
  EXPECT_TRUE(window.IsAfterPark(As(graph), 60));
  MemcpyRecord copy{};
  copy.kind = Kind::kMemcpy;
  copy.correlation = 51;
  EXPECT_FALSE(window.IsAfterPark(As(copy), 60)) << "that kind is off between windows";
}

}  // namespace
}  // namespace ranktap::agent::cupti
