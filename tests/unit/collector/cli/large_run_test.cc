#include "collector/cli/large_run.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "collector/facts/device_order.h"
#include "collector/trace/load/trace_loader.h"
#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace ranktap::collector {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kEvents = 1000, kRanks = 4;
// More than the files say that they hold.
constexpr uint64_t kTakes = (20 * kRanks + 70) * kEvents;

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
  const RunRoom room = Room(65'000);
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

// Stream 8 ends in the middle of a wait for stream 7.
TEST(DropUnread, ACallIsKnownForTheStreamThatItsRecordNames) {
  const TemporaryDirectory folder;
  TraceFileBuilder file(folder / "rank-00000.trace");
  v1::Dictionary names;
  for (uint32_t id = 1; id <= 2; ++id) {
    v1::ApiFunction& api = *names.add_api_functions();
    api.set_id(id);
    api.set_name(id == 1 ? "cudaLaunchKernel" : "cudaStreamSynchronize");
  }
  file.Add({.type = proto::FrameType::kDictionary}, names.SerializeAsString());
  const auto call = [](uint64_t start, uint64_t end, uint32_t correlation, uint32_t api) {
    proto::ApiCallEvent event{};
    event.start_ticks = start, event.end_ticks = end;
    event.correlation = correlation, event.api = api;
    return event;
  };
  file.AddEvents(
      1, std::vector{call(1010, 1015, 1, 1), call(1016, 1021, 2, 1), call(1030, 1230, 3, 2)});
  const auto kernel = [](uint64_t start, uint64_t end, uint32_t correlation, uint32_t stream) {
    return proto::KernelEvent{.start_ns = start,
                              .end_ns = end,
                              .correlation = correlation,
                              .context = 1,
                              .stream = stream,
                              .name = 1};
  };
  file.AddEvents(2, std::vector{kernel(1020, 1120, 1, 7), kernel(1025, 1225, 2, 8)});
  proto::SyncEvent record{};
  record.start_ns = 1030, record.end_ns = 1230;
  record.correlation = 3;
  record.context = 1, record.stream = 7, record.type = 3;
  file.AddEvents(2, std::vector{record});
  file.EndBlock();
  file.Close();
  collector::Run run;
  Result<Trace> trace = LoadTrace(folder / "rank-00000.trace");
  ASSERT_TRUE(trace) << trace.message();
  run.traces.push_back(std::move(*trace));

  DropUnread({}, &run);

  EXPECT_TRUE(run.traces[0].api_calls.correlation.empty());
  EXPECT_TRUE(run.traces[0].kernels.correlation.empty());
  EXPECT_TRUE(run.traces[0].kernels.shape.empty());
  const DeviceOrder order(run.traces[0]);
  ASSERT_EQ(order.returns().size(), 1u);
  EXPECT_THAT(order.AwaitedBy(order.returns()[0]), ElementsAre(0u));
}

Column<uint32_t> NumbersFrom1(size_t rows) {
  Column<uint32_t> column;
  for (uint32_t i = 1; i <= rows; ++i) column.push_back(i);
  return column;
}

// As traces are loaded: a filter may still ask for the ids of what it leaves.
TEST(DropsUnread, TakesTheIdsOfATraceForTheNextUnlessTheRunIsFiltered) {
  const RunSelection all;
  EXPECT_FALSE(DropsUnread({}, {.ranks = "0-3"}));
  EXPECT_FALSE(DropsUnread({}, {.steps = "1-2"}));
  EXPECT_FALSE(DropsUnread({}, {.window = "0s:1s"}));
  EXPECT_FALSE(DropsUnread({}, {.job = 1}));
  EXPECT_FALSE(DropsUnread({}, {.ncu = {"counters.csv"}}));
  for (const bool by_grid : {false, true}) {
    const ReportOptions options{.by_grid = by_grid};
    const LeaveOut leave_out = DropsUnread(options, all);
    ASSERT_TRUE(leave_out);
    Trace trace;
    trace.kernels.correlation = NumbersFrom1(100);
    trace.kernels.shape.push_back(3);
    const uint32_t* const memory = trace.kernels.correlation.data();
    SpareColumns spare;
    leave_out(&trace, &spare);
    EXPECT_TRUE(trace.kernels.correlation.empty());
    EXPECT_EQ(trace.kernels.shape.empty(), !by_grid);
    EXPECT_EQ(spare.Take().data(), memory);
    EXPECT_EQ(spare.Take().data(), nullptr) << "nothing else had any";
  }
}

// The kernel gives pages of 0 for those that it took back.
TEST(ReturnColumns, TheKernelHasThePagesOfLargeColumnsAndSmallOnesStay) {
  constexpr size_t kMany = 1 << 20;
  collector::Run run;
  run.traces.resize(2);
  for (Trace& trace : run.traces) {
    trace.kernels.launch = NumbersFrom1(kMany);
    trace.api_calls.correlation = NumbersFrom1(100);
  }
  ReturnColumns(&run);
  for (const Trace& trace : run.traces) {
    EXPECT_EQ(trace.kernels.launch[kMany / 2], 0u);
    EXPECT_EQ(trace.api_calls.correlation[50], 51u);
  }
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
