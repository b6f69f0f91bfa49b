#include "collector/import/importers.h"
#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "collector/import/open_run.h"
#include "tests/unit/collector/import/memory/pickle_text.h"
#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace ranktap::collector {
namespace {

using pickled::Dict;
using pickled::File;
using pickled::Int;
using pickled::List;
using pickled::Text;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Frame(const std::string& file, int line, const std::string& name) {
  return Dict({{"filename", Text(file)}, {"line", Int(line)}, {"name", Text(name)}});
}
std::string Entry(const std::string& action, int64_t address, int64_t bytes, int64_t time_us,
                  const std::string& frames = List({})) {
  return Dict({{"action", Text(action)},
               {"addr", Int(address)},
               {"size", Int(bytes)},
               {"stream", Int(0)},
               {"time_us", Int(time_us)},
               {"frames", frames}});
}
std::string Block(int64_t address, int64_t bytes, const std::string& state,
                  const std::string& frames = List({})) {
  return Dict({{"address", Int(address)},
               {"size", Int(bytes)},
               {"state", Text(state)},
               {"frames", frames}});
}

// 1000 B from before the history; 300 B then 200 B are allocated, the 300 B and 50 B of earlier
// ones are given back. What is active at the end: 1000 B and 200 B of 4096 B reserved.
std::string SampleSnapshot() {
  const std::string model = List({Frame("/usr/src/Python/ceval.c", 1, "PyEval_EvalFrame"),
                                  Frame("model.py", 12, "forward"), Frame("train.py", 3, "main")});
  const std::string segment = Dict(
      {{"device", Int(1)},
       {"address", Int(4096)},
       {"total_size", Int(4096)},
       {"blocks",
        List({Block(4096, 1000, "active_allocated", List({Frame("init.py", 1, "load")})),
              Block(6000, 200, "active_awaiting_free", model), Block(7000, 300, "inactive")})}});
  const std::string history = List(
      {Entry("segment_alloc", 4096, 2048, 1'000'000), Entry("alloc", 7000, 300, 1'000'001, model),
       Entry("free_completed", 9000, 50, 1'000'002), Entry("alloc", 6000, 200, 1'000'003, model),
       Entry("free_requested", 7000, 300, 1'000'004), Entry("free_completed", 7000, 300, 1'000'005),
       Entry("oom", 0, 1 << 30, 1'000'006)});
  return File(Dict({{"segments", List({segment})}, {"device_traces", List({List({}), history})}}));
}

class MemoryImporterTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = directory_ / name;
    WriteFile(path, bytes);
    return path;
  }
  static std::vector<int64_t> Allocated(const Trace& trace) {
    std::vector<int64_t> levels;
    for (size_t i = 0; i < trace.allocations.size(); ++i) {
      levels.push_back(static_cast<int64_t>(trace.allocations.allocated.At(i)));
    }
    return levels;
  }

  TemporaryDirectory directory_;
};

