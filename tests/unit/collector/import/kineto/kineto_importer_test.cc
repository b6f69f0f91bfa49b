// Files of torch.profiler as users have them: several windows of a rank, gloo, odd heads and tails.
#include "collector/import/importers.h"
#include "collector/report/reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "collector/facts/causes/stragglers.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/import/open_run.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string Span(const std::string& category, const std::string& name, int64_t ts, int64_t dur,
                 const std::string& args = "") {
  return R"({"ph":"X","cat":")" + category + R"(","name":")" + name +
         R"(","pid":10,"tid":11,"ts":)" + std::to_string(ts) + R"(,"dur":)" + std::to_string(dur) +
         R"(,"args":{)" + args + "}}";
}
std::string File(const std::string& distributed, const std::string& events) {
  return R"({"distributedInfo":{)" + distributed + R"(},"traceEvents":[)" + events + "]}";
}
void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
Trace Import(const std::string& text) {
  TemporaryDirectory directory;
  Write(directory / "x.json", text);
  Result<std::vector<Trace>> traces = ImportKineto(directory / "x.json");
  EXPECT_TRUE(traces) << traces.message();
  return std::move(traces->at(0));
}

TEST(KinetoImporter, AThreadIsNamedBeforeItsEventsOrAfterThem) {
  const std::string name =
      R"({"ph":"M","name":"thread_name","pid":10,"tid":11,"ts":0,"args":{"name":"trainer"}})";
  const std::string event = Span("cpu_op", "aten::mm", 1, 1);
  for (const std::string& events : {name + "," + event, event + "," + name}) {
    const Trace trace = Import(File("", events));
    ASSERT_EQ(trace.writers.size(), 1u);
    EXPECT_EQ(trace.writers[0].name, "trainer");
  }
}

TEST(KinetoImporter, TheRankMayBeAText) {
  EXPECT_EQ(Import(File(R"("rank":"3","world_size":"4")", "")).info.rank, 3u);
  EXPECT_EQ(Import(File(R"("rank":3)", "")).info.rank, 3u);
  for (const char* const none : {R"("rank":-1)", R"("rank":"x")", R"("rank":4294967295)", ""}) {
    EXPECT_FALSE(Import(File(none, "")).info.rank) << none;
  }
}

TEST(KinetoImporter, AFileJoinedFromSeveralRanksIsNotReadAsOne) {
  TemporaryDirectory directory;
  Write(directory / "x.json", R"({"mergedRanks":[{"label":"rank 0"},{"label":"rank 1"}],)"
                              R"("traceEvents":[]})");
  EXPECT_THAT(ImportKineto(directory / "x.json").message(), HasSubstr("joined from 2 files"));
  EXPECT_EQ(Import(R"({"mergedRanks":[{"label":"rank 0"}],"traceEvents":[]})").kernels.size(), 0u);
}

TEST(KinetoImporter, ZerosAfterAGzipStreamArePadding) {
  TemporaryDirectory directory;
  const std::string path = directory / "x.json.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  const std::string text = File("", Span("cpu_op", "aten::mm", 1, 1));
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::ofstream(path, std::ios::binary | std::ios::app) << std::string(512, '\0');
  const Result<std::vector<Trace>> padded = ImportKineto(path);
  ASSERT_TRUE(padded) << padded.message();
  EXPECT_TRUE(padded->at(0).damage.empty());
  std::ofstream(path, std::ios::binary | std::ios::app) << "garbage";
  const Result<std::vector<Trace>> garbage = ImportKineto(path);
  ASSERT_TRUE(garbage) << garbage.message();
  EXPECT_FALSE(garbage->at(0).damage.empty());
}

