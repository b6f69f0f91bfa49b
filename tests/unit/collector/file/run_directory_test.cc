#include "collector/file/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(RunDirectoryTest, ARanksFileKeepsTheNameItReserved) {
  const TemporaryDirectory directory;
  auto run = RunDirectory::Create(directory / "run", "x");
  ASSERT_TRUE(run.ok());
  const TraceName rank{.rank = 3, .pid = 100};
  auto first = run->CreatePart(rank), second = run->CreatePart(rank);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->file_name(), "rank-00003.trace.part");
  EXPECT_EQ(second->file_name(), "rank-00003.1.trace.part");
  // The second ends first, and leaves the first its name.
  EXPECT_EQ(*run->Publish(*second, rank), "rank-00003.1.trace");
  EXPECT_EQ(*run->Publish(*first, rank), "rank-00003.trace");
}

TEST(RunDirectoryTest, ARankLearntLateGetsTheNextFreeName) {
  const TemporaryDirectory directory;
  auto run = RunDirectory::Create(directory / "run", "x");
  auto known = run->CreatePart({.rank = 3, .pid = 1});
  auto unknown = run->CreatePart({.rank = std::nullopt, .pid = 2});
  EXPECT_EQ(unknown->file_name(), "process-2.trace.part");
  EXPECT_EQ(*run->Publish(*unknown, {.rank = 3, .pid = 2}), "rank-00003.1.trace");
}

TEST(RunDirectoryTest, ADirectoryThatHoldsSomethingIsLeftAlone) {
  const TemporaryDirectory directory;
  WriteFile(directory / "mine", "precious");
  auto first = RunDirectory::Create(directory.path(), "ranktap-x");
  auto second = RunDirectory::Create(directory.path(), "ranktap-x");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->path(), directory / "ranktap-x");
  EXPECT_EQ(second->path(), directory / "ranktap-x-2");
}

TEST(RunDirectoryTest, AnEmptyDirectoryIsUsedAsItIs) {
  const TemporaryDirectory directory;
  EXPECT_EQ(RunDirectory::Create(directory.path(), "x")->path(), directory.path());
}

TEST(RunDirectoryTest, ParentsAreMade) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(RunDirectory::Create(directory / "a/b/c", "x").ok());
  EXPECT_TRUE(fs::is_directory(directory / "a/b/c"));
}

TEST(RunDirectoryTest, WhatCannotBeMadeIsNamedWithTheReason) {
  const TemporaryDirectory directory;
  WriteFile(directory / "file", "");
  const auto run = RunDirectory::Create(directory / "file/run", "x");
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.message(), HasSubstr("file/run"));
  EXPECT_THAT(RunDirectory::Create("/proc/ranktap", "x").message(), HasSubstr("/proc/ranktap"));
}

TEST(RunDirectoryTest, APlantedLinkIsNotFollowed) {
  const TemporaryDirectory directory;
  auto run = RunDirectory::Create(directory / "run", "x");
  WriteFile(directory / "victim", "precious");
  fs::create_symlink(directory / "victim", directory / "run/rank-00000.trace.part");
  fs::create_symlink(directory / "victim", directory / "run/run.json.new");
  auto part = run->CreatePart({.rank = 0, .pid = 1});
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->file_name(), "rank-00000.1.trace.part");
  EXPECT_FALSE(run->WriteInfo({}).has_value());
  EXPECT_EQ(ReadFile(directory / "victim"), "precious");
}

TEST(RunDirectoryTest, EverythingIsPrivateWhateverTheUmask) {
  const TemporaryDirectory directory;
  for (const mode_t mask : {0000, 0022, 0077, 0777}) {
    const mode_t before = ::umask(mask);
    auto run = RunDirectory::Create(directory / ("run" + std::to_string(mask)), "x");
    ASSERT_TRUE(run.ok()) << run.message();
    EXPECT_TRUE(run->CreatePart({.rank = 0, .pid = 1}).ok());
    EXPECT_FALSE(run->WriteInfo({}).has_value());
    ::umask(before);
    struct stat status {};
    ASSERT_EQ(::stat(run->path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    for (const auto& entry : fs::directory_iterator(run->path())) {
      ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 0777, 0600u) << entry.path();
    }
  }
}

TEST(RunInfoTest, WhatIsWrittenIsRead) {
  RunInfo info;
  info.run = "abc";
  info.command = {"python", "train.py", "caf\xe9"};
  info.start_realtime_ns = 1'700'000'000'000'000'000;
  info.exit_status = 3;
  info.refused = {{"bad frame", 2}};
  TraceInfo trace;
  trace.file = "rank-00001.trace";
  trace.rank = 1;
  trace.status = TraceStatus::kDied;
  trace.detail = "killed by signal 9 (SIGKILL)";
  trace.notes = {"no libcupti"};
  info.traces.push_back(trace);

  const auto read = ParseRunInfo(ToJson(info), "run.json");
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(read->run, "abc");
  EXPECT_EQ(read->command[1], "train.py");
  EXPECT_EQ(read->command[2], "caf\xef\xbf\xbd") << "bytes that are not UTF-8 are replaced";
  EXPECT_EQ(read->exit_status, 3);
  EXPECT_FALSE(read->exit_signal);
  EXPECT_FALSE(read->end_realtime_ns);
  EXPECT_EQ(read->refused.at("bad frame"), 2u);
  ASSERT_EQ(read->traces.size(), 1u);
  EXPECT_EQ(read->traces[0].rank, 1u);
  EXPECT_EQ(read->traces[0].status, TraceStatus::kDied);
  EXPECT_EQ(read->traces[0].notes, trace.notes);
}

TEST(RunInfoTest, AFieldWithAValueOfTheWrongKindIsLeftOut) {
  for (const char* const rank : {"3e126", "1.5", "-1", "4294967296", "true"}) {
    const std::string text =
        R"({"traces":[{"file":"a.trace","pid":7,"rank":)" + std::string(rank) + "}]}";
    const auto read = ParseRunInfo(text, "run.json");
    ASSERT_TRUE(read) << read.message();
    ASSERT_EQ(read->traces.size(), 1u);
    EXPECT_EQ(read->traces[0].rank, std::nullopt) << rank;
    EXPECT_EQ(read->traces[0].pid, 7u);
  }
  for (const char* const count : {"3e126", "1.5", "-1", "18446744073709551616", "true"}) {
    const std::string text = R"({"run":"a","refused":{"why":)" + std::string(count) + "}}";
    const auto read = ParseRunInfo(text, "run.json");
    ASSERT_TRUE(read) << read.message();
    EXPECT_TRUE(read->refused.empty()) << count;
    EXPECT_EQ(read->run, "a");
  }
}

TEST(RunInfoTest, AnythingElseIsRefusedByName) {
  EXPECT_THAT(ParseRunInfo("{", "dir/run.json").message(), HasSubstr("dir/run.json"));
  EXPECT_THAT(ParseRunInfo("[]", "run.json").message(), HasSubstr("not a JSON object"));
  EXPECT_THAT(ParseRunInfo(R"({"format": 99})", "run.json").message(), HasSubstr("newer"));
  EXPECT_TRUE(ParseRunInfo(R"({"traces": [1, {"rank": "x"}], "command": 5})", "run.json").ok());
}

}  // namespace
}  // namespace ranktap::collector
