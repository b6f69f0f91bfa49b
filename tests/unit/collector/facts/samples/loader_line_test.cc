#include "collector/facts/samples/loader_line.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/samples/thread_purposes.h"
#include "tests/unit/collector/facts/samples/sampled_trace.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kStep = 1000;

// The frames of a forked worker, beside those of SampledTrace, whose main:97 forked it:
//
//   11 _bootstrap > 12 _worker_loop > 13 fetch > 14 __getitem__ (data.py:41) > 15 open
//   (PIL/Image.py)
//                                              > 16 __getitem__ (data.py:42)
//                                   > 17 default_collate
//                   12 _worker_loop > 18 Queue.get
// and of its second thread 19 Queue._feed > 20 Condition.wait.
class LoaderTrace : public SampledTrace {
 public:
  LoaderTrace() {
    AddMark(proto::kSampledCodesMark,
            "[11,\"/usr/lib/python3.11/multiprocessing/process.py\",\"BaseProcess._bootstrap\"]\n"
            "[12,\"/v/site-packages/torch/utils/data/_utils/worker.py\",\"_worker_loop\"]\n"
            "[13,\"/v/site-packages/torch/utils/data/_utils/fetch.py\",\"fetch\"]\n"
            "[14,\"/job/data.py\",\"Images.__getitem__\"]\n"
            "[15,\"/v/site-packages/PIL/Image.py\",\"open\"]\n"
            "[17,\"/v/site-packages/torch/utils/data/_utils/collate.py\",\"default_collate\"]\n"
            "[18,\"/usr/lib/python3.11/multiprocessing/queues.py\",\"Queue.get\"]\n"
            "[19,\"/usr/lib/python3.11/multiprocessing/queues.py\",\"Queue._feed\"]\n"
            "[20,\"/usr/lib/python3.11/threading.py\",\"Condition.wait\"]\n");
    AddMark(proto::kSampledFramesMark,
            "[11,1,11,3]\n[12,11,12,350]\n[13,12,13,54]\n[14,13,14,41]\n[15,14,15,9]\n"
            "[16,13,14,42]\n[17,13,17,7]\n[18,12,18,100]\n[19,1,19,230]\n[20,19,20,320]\n");
    AddMark(proto::kSampledChildrenMark, "[50,50]\n[51,51]\n[52,52]\n[59,50]\nno line\n");
    waterfall_.counted = 10;
    waterfall_.mean_step = kStep;
    waterfall_.mean[static_cast<size_t>(Cause::kDataLoading)] = 600;
    for (int64_t i = 0; i < 10; ++i) {
      waterfall_.steps.list.push_back({.number = i, .start = i * kStep, .end = (i + 1) * kStep});
    }
  }
  // Of 10,000: so long at each frame, waiting.
  void AddWorker(int thread, std::initializer_list<std::pair<int, int64_t>> times) {
    std::string lines;
    int64_t at = 0;
    for (const auto& [frame, ns] : times) {
      lines += fmt::format("[{},{},2,{},{},{},0]\n", thread, frame, ns / 10, at, at + ns);
      at += ns;
    }
    AddSamples(lines);
  }
  LoaderLine Find() { return FindLoaderLine(trace(), waterfall_); }

 private:
  RankWaterfall waterfall_;
};