TEST(OpenRun, SaysWhatIsWrongAndWhereToLook) {
  TemporaryDirectory directory;
  Write(directory / "empty.json", "");
  EXPECT_THAT(OpenRun({directory / "empty.json"}).message(), HasSubstr("empty.json: is empty"));
  Write(directory / "notes.txt", "hello");
  EXPECT_THAT(OpenRun({directory / "notes.txt"}).message(), HasSubstr("torch.profiler, nsys"));
  std::filesystem::create_directory(directory / "inner");
  EXPECT_THAT(OpenRun({directory.path()}).message(), Not(HasSubstr("name that")));
  Write(directory / "inner/a.json", File("", ""));
  EXPECT_THAT(OpenRun({directory.path()}).message(), HasSubstr("/inner has some: name that"));
}

TEST(OpenRun, HiddenFilesAreNotOfTheRun) {
  TemporaryDirectory directory;
  Write(directory / "rank0.json", File("", Span("cpu_op", "aten::mm", 1, 1)));
  Write(directory / ".rank1.json", "{\"metadata");
  const Result<collector::Run> run = OpenRun({directory.path()});
  ASSERT_TRUE(run) << run.message();
  EXPECT_EQ(run->traces.size(), 1u);
  EXPECT_THAT(run->problems, ElementsAre());
}

// Two ranks in windows of two steps of 1000 us each, one after the other; each step has an
// allreduce of 100 floats that ends at 900 us and takes 50 us. Rank 1 is 300 us late.
std::string GlooWindow(int rank, int window, const std::string& more_groups = "") {
  std::string events;
  for (int step = 0; step < 2; ++step) {
    const int64_t start = 10'000 * window + 1000 * step;
    const int64_t waits = rank == 0 ? 300 : 0;
    events +=
        (step > 0 ? "," : "") +
        Span("user_annotation", "ProfilerStep#" + std::to_string(5 * window + step), start, 1000) +
        "," +
        Span("user_annotation", "gloo:all_reduce", start + 850 - waits, 50 + waits,
             R"("Input Dims":[[100]],"Input type":["float"])");
  }
  return File(R"("rank":)" + std::to_string(rank) +
                  R"(,"world_size":2,"pg_config":[{"pg_name":"0","pg_desc":"default_pg",)"
                  R"("backend_config":"cpu:gloo","pg_size":2,"ranks":[0,1]})" +
                  more_groups + "]",
              events);
}
void WriteGlooJob(const TemporaryDirectory& directory, const std::string& more_groups = "") {
  for (const int rank : {0, 1}) {
    for (const int window : {0, 1}) {
      Write(directory / ("rank" + std::to_string(rank) + "." + std::to_string(window) + ".json"),
            GlooWindow(rank, window, rank == 0 ? more_groups : ""));
    }
  }
}

TEST(Gloo, CollectivesOfTorchProfilerAreMatchedWithinTheirWindow) {
  TemporaryDirectory directory;
  WriteGlooJob(directory);
  const Result<collector::Run> run = OpenRun({directory.path()});
  ASSERT_TRUE(run) << run.message();
  EXPECT_THAT(run->problems, ElementsAre());
  const Table comm = TabulateComm(*run, {});
  ASSERT_EQ(comm.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(comm, 0, "group"), "default_pg");
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "bytes"), 400);
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "calls"), 4);
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "group_size"), 2);
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "transfer_ns"), 50'000);
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "wait_ns"), 150'000);
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "last_rank"), 1);
}

TEST(Gloo, AHostInACollectiveOfWhichGroupNobodyKnowsIsNotSaidToRunCode) {
  TemporaryDirectory directory;
  WriteGlooJob(directory, R"(,{"pg_name":"1","backend_config":"cpu:gloo","pg_size":2})");
  const Result<collector::Run> run = OpenRun({directory.path()});
  ASSERT_TRUE(run) << run.message();
  EXPECT_EQ(Judge(*run).sentence,
            "Without a device all of each 1.000 ms step is the host's time: 800.0 us (80.0 %) "
            "running code on the host, 200.0 us (20.0 %) in collectives.");
}

