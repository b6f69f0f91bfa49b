// How tables are laid out in a terminal that is too narrow for them.
#include "collector/report/text/table_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "collector/report/text/short_shapes.h"

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

TEST(TableText, ColumnsThatHaveNoRoomFollowBelowBesideTheNames) {
  Table table;
  table.title = "Wide";
  table.columns = {{"name", Unit::kText}};
  for (const char* const name : {"first_one", "second_one", "third_one", "fourth_one"}) {
    table.columns.push_back({name, Unit::kCount});
  }
  table.rows = {{std::string("gemm"), int64_t{1'000'001}, int64_t{1'000'002}, int64_t{1'000'003},
                 int64_t{1'000'004}}};
  EXPECT_EQ(FormatText(table, 30, 0),
            "Wide\n"
            "  name  first one     second\n"
            "                         one\n"
            "  gemm  1,000,001  1,000,002\n"
            "  name  third one     fourth\n"
            "                         one\n"
            "  gemm  1,000,003  1,000,004\n");
}

TEST(TableText, OurOwnWordsAreNotCutAndWhatNamesHaveInCommonIsSaidOnce) {
  Table table;
  table.title = "Modules";
  table.columns = {{"module", Unit::kText}, {"cause", Unit::kText}};
  const std::string path = "DistributedDataParallel.module.transformer";
  for (const char* const name : {".h.0.mlp.c_fc", ".h.0.mlp.c_proj", ".h.1.mlp.c_proj"}) {
    table.rows.push_back({path + name, std::string("exposed transfer")});
  }
  EXPECT_EQ(FormatText(table, 50, 0),
            "Modules\n"
            "  module          cause\n"
            "  ~.0.mlp.c_fc    exposed transfer\n"
            "  ~.0.mlp.c_proj  exposed transfer\n"
            "  ~.1.mlp.c_proj  exposed transfer\n"
            "  note: ~ is\n"
            "        DistributedDataParallel.module.transformer\n"
            "        .h\n");
}

TEST(ShortShapes, KeepWhatTellsInputsApart) {
  EXPECT_EQ(ShortShapes("[[32, 10], [64], [], []]"), "32x10, 64, +2");
  EXPECT_EQ(ShortShapes("[[], [32, 10]]"), "-, 32x10");
  EXPECT_EQ(ShortShapes("[[[2, 3], [4], []], []]"), "[2x3, 4, -], +1");
  EXPECT_EQ(ShortShapes("[[]]"), "-");
  EXPECT_EQ(ShortShapes("[]"), "[]");
  EXPECT_EQ(ShortShapes("[[1, 2"), "[[1, 2");
  EXPECT_EQ(ShortShapes("[[\"a\"]]"), "[[\"a\"]]");
}

// Three calls of one operator, as ops --group-by-shape lists them.
Table OfShapes() {
  Table table;
  table.title = "Operators";
  table.columns = {{"name", Unit::kText}, {"calls", Unit::kCount}, {"input_shapes", Unit::kText}};
  for (const char* const first : {"[128, 512]", "[128, 1024]", "[256, 1024]"}) {
    const std::string shapes = std::string("[") + first + ", [512, 1024], [], [], []]";
    table.rows.push_back({std::string("aten::scaled_dot_product"), int64_t{3}, shapes});
  }
  return table;
}

TEST(TableText, ShapesAreShortAndToldApartWhereThereIsLittleRoom) {
  EXPECT_EQ(FormatText(OfShapes(), 60, 0),
            "Operators\n"
            "  name                      calls  input shapes\n"
            "  aten::scaled_dot_product      3  128x512, 512x1024, +3\n"
            "  aten::scaled_dot_product      3  128x1024, 512x1024, +3\n"
            "  aten::scaled_dot_product      3  256x1024, 512x1024, +3\n");
  EXPECT_THAT(FormatText(OfShapes(), 120, 0), testing::HasSubstr("[[128, 512], [512, 1024], []"));
}

TEST(TableText, AColumnOfShapesOrSourcesTakesNoMoreThanItsOwnWidth) {
  Table table = OfShapes();
  table.columns.push_back({"source", Unit::kText});
  for (std::vector<Cell>& row : table.rows) row.emplace_back("train.py(31): step_of_training");
  const std::string text = FormatText(table, 0, 0, {.names = 15, .sources = 20, .shapes = 24});
  EXPECT_THAT(text, testing::HasSubstr("  aten::...roduct  "));
  EXPECT_THAT(text, testing::HasSubstr("  128x512, 512x1024, +3  "));
  EXPECT_THAT(text, testing::HasSubstr("  train.py..._training\n"));
}

}  // namespace
}  // namespace ranktap::collector
