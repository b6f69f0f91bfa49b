#include "collector/cli/large_run.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kEvents = 1000, kRanks = 4;
// More than the files say that they hold.
constexpr uint64_t kTakes = (42 * kRanks + 63) * kEvents;

class LargeRunTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int rank = 0; rank < kRanks; ++rank) {
      TraceFileBuilder file(FileOf(rank));
      file.AddEvents(1, MakeKernels(kEvents, 1'000'000));
      file.EndBlock();
      file.Close();
    }
  }
  std::string FileOf(int rank) const {
    return run_ / ("rank-0000" + std::to_string(rank) + ".trace");
  }
  RunRoom Room(uint64_t free_bytes, const RunSelection& selection = {},
               bool names_tables = false) const {
    return RoomFor({run_.path()}, selection, names_tables, free_bytes, 1);
  }

  TemporaryDirectory run_;
};

TEST_F(LargeRunTest, NothingIsSaidOfARunThatTakesLittle) {
  const RunRoom room = Room(3 * kTakes);
  EXPECT_TRUE(room.fits);
  EXPECT_THAT(room.sentence, IsEmpty());
  EXPECT_FALSE(room.wants);
}

TEST_F(LargeRunTest, ARunThatTakesMuchIsLoadedAndSaysWhatWouldTakeLess) {
  const RunRoom room = Room(3 * kTakes / 2);
  EXPECT_TRUE(room.fits);
  EXPECT_THAT(room.sentence, HasSubstr(" events take about "));
  EXPECT_THAT(room.sentence, HasSubstr("; less with --ranks 0-"));
  EXPECT_THAT(room.sentence, HasSubstr(" or with some of its steps (--steps 10-19)"));
}

TEST_F(LargeRunTest, ARunThatDoesNotFitSaysWhichRanksWould) {
  const RunRoom room = Room(90'000);
  EXPECT_FALSE(room.fits);
  EXPECT_THAT(room.sentence, HasSubstr("; it fits with --ranks 0 or with some of its steps"));
}

TEST_F(LargeRunTest, ATableOfARunThatDoesNotFitAsAWholeIsNotRefused) {
  const RunRoom room = Room(kTakes / 2, {}, true);
  EXPECT_FALSE(Room(kTakes / 2).fits);
  EXPECT_TRUE(room.fits);
  EXPECT_THAT(room.sentence, HasSubstr(" events take at least "));
}

TEST_F(LargeRunTest, NoPartOfOneRankFits) {
  const RunRoom room = Room(kTakes / 16);
  EXPECT_FALSE(room.fits);
  EXPECT_THAT(room.sentence, HasSubstr(": record fewer steps, or take a machine with more"));
}

TEST_F(LargeRunTest, OnlyNamedRanksOfALargeRunAreLoaded) {
  const RunRoom room = Room(4 * kTakes / 3, {.ranks = "1", .steps = {}, .window = {}});
  EXPECT_TRUE(room.fits);
  EXPECT_THAT(room.sentence, IsEmpty());
  ASSERT_TRUE(room.wants);
  EXPECT_FALSE(room.wants(FileOf(0)));
  EXPECT_TRUE(room.wants(FileOf(1)));
  EXPECT_TRUE(room.wants(run_ / "process-12.trace"));
}

TEST_F(LargeRunTest, LessIsFreeInAControlGroup) {
  namespace fs = std::filesystem;
  const std::string root = run_ / "root";
  fs::create_directories(root + "/proc/self");
  fs::create_directories(root + "/sys/fs/cgroup/job/step");
  WriteFile(root + "/proc/meminfo", "MemTotal: 8000 kB\nMemAvailable:    4000 kB\n");
  EXPECT_EQ(FreeMemory(root), 4000u << 10);
  WriteFile(root + "/proc/self/cgroup", "0::/job/step\n");
  WriteFile(root + "/sys/fs/cgroup/job/step/memory.max", "max\n");
  EXPECT_EQ(FreeMemory(root), 4000u << 10);
  WriteFile(root + "/sys/fs/cgroup/job/memory.max", "1000000\n");
  WriteFile(root + "/sys/fs/cgroup/job/memory.stat", "anon 400000\nfile 500000\n");
  EXPECT_EQ(FreeMemory(root), 600'000u);
}

}  // namespace
}  // namespace ranktap::collector
