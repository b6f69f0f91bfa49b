#include "collector/file/hang_notes.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "collector/hang/hang_directory.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using ::testing::ElementsAre;

TEST(HangNotes, AHangsDirectoryIsReadBackAsItWasWritten) {
  const TemporaryDirectory folder;
  const FileDescriptor parent(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY));
  const WaitVerdict verdict{.cause = WaitCause::kStuck,
                            .waiting = {0, 2},
                            .awaited = {1},
                            .waited_ns = 5,
                            .sentence = "Rank 1 did not enter AllReduce.",
                            .advice = "look"};
  RankLook look{.rank = 1, .pid = 4711};
  for (const uint64_t second : {1'700'000'000, 1'700'000'060}) {
    Result<HangDirectory> hang =
        HangDirectory::Create(parent.get(), folder.path(), second * 1'000'000'000);
    ASSERT_TRUE(hang) << hang.message();
    hang->WriteVerdict(verdict, {&look}, second * 1'000'000'000);
    hang->WriteStacks(1, {look});
    EXPECT_TRUE(std::filesystem::exists(hang->path() + "/stacks-1.txt"));
    if (second != 1'700'000'060) continue;
    hang->AddCalls({.cause = "not entered",
                    .ranks = "rank 1",
                    .finding = "Rank 1 did not enter AllReduce #6 (64 B, group dp_0).",
                    .advice = "find it",
                    .is_guilty = true,
                    .waiting = 2});
    EXPECT_FALSE(std::filesystem::exists(hang->path() + "/hang.json.new"));
  }
  const std::vector<HangNote> notes = ReadHangNotes(folder.path());
  ASSERT_EQ(notes.size(), 2);
  EXPECT_EQ(notes[0].directory, folder.path() + "/hang-20231114T221420Z");
  EXPECT_EQ(notes[0].sentence, verdict.sentence);
  EXPECT_EQ(notes[0].cause, "stuck");
  EXPECT_TRUE(notes[0].is_guilty());
  EXPECT_THAT(notes[0].waiting, ElementsAre(0, 2));
  EXPECT_THAT(notes[0].awaited, ElementsAre(1));
  ASSERT_TRUE(notes[0].calls.has_value());
  EXPECT_EQ(notes[0].calls->cause, "not entered");
  EXPECT_EQ(notes[0].calls->ranks, "rank 1");
  EXPECT_EQ(notes[0].calls->finding, "Rank 1 did not enter AllReduce #6 (64 B, group dp_0).");
  EXPECT_EQ(notes[0].calls->advice, "find it");
  EXPECT_TRUE(notes[0].calls->is_guilty);
  EXPECT_EQ(notes[0].calls->waiting, 2u);
  EXPECT_FALSE(notes[1].calls.has_value()) << "nobody was asked, or nobody answered";
}

TEST(HangNotes, CallsThatAreNoneLeaveTheRestAsItIs) {
  for (const char* const calls : {"5", "[]", "{}", "null", R"({"finding": 7, "waiting": -1})"}) {
    const TemporaryDirectory folder;
    std::filesystem::create_directory(folder / "hang-1");
    std::ofstream(folder / "hang-1/hang.json")
        << R"({"sentence": "Rank 1", "calls": )" << calls << "}";
    const std::vector<HangNote> notes = ReadHangNotes(folder.path());
    ASSERT_EQ(notes.size(), 1) << calls;
    EXPECT_FALSE(notes[0].calls.has_value()) << calls;
  }
}

TEST(HangNotes, OnAFullDiskItsDirectoryHasWholeFilesAloneAndTheFirstThatIsMissingIsNamed) {
  ::signal(SIGXFSZ, SIG_IGN);
  const TemporaryDirectory folder;
  const FileDescriptor parent(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY));
  Result<HangDirectory> hang = HangDirectory::Create(parent.get(), folder.path(), 0);
  ASSERT_TRUE(hang) << hang.message();
  rlimit unlimited{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  rlimit limit = unlimited;
  limit.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  RankLook look{.rank = 1, .pid = ::getpid()};
  hang->WriteVerdict({.sentence = "Rank 1 did not enter AllReduce."}, {&look}, 0);
  hang->WriteProcFacts({look});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  EXPECT_EQ(hang->problem(), hang->path() + "/hang.json: could not be written: File too large");
  EXPECT_TRUE(std::filesystem::is_empty(hang->path()));
  EXPECT_TRUE(ReadHangNotes(folder.path()).empty());
}

TEST(HangNotes, WhatIsNoSuchFileIsLeftOutAndWaitedForByNobody) {
  const TemporaryDirectory folder;
  for (const char* const name : {"hang-1", "hang-2", "hang-3", "hang-4"}) {
    std::filesystem::create_directory(folder.path() + "/" + name);
  }
  std::ofstream(folder.path() + "/hang-1/hang.json")
      << "{\"sentence\": 7, \"waiting\": [-1, 1e99]}";
  std::ofstream(folder.path() + "/hang-2/hang.json") << "[[[[";
  ASSERT_EQ(::mkfifo((folder.path() + "/hang-3/hang.json").c_str(), 0600), 0);
  std::ofstream(folder.path() + "/hang-4/hang.json")
      << R"({"sentence": "a\u001b[2Jb", "waiting": [1, -1, 99999999999, "x"], "awaited": {}})";
  const std::vector<HangNote> notes = ReadHangNotes(folder.path());
  ASSERT_EQ(notes.size(), 1);
  EXPECT_EQ(notes[0].sentence.find('\033'), std::string::npos);
  EXPECT_THAT(notes[0].waiting, ElementsAre(1));
  EXPECT_TRUE(ReadHangNotes("/nowhere").empty());
}

}  // namespace
}  // namespace ranktap::collector