TEST(Gloo, TheVerdictNamesTheRankThatOthersWaitForOnTheHost) {
  TemporaryDirectory directory;
  WriteGlooJob(directory);
  const Result<collector::Run> run = OpenRun({directory.path()});
  ASSERT_TRUE(run) << run.message();
  EXPECT_EQ(
      Judge(*run).sentence,
      "Without a device all of each 1.000 ms step is the host's time: 800.0 us (80.0 %) "
      "running code on the host, 150.0 us (15.0 %) waiting for other ranks, 50.00 us (5.0 %) in "
      "collectives. In 300.0 us (30.0 %) of it rank 0 waits for rank 1, which spends 300.0 us a "
      "step more than it does running code on the host.");
  const Table stragglers = TabulateStragglers(*run, {});
  ASSERT_EQ(stragglers.rows.size(), 1u);
  EXPECT_EQ(CellAt<int64_t>(stragglers, 0, "rank"), 1);
  EXPECT_EQ(CellAt<int64_t>(stragglers, 0, "steps"), 4);
  EXPECT_EQ(CellAt<int64_t>(stragglers, 0, "steps_late"), 4);
  EXPECT_THAT(TabulateWaterfall(*run, {}).notes.back(), HasSubstr("8 steps of 2 ranks"));
}

TEST(Gloo, WhereItHasSeveralGroupsCallsAreNotGuessed) {
  TemporaryDirectory directory;
  WriteGlooJob(directory,
               R"(,{"pg_name":"1","backend_config":"cpu:gloo","pg_size":2,"ranks":[0,1]})");
  const Result<collector::Run> run = OpenRun({directory.path()});
  ASSERT_TRUE(run) << run.message();
  const Table comm = TabulateComm(*run, {});
  EXPECT_TRUE(comm.rows.empty());
  EXPECT_THAT(comm.notes.back(), HasSubstr("do not say their group"));
}

// The same on devices, without numbers of the calls: two windows of a rank are not two members.
TEST(Comm, WindowsOfOneRankAreNotMembersOfOneCollective) {
  TemporaryDirectory directory;
  for (const int rank : {0, 1}) {
    for (const int window : {0, 1}) {
      const int64_t length = window == 0 ? 100 : 700;
      Write(directory / ("rank" + std::to_string(rank) + "." + std::to_string(window) + ".json"),
            File(R"("world_size":2,"rank":)" + std::to_string(rank),
                 Span("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 10'000 * window + 1,
                      length, R"("device":0,"stream":7,"correlation":1)")));
    }
  }
  const Result<collector::Run> run = OpenRun({directory.path()});
  ASSERT_TRUE(run) << run.message();
  const Table comm = TabulateComm(*run, {});
  ASSERT_EQ(comm.rows.size(), 1u);
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "calls"), 2);
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "group_size"), 2);
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "wait_ns"), 0);
  EXPECT_EQ(CellAt<int64_t>(comm, 0, "transfer_ns"), 400'000);
}

TEST(Comm, BytesOfEveryDtypeThatNcclSends) {
  const std::vector<std::pair<std::string, int64_t>> kSizes = {
      {"Float", 4}, {"BFloat16", 2}, {"Float8_e4m3fn", 1}, {"Long", 8}, {"UInt32", 4}, {"Bool", 1}};
  for (const auto& [dtype, size] : kSizes) {
    TemporaryDirectory directory;
    Write(directory / "rank0.json",
          File("", Span("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1, 100,
                        R"("device":0,"stream":7,"correlation":1,"Collective name":"allreduce",)"
                        R"("Process Group Name":"0","Group size":2,"In msg nelems":10,"dtype":")" +
                            dtype + "\"")));
    const Result<collector::Run> run = OpenRun({directory / "rank0.json"});
    ASSERT_TRUE(run) << run.message();
    EXPECT_EQ(CellAt<int64_t>(TabulateComm(*run, {}), 0, "bytes"), 10 * size) << dtype;
  }
}

}  // namespace
}  // namespace ranktap::collector