TEST(LoaderLineTest, TheLineThatMostOfTheWorkersTimeLiesAtIsNamedWithTheWorkersThatWouldHideIt) {
  LoaderTrace loader;
  loader.AddWorker(50, {{15, 7000}, {16, 1500}, {17, 500}, {18, 1000}});
  loader.AddWorker(51, {{15, 7200}, {16, 1300}, {17, 500}, {18, 1000}});
  const LoaderLine found = loader.Find();
  EXPECT_EQ(found.text, "data.py:41 (Images.__getitem__), in PIL/Image.py (open)");
  EXPECT_EQ(found.ns, 14'200);
  EXPECT_EQ(found.busy_ns, 18'000);
  EXPECT_EQ(found.workers, 2u);
  EXPECT_EQ(found.wanted, 5u);  // 1,800 a step, of which 400 are not waited for
  EXPECT_EQ(found.late_worker, -1);
}

TEST(LoaderLineTest, WhereTheWorkIsSpreadNoLineIsAccused) {
  LoaderTrace loader;
  loader.AddWorker(50, {{15, 4000}, {16, 4000}, {17, 1500}});
  const LoaderLine found = loader.Find();
  EXPECT_EQ(found.text, "");
  EXPECT_EQ(found.workers, 1u);
  EXPECT_EQ(found.wanted, 3u);
}

TEST(LoaderLineTest, TheFileThatWorkersAreMetReadingIsNamedWithItsLine) {
  LoaderTrace loader;
  loader.AddWorker(50, {{15, 4000}, {16, 4000}, {17, 1500}, {18, 500}});
  loader.AddMark(
      proto::kChildReadsMark,
      "[50,500,500,\"/data/a.tar\"]\n[50,4500,1500,\"/data/b.tar\"]\n"
      "[50,6000,1500,\"/data/b.tar\"]\n[50,7900,500,\"/data/c.tar\"]\n"
      "[50,9900,9000,\"/waits/for/work\"]\n[51,5000,9000,\"/other\"]\nno line\n[50,1]\n");
  const LoaderLine found = loader.Find();
  EXPECT_EQ(found.text, "");
  EXPECT_EQ(found.read_files, "/data/b.tar");
  EXPECT_EQ(found.read_ns, 3000);
  EXPECT_EQ(found.read_line, "data.py:42 (Images.__getitem__)");
}

TEST(LoaderLineTest, OfManyFilesTheFolderIsNamedAndOfFewReadsNothing) {
  for (const int each : {1000, 300}) {
    LoaderTrace loader;
    loader.AddWorker(50, {{15, 7000}, {16, 1500}, {17, 500}, {18, 1000}});
    std::string lines;
    for (int i = 1; i <= 7; ++i) {
      lines += fmt::format("[50,{},{},\"/data/{}.png\"]\n", 1000 * i, each, i);
    }
    loader.AddMark(proto::kChildReadsMark, lines);
    const LoaderLine found = loader.Find();
    EXPECT_EQ(found.read_files, each == 1000 ? "files in /data" : "");
    EXPECT_EQ(found.read_ns, each == 1000 ? 7000 : 0);
  }
}

TEST(LoaderLineTest, WorkersThatWaitForWorkAreNotWhyABatchIsLate) {
  LoaderTrace loader;
  loader.AddWorker(50, {{15, 3000}, {18, 7000}});
  EXPECT_EQ(loader.Find().workers, 0u);
}

TEST(LoaderLineTest, WorkersThatStartAnewAreTold) {
  LoaderTrace loader;
  loader.AddMark(proto::kSampledFramesMark, "[21,12,14,3]\n");
  loader.AddWorker(50, {{21, 4000}, {15, 1000}, {18, 5000}});
  loader.AddWorker(51, {{21, 3000}, {12, 1000}, {15, 1000}, {18, 5000}});
  const LoaderLine found = loader.Find();
  EXPECT_EQ(found.starting_ns, 8000);
  EXPECT_EQ(found.all_ns, 20'000);
  EXPECT_EQ(found.starting_text, "data.py:3 (Images.__getitem__)");
}

// Frame 22 is pin_memory.py's, which 23 calls Queue.get from.
TEST(LoaderLineTest, AThreadThatPinsMemoryAllTheTimeIsTold) {
  for (const int64_t pinning : {7000, 3000}) {
    LoaderTrace loader;
    loader.AddMark(proto::kSampledCodesMark,
                   "[22,\"/v/site-packages/torch/utils/data/_utils/pin_memory.py\",\"loop\"]\n");
    loader.AddMark(proto::kSampledFramesMark, "[22,0,22,3]\n[23,22,18,100]\n");
    loader.AddWorker(50, {{15, 1000}, {18, 9000}});
    loader.AddWorker(47, {{22, pinning}, {23, 10'000 - pinning}});
    EXPECT_EQ(loader.Find().pinning_ns, pinning == 7000 ? 7000 : 0);
    const ThreadPurposes purposes(loader.trace());
    EXPECT_EQ(purposes.NameOfThread(47), "pin-memory thread");
  }
}

TEST(LoaderLineTest, OfThreeWorkersTheOneThatIsBusyForLongerIsTheLateOne) {
  LoaderTrace loader;
  loader.AddWorker(50, {{16, 3000}, {18, 7000}});
  loader.AddWorker(51, {{16, 9000}, {18, 1000}});
  loader.AddWorker(52, {{16, 3200}, {18, 6800}});
  const LoaderLine found = loader.Find();
  EXPECT_EQ(found.late_worker, 1);
  EXPECT_EQ(found.late_ns, 9000);
  EXPECT_EQ(found.median_ns, 3200);
}

TEST(ThreadPurposesTest, ThreadsAreNamedByWhatTheirProcessIsFor) {
  LoaderTrace loader;
  loader.AddSamples("[40,1,1,10,0,100,5]\n[41,1,1,10,0,100,5]\n");
  loader.AddWorker(50, {{14, 1000}});
  loader.AddSamples("[51,14,1,10,2000,3000,5]\n[52,1,1,10,0,100,5]\n[59,20,2,10,0,100,5]\n");
  const ThreadPurposes purposes(loader.trace());
  EXPECT_EQ(purposes.NameOfThread(40), "main thread");
  EXPECT_EQ(purposes.NameOfThread(41), "thread 41");
  EXPECT_EQ(purposes.NameOfThread(50), "loader worker 0");
  EXPECT_EQ(purposes.NameOfThread(59), "loader worker 0");
  EXPECT_EQ(purposes.NameOfThread(51), "loader worker 0");  // it began when the first had ended
  EXPECT_EQ(purposes.NameOfThread(52), "helper 52");
  EXPECT_EQ(purposes.loader_workers(), 1u);
}

TEST(ThreadPurposesTest, AWorkersTimeIsToldApart) {
  LoaderTrace loader;
  loader.AddWorker(50, {{15, 100}, {16, 100}, {17, 100}, {18, 100}, {12, 100}});
  loader.AddSamples("[59,19,2,10,0,100,5]\n[59,20,2,10,100,200,5]\n");
  const ThreadPurposes purposes(loader.trace());
  std::vector<std::string_view> seen;
  for (const HostSample& sample : SamplesOf(loader.trace()).all()) {
    seen.push_back(NameOf(purposes.WorkOf(sample)));
  }
  EXPECT_EQ(seen, (std::vector<std::string_view>{"decoding", "an item", "collating",
                                                 "waiting for work", "starting", "sending", ""}));
}

}  // namespace
}  // namespace ranktap::collector
