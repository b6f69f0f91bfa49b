// What `ranktap top` draws, and when a step is slow.
#include "collector/cli/top_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "collector/cli/slow_steps.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kScreenSecond = 1'000'000'000, kMs = 1'000'000;

TopLook LookAtRanks(uint64_t at_ns, uint32_t ranks, uint32_t late) {
  TopLook look{.at_ns = at_ns, .answers = {}};
  CollectorAnswer answer{.socket = "here", .reply = {}};
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    v1::ProcessStatus& process = *answer.reply.add_processes();
    process.set_session(rank + 1);
    process.set_job("job");
    process.set_rank(rank);
    process.set_state(v1::ProcessStatus::STATE_CONNECTED);
    v1::LiveStatus& live = *process.mutable_live();
    for (int i = 0; i < 64; ++i) live.add_step_ns(100 * kMs + rank);
    live.set_steps(64);
    live.set_collective_ns(at_ns == 0 || rank == late ? 0 : 6 * kScreenSecond);
    live.set_data_ns(at_ns == 0 ? 0 : rank == late ? 5 * kScreenSecond : kScreenSecond / 10);
  }
  look.answers.push_back(answer);
  return look;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A block of the sparkline is one column of three bytes.
size_t ColumnsOf(const std::string& line) {
  return static_cast<size_t>(
      std::ranges::count_if(line, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

TEST(TopScreenTest, Of512RanksTheLateOneIsFirstOnAnyScreenAndTheKeysAreLast) {
  const std::vector<TopRow> rows =
      RowsOf(LookAtRanks(0, 512, 0), LookAtRanks(10 * kScreenSecond, 512, 300));
  for (const auto& [height, width] : {std::pair<size_t, size_t>{24, 80}, {50, 160}, {10, 60}}) {
    Table table = TopTable(rows, TopSpark(width), true);
    for (int i = 0; i < 100; ++i) table.notes.push_back("rank " + std::to_string(i) + " lost 1");
    const auto lines = LinesOf(TopScreen(table, {.rows = height, .columns = width}, {}));
    ASSERT_LE(lines.size(), height);
    const auto is_row = [](const std::string& line) { return line.find("▄") != line.npos; };
    const auto row = std::ranges::find_if(lines, is_row);
    ASSERT_NE(row, lines.end());
    EXPECT_THAT(*row, HasSubstr(" 300 "));
    EXPECT_THAT(*row, HasSubstr("late"));
    EXPECT_LE(ColumnsOf(*row), width) << *row;
    EXPECT_THAT(lines.back(), HasSubstr("q quit"));
    const auto is_below = [](const std::string& line) {
      return line.find("ranks more below") != line.npos;
    };
    EXPECT_EQ(std::ranges::count_if(lines, is_below), 1) << height;
  }
}

TEST(TopScreenTest, AScreenOfOneLineShowsOneLine) {
  const std::vector<TopRow> rows =
      RowsOf(LookAtRanks(0, 3, 0), LookAtRanks(10 * kScreenSecond, 3, 1));
  EXPECT_EQ(LinesOf(TopScreen(TopTable(rows, 12, false), {.rows = 1, .columns = 10}, {})).size(),
            1u);
}

TEST(SlowStepsTest, AStepIsSlowByItsFactorAndByTwoTenthsOfASecond) {
  SlowSteps slow(3);
  v1::ProcessStatus process;
  process.set_session(1);
  process.set_rank(4);
  v1::LiveStatus& live = *process.mutable_live();
  const auto step = [&](uint64_t ns) {
    live.add_step_ns(ns);
    live.set_steps(live.steps() + 1);
  };
  for (int i = 0; i < 5; ++i) step(kMs);
  step(10 * kScreenSecond);
  EXPECT_THAT(slow.Look(process), IsEmpty()) << "nobody knows the usual one yet";
  for (int i = 0; i < 20; ++i) step(100 * kMs);
  step(290 * kMs);
  EXPECT_THAT(slow.Look(process), IsEmpty());
  step(400 * kMs);
  step(100 * kMs);
  EXPECT_EQ(slow.Look(process), "a step of rank 4 took 400.0 ms, usually 100.0 ms");
  EXPECT_THAT(slow.Look(process), IsEmpty()) << "told once";
  for (int i = 0; i < 200; ++i) step(kMs);
  step(150 * kMs);
  EXPECT_THAT(slow.Look(process), IsEmpty()) << "150 times as long, and nobody minds";
}

}  // namespace
}  // namespace ranktap::collector
