#include "collector/parquet/parquet_file.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "collector/parquet/data_set.h"
#include "tests/unit/collector/parquet/parquet_reader.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

template <typename Number>
std::string Bytes(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

ParquetValues Integers(ParquetType type, const std::vector<int64_t>& numbers) {
  ParquetValues values({"number", type, false});
  for (const int64_t number : numbers) values.Integer(number);
  return values;
}

class ParquetFileTest : public testing::Test {
 protected:
  // What the file of these columns, one row group, reads back as.
  ParquetContent Read(const std::vector<ParquetValues>& columns) {
    ParquetSchema schema;
    for (const ParquetValues& column : columns) schema.fields.push_back(column.field());
    auto file = ParquetFile::Create(path_, schema);
    EXPECT_TRUE(file.ok());
    for (const ParquetValues& column : columns) file->Write(column);
    EXPECT_FALSE(file->Close());
    return ReadParquet(ReadFile(path_));
  }
  ParquetChunk ReadOne(const ParquetValues& column) { return Read({column}).row_groups[0][0]; }

  TemporaryDirectory directory_;
  std::string path_ = directory_.path() + "/file.parquet";
};

template <typename Number>
void ExpectCells(const ParquetChunk& chunk, const std::vector<int64_t>& numbers) {
  ASSERT_EQ(chunk.cells.size(), numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(chunk.cells[i], Bytes(static_cast<Number>(numbers[i]))) << "row " << i;
  }
}

std::vector<int64_t> Scattered(size_t count) {
  std::vector<int64_t> numbers;
  uint64_t random = 88172645463325252u;
  for (size_t i = 0; i < count; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    numbers.push_back(static_cast<int64_t>(random));
  }
  return numbers;
}

// pyarrow 26 and DuckDB 2.0 read these.
TEST_F(ParquetFileTest, OneNumberIsTheseBytes) {
  Read({Integers(ParquetType::kInt64, {300})});
  EXPECT_EQ(Hex(ReadFile(path_)),
            "504152311504151015224c15021500000028b52ffd20084100002c010000000000001500150615182c15"
            "02151015061506000028b52ffd20031900000103001504192c4806736368656d61150200150425001806"
            "6e756d626572001602191c191c26081c150419350006101918066e756d626572150c1602165216762644"
            "26081c360028082c0100000000000018082c010000000000000000001652160226081676140000281172"
            "616e6b7461702076657273696f6e2031191c1c0000007f00000050415231");
}

TEST_F(ParquetFileTest, WholeNumbersKeepEveryBit) {
  std::vector<int64_t> numbers = Scattered(1000);
  for (const int64_t extreme : {std::numeric_limits<int64_t>::min(), int64_t{-1}, int64_t{0},
                                std::numeric_limits<int64_t>::max()}) {
    numbers.insert(numbers.end(), {extreme, 5});
  }
  const ParquetChunk wide = ReadOne(Integers(ParquetType::kInt64, numbers));
  ExpectCells<int64_t>(wide, numbers);
  EXPECT_EQ(wide.least, Bytes(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(wide.largest, Bytes(std::numeric_limits<int64_t>::max()));
  for (int64_t& number : numbers) number = static_cast<int32_t>(number);
  ExpectCells<int32_t>(ReadOne(Integers(ParquetType::kInt32, numbers)), numbers);
}

TEST_F(ParquetFileTest, EveryCountOfRowsFillsItsBlocks) {
  for (const size_t count : {1, 2, 7, 8, 9, 31, 32, 33, 34, 128, 129, 130, 257}) {
    const std::vector<int64_t> numbers = Scattered(count);
    ExpectCells<int64_t>(ReadOne(Integers(ParquetType::kInt64, numbers)), numbers);
  }
}

TEST_F(ParquetFileTest, NumbersThatRepeatHaveADictionary) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < 3000; ++i) numbers.push_back(i % 11 < 9 ? 7 : i % 5 - 1'000'000'000'000);
  const ParquetChunk chunk = ReadOne(Integers(ParquetType::kInt64, numbers));
  ExpectCells<int64_t>(chunk, numbers);
  EXPECT_THAT(chunk.encodings, ElementsAre(0, 3, 8));
}

TEST_F(ParquetFileTest, ALongColumnHasPagesOfAMegabyte) {
  std::vector<int64_t> numbers(300'000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i * i);
  const ParquetChunk chunk = ReadOne(Integers(ParquetType::kInt64, numbers));
  ExpectCells<int64_t>(chunk, numbers);
  EXPECT_EQ(chunk.pages, 3);
}

TEST_F(ParquetFileTest, NullsAreCountedAndKeepTheirPlaces) {
  ParquetValues column({"sometimes", ParquetType::kInt64, true});
  std::vector<ParquetCell> expected;
  for (int64_t i = 0; i < 500; ++i) {
    if (i % 3 == 0 || (i > 100 && i < 200)) {
      column.Null();
      expected.push_back(std::nullopt);
    } else {
      column.Integer(i);
      expected.push_back(Bytes(i));
    }
  }
  const ParquetChunk chunk = ReadOne(column);
  EXPECT_EQ(chunk.cells, expected);
  EXPECT_EQ(chunk.null_count, std::ranges::count(expected, ParquetCell()));
  EXPECT_EQ(chunk.least, Bytes(int64_t{1}));
}

TEST_F(ParquetFileTest, AColumnOfNullsHasNoBounds) {
  for (const ParquetType type : {ParquetType::kInt64, ParquetType::kText, ParquetType::kDouble}) {
    ParquetValues column({"never", type, true});
    for (int i = 0; i < 20; ++i) column.Null();
    const ParquetChunk chunk = ReadOne(column);
    EXPECT_EQ(chunk.null_count, 20);
    EXPECT_EQ(chunk.least, std::nullopt);
    EXPECT_EQ(chunk.largest, std::nullopt);
  }
}

TEST_F(ParquetFileTest, TextsAreUtf8WhateverTheProgramUsed) {
  ParquetValues column({"name", ParquetType::kText, true});
  for (const std::string& text :
       {std::string("gemm"), std::string("K\xC3\xBC\xE2\x82\xAC"), std::string("a\0b", 3),
        std::string("bad\xFF"), std::string("gemm")}) {
    column.Text(text);
  }
  column.Null();
  const ParquetChunk chunk = ReadOne(column);
  EXPECT_THAT(chunk.cells, ElementsAre("gemm", "K\xC3\xBC\xE2\x82\xAC", std::string("a\0b", 3),
                                       "bad\xEF\xBF\xBD", "gemm", std::nullopt));
  EXPECT_EQ(chunk.least, "K\xC3\xBC\xE2\x82\xAC");
  EXPECT_EQ(chunk.largest, "gemm");
}

TEST_F(ParquetFileTest, SeventyThousandTextsAreNotTooMany) {
  ParquetValues column({"name", ParquetType::kText, true});
  for (int i = 0; i < 70'000; ++i) column.Text("kernel_" + std::to_string(i));
  const ParquetChunk chunk = ReadOne(column);
  EXPECT_EQ(chunk.cells[69'999], "kernel_69999");
}

TEST_F(ParquetFileTest, ALongTextIsNoBound) {
  ParquetValues column({"stack", ParquetType::kText, false});
  column.Text(std::string(5000, 'x'));
  EXPECT_EQ(ReadOne(column).least, std::nullopt);
}

TEST_F(ParquetFileTest, RealsAndBooleansReadBack) {
  ParquetValues reals({"real", ParquetType::kDouble, false});
  ParquetValues flags({"flag", ParquetType::kBool, true});
  for (int i = 0; i < 100; ++i) {
    reals.Real(i == 7 ? 0.0 : std::sqrt(i));
    i % 10 == 9 ? flags.Null() : flags.Bool(i % 3 == 0);
  }
  const ParquetContent content = Read({reals, flags});
  EXPECT_EQ(content.row_groups[0][0].cells[2], Bytes(std::sqrt(2)));
  EXPECT_EQ(content.row_groups[0][0].least, Bytes(-0.0));
  EXPECT_EQ(content.row_groups[0][1].cells[3], std::string(1, '\1'));
  EXPECT_EQ(content.row_groups[0][1].cells[4], std::string(1, '\0'));
  EXPECT_EQ(content.row_groups[0][1].cells[9], std::nullopt);
}

TEST_F(ParquetFileTest, ANanLeavesAColumnWithoutBounds) {
  ParquetValues reals({"real", ParquetType::kDouble, false});
  reals.Real(1), reals.Real(std::nan(""));
  EXPECT_EQ(ReadOne(reals).least, std::nullopt);
}

TEST_F(ParquetFileTest, RowGroupsFollowEachOtherAndSayHowTheyAreSorted) {
  const ParquetField field{"number", ParquetType::kInt64, false};
  auto file = ParquetFile::Create(path_, {.fields = {field}, .sorted_by = {0}});
  ASSERT_TRUE(file.ok());
  file->Write(Integers(ParquetType::kInt64, {1, 2, 3}));
  file->Write(Integers(ParquetType::kInt64, {4, 9}));
  EXPECT_FALSE(file->Close());
  const ParquetContent content = ReadParquet(ReadFile(path_));
  ASSERT_EQ(content.row_groups.size(), 2u);
  EXPECT_EQ(content.row_groups[1][0].cells[1], Bytes(int64_t{9}));
  const ThriftValue& sorted = content.footer[4].list[1][4].list.at(0);
  EXPECT_EQ(sorted[1].number, 0);
  EXPECT_EQ(sorted[2].number, 0);
  // Without an order of each column readers ignore bounds.
  EXPECT_EQ(content.footer[7].list.size(), 1u);
}

TEST_F(ParquetFileTest, AFileWithoutRowsHasItsColumns) {
  auto file = ParquetFile::Create(path_, {.fields = {{"name", ParquetType::kText, true}}});
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->Close());
  const ParquetContent content = ReadParquet(ReadFile(path_));
  EXPECT_THAT(content.row_groups, IsEmpty());
  EXPECT_EQ(content.footer[2].list.at(1)[4].bytes, "name");
}

TEST_F(ParquetFileTest, AFileThatIsNotClosedIsNotThere) {
  {
    const auto file = ParquetFile::Create(path_, {.fields = {{"name", ParquetType::kText, true}}});
  }
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(ParquetFileTest, AFolderThatIsNotThereIsNamed) {
  const auto file = ParquetFile::Create(directory_.path() + "/missing/file.parquet", {});
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.message(), HasSubstr("/missing/file.parquet"));
}

class DataSetTest : public testing::Test {
 protected:
  static constexpr std::string_view kTables[] = {"kernels"};

  std::optional<Failure> Add(const std::string& run, bool replace, int64_t number) {
    auto set = DataSet::Open(folder_, run, replace, kTables);
    if (!set) return Failure{set.message()};
    auto file =
        set->CreateOfRank("kernels", 3, {.fields = {{"number", ParquetType::kInt64, false}}});
    EXPECT_TRUE(file.ok());
    file->Write(Integers(ParquetType::kInt64, {number}));
    EXPECT_FALSE(file->Close());
    return set->Publish();
  }
  std::string NumberOf(const std::string& run) const {
    const std::string path = folder_ + "/kernels/run=" + run + "/rank=3/part-0.parquet";
    return *ReadParquet(ReadFile(path)).row_groups[0][0].cells[0];
  }

  TemporaryDirectory directory_;
  std::string folder_ = directory_.path() + "/set";
};

TEST_F(DataSetTest, RunsLieBesideEachOther) {
  EXPECT_FALSE(Add("monday", false, 1));
  EXPECT_FALSE(Add("tuesday", false, 2));
  EXPECT_EQ(NumberOf("monday"), Bytes(int64_t{1}));
  EXPECT_EQ(NumberOf("tuesday"), Bytes(int64_t{2}));
}

TEST_F(DataSetTest, ARunIsReplacedOnlyWhenAskedFor) {
  EXPECT_FALSE(Add("monday", false, 1));
  const auto refused = Add("monday", false, 2);
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->message, HasSubstr("--replace"));
  EXPECT_EQ(NumberOf("monday"), Bytes(int64_t{1}));
  EXPECT_FALSE(Add("monday", true, 2));
  EXPECT_EQ(NumberOf("monday"), Bytes(int64_t{2}));
}

TEST_F(DataSetTest, WhatIsNotPublishedLeavesNothing) {
  {
    auto set = DataSet::Open(folder_, "monday", false, kTables);
    ASSERT_TRUE(set.ok());
    EXPECT_TRUE(set->CreateOfRank("kernels", 0, {.fields = {{"number"}}}).ok());
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(DataSetTest, ProcessesOfOneRankHaveFilesOfTheirOwn) {
  auto set = DataSet::Open(folder_, "monday", false, kTables);
  ASSERT_TRUE(set.ok());
  for (int i = 0; i < 2; ++i) {
    auto file = set->CreateOfRank("kernels", std::nullopt, {.fields = {{"number"}}});
    ASSERT_TRUE(file.ok());
    EXPECT_FALSE(file->Close());
  }
  EXPECT_FALSE(set->Publish());
  const std::string rank = folder_ + "/kernels/run=monday/rank=__HIVE_DEFAULT_PARTITION__/";
  EXPECT_TRUE(fs::exists(rank + "part-0.parquet"));
  EXPECT_TRUE(fs::exists(rank + "part-1.parquet"));
}

TEST(RunNames, AreWhatEnginesReadBack) {
  EXPECT_EQ(RunNameOf("/data/my run=1/"), "my-run-1");
  EXPECT_TRUE(IsRunName("job-4711.a_b"));
  EXPECT_FALSE(IsRunName("a/b"));
  EXPECT_FALSE(IsRunName(""));
}

}  // namespace
}  // namespace ranktap::collector