TEST_F(MemoryImporterTest, ASnapshotsCurveEndsAtWhatItsSegmentsHold) {
  const Result<Trace> trace = ImportMemorySnapshot(Write("s.pickle", SampleSnapshot()));
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_TRUE(trace->damage.empty());
  EXPECT_THAT(Allocated(*trace), ElementsAre(1000, 1050, 1050, 1350, 1300, 1500, 1200));
  EXPECT_EQ(trace->allocations.reserved.At(0), 2048u);
  EXPECT_EQ(trace->allocations.reserved.At(6), 4096u);
  EXPECT_EQ(trace->base_time_ns, 1'000'000'000);
  EXPECT_EQ(trace->last_ns, 5000);
  EXPECT_THAT(trace->info.notes, ElementsAre("out of memory: 1073741824 bytes were asked for"));
}

TEST_F(MemoryImporterTest, ThePeakIsToldByStacksWithoutTheInterpretersFrames) {
  Result<collector::Run> run = OpenRun({Write("s.pickle", SampleSnapshot())});
  ASSERT_TRUE(run.ok()) << run.message();
  const Table memory = TabulateMemory(*run);
  ASSERT_EQ(memory.rows.size(), 1u);
  EXPECT_EQ(memory.rows[0][1], Cell("GPU 1"));
  EXPECT_EQ(memory.rows[0][3], Cell(int64_t{1500}));
  EXPECT_EQ(memory.rows[0][4], Cell(int64_t{3000}));
  const Table peak = TabulateMemoryPeak(*run);
  ASSERT_EQ(peak.rows.size(), 2u);
  EXPECT_EQ(peak.rows[0][2], Cell("init.py(1): load"));
  EXPECT_EQ(peak.rows[1][2], Cell("model.py(12): forward"));
  EXPECT_EQ(peak.rows[1][3], Cell(int64_t{500}));
  EXPECT_EQ(peak.rows[1][6], Cell("model.py(12): forward;train.py(3): main"));
}

// One block of 512 B, of which 400 were asked for, from before the history; 300 B come and stay.
std::string SmallSnapshot(int64_t time_us, int64_t second_address) {
  const std::string stack =
      List({Frame("c10/cuda/CUDACachingAllocator.cpp", 9, "malloc"),
            Frame("/opt/lib/python3.12/site-packages/torch/nn/f.py", 2, "f"),
            Frame("/home/me/train.py", 7, "step"), Frame("/home/me/train.py", 90, "main")});
  const std::string first = Dict({{"address", Int(4096)},
                                  {"size", Int(512)},
                                  {"requested_size", Int(400)},
                                  {"state", Text("active_allocated")},
                                  {"frames", stack}});
  const std::string second = Dict({{"address", Int(second_address)},
                                   {"size", Int(512)},
                                   {"requested_size", Int(300)},
                                   {"state", Text("active_allocated")},
                                   {"frames", stack}});
  const std::string segment = Dict({{"device", Int(0)},
                                    {"address", Int(4096)},
                                    {"total_size", Int(2048)},
                                    {"blocks", List({first, second})}});
  const std::string history = List(
      {Entry("free_completed", 9000, 100, time_us), Entry("alloc", 4608, 300, time_us, stack)});
  return File(Dict({{"segments", List({segment})}, {"device_traces", List({history})}}));
}

TEST_F(MemoryImporterTest, HeldByIsTheFirstFrameOfTheProgramAndSizesAreThoseAskedFor) {
  Result<collector::Run> run = OpenRun({Write("s.pickle", SmallSnapshot(1'000'000, 4608))});
  ASSERT_TRUE(run.ok()) << run.message();
  const Table memory = TabulateMemory(*run);
  EXPECT_EQ(memory.rows[0][3], Cell(int64_t{700}));  // 400 and 300, once 100 were given back
  const Table peak = TabulateMemoryPeak(*run);
  ASSERT_EQ(peak.rows.size(), 1u);
  EXPECT_EQ(peak.rows[0][2], Cell("/home/me/train.py(7): step"));
  EXPECT_EQ(peak.rows[0][4], Cell(100.0));
  EXPECT_EQ(Judge(*run).sentence,
            "At most 700 B were held on GPU 0, 0 ns into the file: 700 B (100.0 %) of it by "
            "/home/me/train.py(7): step. No verdict: a file of the memory profiler says who held "
            "memory, and nothing of time.");
  EXPECT_TRUE(run->traces[0].info.notes.empty());
}

TEST_F(MemoryImporterTest, ASnapshotWithoutTimesHasNoTimeOfItsPeak) {
  Result<collector::Run> run = OpenRun({Write("s.pickle", SmallSnapshot(0, 4608))});
  ASSERT_TRUE(run.ok()) << run.message();
  const Table memory = TabulateMemory(*run);
  EXPECT_EQ(memory.rows[0][3], Cell(int64_t{700}));
  EXPECT_EQ(memory.rows[0][4], Cell());
  EXPECT_THAT(Judge(*run).sentence, testing::StartsWith("At most 700 B were held on GPU 0: "));
}

TEST_F(MemoryImporterTest, AHistoryThatDoesNotEndAsItsSegmentsDoIsSaidToDisagree) {
  const Result<Trace> trace =
      ImportMemorySnapshot(Write("s.pickle", SmallSnapshot(1'000'000, 5120)));
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_THAT(trace->info.notes,
              ElementsAre("device 0: its history and its segments disagree about the end: 300 "
                          "bytes that the history never gives back are in no segment"));
}

TEST_F(MemoryImporterTest, ASnapshotThatIsCutOffIsReadToThere) {
  const std::string whole = SampleSnapshot();
  const size_t cut = whole.find("free_requested");
  const Result<Trace> trace = ImportMemorySnapshot(Write("s.pickle", whole.substr(0, cut)));
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_THAT(Allocated(*trace), testing::Contains(1350));
  ASSERT_EQ(trace->damage.size(), 1u);
  EXPECT_NEAR(static_cast<double>(trace->damage[0].offset), static_cast<double>(cut), 4);
}

// As pickle.dumps of an object whose __reduce__ says os.system("touch FILE").
TEST_F(MemoryImporterTest, APickleThatAsksToRunCodeRunsNone) {
  const std::string witness = directory_ / "witness";
  const std::string hostile = File("\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c" +
                                   std::string(1, static_cast<char>(6 + witness.size())) +
                                   "touch " + witness + "\x94\x85\x94R\x94");
  const Result<Trace> trace = ImportMemorySnapshot(Write("s.pickle", hostile));
  ASSERT_FALSE(trace.ok());
  EXPECT_THAT(trace.message(), HasSubstr("offset 19: the pickle asks for STACK_GLOBAL"));
  EXPECT_FALSE(std::filesystem::exists(witness));
}

// 200 times one history of 20,000 times one entry: four million rows in 140 kB.
TEST_F(MemoryImporterTest, AFileThatNamesOneListManyTimesIsReadNoFurtherThanItsSize) {
  const std::string zero("\x00\x00\x00\x00", 4), one("\x01\x00\x00\x00", 4);
  std::string history = "](" + Entry("alloc", 1, 1, 1) + "r" + zero;
  for (int i = 0; i < 20'000; ++i) history += "j" + zero;
  history += "er" + one;
  std::string histories = "](" + history;
  for (int i = 0; i < 200; ++i) histories += "j" + one;
  const std::string bytes = File(Dict({{"device_traces", histories + "e"}}));
  const Result<Trace> trace = ImportMemorySnapshot(Write("s.pickle", bytes));
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_LE(trace->events, bytes.size());
  ASSERT_EQ(trace->damage.size(), 1u);
  EXPECT_THAT(trace->damage[0].what, HasSubstr("repeat themselves"));
}

// A dict is searched from its beginning: a file may name one of a million keys a million times.
TEST_F(MemoryImporterTest, AKeyFarDownInADictIsNotLookedFor) {
  const std::string history = List({List({Entry("alloc", 4096, 512, 1)})});
  for (const size_t before : {10u, 64u}) {
    std::vector<std::pair<std::string, std::string>> items;
    for (size_t i = 0; i < before; ++i) items.emplace_back("key " + std::to_string(i), Int(0));
    items.emplace_back("device_traces", history);
    EXPECT_EQ(ImportMemorySnapshot(Write("s.pickle", File(Dict(items)))).ok(), before == 10);
  }
}

// 1,000 stacks of 64 times one of two frames of 2 kB: 128 MiB of text in 0.4 MB.
TEST_F(MemoryImporterTest, StacksThatShareLongFramesTakeBoundedMemory) {
  const auto long_text = [](char letter) {
    return "X" + std::string("\x00\x04\x00\x00", 4) + std::string(1024, letter);
  };
  std::string history = "](";
  for (const char letter : {'a', 'b'}) {
    history += Dict({{"filename", long_text(letter)}, {"name", long_text(letter)}}) + "r" +
               std::string(1, letter) + std::string(3, '\0');
  }
  for (uint32_t i = 0; i < 1000; ++i) {
    std::string frames = "](";
    for (uint32_t bit = 0; bit < 64; ++bit) {
      frames += "j" + std::string(1, (i >> bit % 10 & 1) != 0 ? 'a' : 'b') + std::string(3, '\0');
    }
    history += Entry("alloc", i, 512, 1, frames + "e");
  }
  const std::string bytes = File(Dict({{"device_traces", List({history + "e"})}}));
  const Result<Trace> trace = ImportMemorySnapshot(Write("s.pickle", bytes));
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_EQ(trace->events, 1000u);
  size_t text = 0;
  for (uint32_t id = 1; id <= trace->dictionary.strings(); ++id) {
    text += trace->dictionary.String(id).size();
  }
  EXPECT_LE(text, (16u << 20) + 32 * bytes.size());
  ASSERT_EQ(trace->damage.size(), 1u);
  EXPECT_THAT(trace->damage[0].what, HasSubstr("far more text"));
}

constexpr char kTimeline[] =
    "[[-1, 1, 100, 0], [5000, 2, 40, 4],\n [6000, 3, -40, 4], [6000, 3, 40, 5], [7000, 4, -40, 5]]";

TEST_F(MemoryImporterTest, ATimelinesCategoriesMoveAndNothingIsCountedTwice) {
  Result<collector::Run> run = OpenRun({Write("m.raw.json", kTimeline)});
  ASSERT_TRUE(run.ok()) << run.message();
  const Table memory = TabulateMemory(*run);
  ASSERT_EQ(memory.rows.size(), 1u);
  EXPECT_EQ(memory.rows[0][3], Cell(int64_t{140}));
  EXPECT_EQ(memory.rows[0][6], Cell(int64_t{100}));
  EXPECT_EQ(memory.rows[0][7], Cell(int64_t{2}));
  const Table peak = TabulateMemoryPeak(*run);
  ASSERT_EQ(peak.rows.size(), 2u);
  EXPECT_EQ(peak.rows[0][2], Cell("parameter"));
  EXPECT_EQ(peak.rows[1][2], Cell("activation"));
}

TEST_F(MemoryImporterTest, ADamagedTimelineKeepsItsOtherRows) {
  std::string damaged = kTimeline;
  const size_t at = damaged.find("[5000");
  damaged[at + 2] = 'x';
  damaged.resize(damaged.size() - 4);
  const Result<Trace> trace = ImportMemoryTimeline(Write("m.raw.json", damaged));
  ASSERT_TRUE(trace.ok()) << trace.message();
  EXPECT_EQ(trace->allocations.size(), 3u);
  ASSERT_EQ(trace->damage.size(), 2u);
  EXPECT_EQ(trace->damage[0].offset, at);
  EXPECT_EQ(trace->damage[1].what, "a row is cut off");
}

// Seed 30: bytes changed anywhere, files cut off anywhere.
TEST_F(MemoryImporterTest, MutatedFilesAreReadOrRefused) {
  std::mt19937 random(30);
  const auto below = [&](size_t bound) { return random() % bound; };
  const std::string path = directory_ / "mutated";
  int read = 0;
  for (int round = 0; round < 500; ++round) {
    const bool pickle = round % 2 == 0;
    std::string bytes = pickle ? SampleSnapshot() : kTimeline;
    for (size_t i = 1 + below(4); i > 0; --i)
      bytes[below(bytes.size())] = static_cast<char>(random());
    if (round % 5 == 0) bytes.resize(below(bytes.size()));
    WriteFile(path, bytes);
    const Result<Trace> trace = pickle ? ImportMemorySnapshot(path) : ImportMemoryTimeline(path);
    read += trace.ok();
    if (!trace.ok()) {
      EXPECT_THAT(trace.message(), HasSubstr("mutated: "));
    }
  }
  EXPECT_GT(read, 250);
}

}  // namespace
}  // namespace ranktap::collector
