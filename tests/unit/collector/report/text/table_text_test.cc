// How tables are laid out in a terminal that is too narrow for them.
#include "collector/report/text/table_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace ranktap::collector {
namespace {

Table TwoCounts() {
  Table table;
  table.title = "Two counts";
  table.columns = {{"longest_rank_of_all", Unit::kCount}, {"second_longest_rank", Unit::kCount}};
  table.rows = {{int64_t{12}, int64_t{7}}};
  return table;
}

size_t WidestLine(const std::string& text) {
  std::istringstream lines(text);
  size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

TEST(TableText, HeadingsTakeOneLineWhereThereIsRoom) {
  EXPECT_EQ(FormatText(TwoCounts(), 80, 0),
            "Two counts\n"
            "  longest rank of all  second longest rank\n"
            "                   12                    7\n");
}

TEST(TableText, HeadingsAreBrokenBetweenWordsBeforeALineIsTooLong) {
  EXPECT_EQ(FormatText(TwoCounts(), 24, 0),
            "Two counts\n"
            "  longest         second\n"
            "  rank of   longest rank\n"
            "      all\n"
            "       12              7\n");
}

TEST(TableText, AWordAndANumberAreNeverBroken) {
  Table table = TwoCounts();
  table.rows = {{int64_t{1'234'567}, int64_t{7}}};
  const std::string text = FormatText(table, 8, 0);
  EXPECT_THAT(text, testing::HasSubstr("1,234,567"));
  EXPECT_THAT(text, testing::HasSubstr("longest"));
  EXPECT_LT(WidestLine(text), 22u);
}

}  // namespace
}  // namespace ranktap::collector
