// CUDA graphs under the real agent: as a whole by default, node by node at level full, and each
// node with the line and the range of the program that captured it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "collector/facts/graph_nodes.h"
#include "collector/report/host/call_sites.h"
#include "collector/report/reports.h"
#include "collector/symbols/resolve_stacks.h"
#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::GraphNode;
using collector::Trace;

constexpr int kSteps = 4;

// Graph nodes that ran, by their CUPTI id, with how often.
using Nodes = std::map<uint64_t, int>;

Nodes NodesIn(const Trace& trace) {
  Nodes nodes;
  for (const collector::DeviceWork* work :
       {static_cast<const collector::DeviceWork*>(&trace.kernels),
        static_cast<const collector::DeviceWork*>(&trace.memsets)}) {
    for (size_t i = 0; i < work->size(); ++i) {
      if (const uint64_t node = work->graph_node.At(i); node != 0) ++nodes[node];
    }
  }
  return nodes;
}

Nodes NodesInTruth(const TracedRun& run, const Trace& trace) {
  Nodes nodes;
  for (const char* type : {"kernel", "memset"}) {
    for (const Json& line : run.process().Truth(static_cast<int>(trace.info.pid), type)) {
      if (line["graph_node"] != 0) ++nodes[line["graph_node"].get<uint64_t>()];
    }
  }
  return nodes;
}

// A CUPTI that may record graphs as a whole.
const Environment kNewCupti = {{"RANKTAP_STANDIN_CUPTI_VERSION", "130500"}};

TracedRun TrainAtLevel(const char* level, const Environment& environment = {}) {
  return TracedRun({Host("train_cuda"), "--ranks", "1", "--steps", std::to_string(kSteps)},
                   environment, {"--level", level});
}

class GraphsTest : public testing::Test {};

TEST_F(GraphsTest, ByDefaultEachLaunchIsOneRecordAndNoNodeIsSeen) {
  const TracedRun run = TrainAtLevel("kernels", kNewCupti);
  ASSERT_EQ(run.run().traces.size(), 1u) << run.load_problem();
  EXPECT_EQ(run.run().traces[0].graph_launches.size(), size_t{kSteps});
  EXPECT_TRUE(NodesIn(run.run().traces[0]).empty());
}

TEST_F(GraphsTest, AtLevelFullEveryNodeOfEveryLaunchIsThereWithItsLaunch) {
  const TracedRun run = TrainAtLevel("full");
  ASSERT_EQ(run.run().traces.size(), 1u) << run.load_problem();
  const Trace& trace = run.run().traces[0];
  EXPECT_EQ(trace.graph_launches.size(), 0u);
  const Nodes truth = NodesInTruth(run, trace);
  ASSERT_GE(truth.size(), 2u);
  EXPECT_EQ(NodesIn(trace), truth);
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    if (trace.kernels.graph_node.At(i) == 0) continue;
    ASSERT_NE(trace.kernels.launch[i], collector::kNone);
    EXPECT_EQ(trace.dictionary.Api(trace.api_calls.api[trace.kernels.launch[i]]).name,
              "cudaGraphLaunch");
  }
  EXPECT_EQ(run.Problems(), "");
}

TEST_F(GraphsTest, ANodeKnowsTheCallTheLineAndTheRangeThatCapturedIt) {
  TracedRun traced = TrainAtLevel("full");
  collector::Run run = traced.TakeRun();
  ASSERT_EQ(run.traces.size(), 1u);
  collector::ResolveStacks({}, &run);
  const Trace& trace = run.traces[0];
  std::set<std::string> calls, files;
  for (const auto& [id, times] : NodesIn(trace)) {
    const GraphNode* node = FindGraphNode(trace, id);
    ASSERT_NE(node, nullptr) << id;
    ASSERT_TRUE(node->has_call);
    ASSERT_TRUE(node->has_range);
    EXPECT_EQ(trace.dictionary.String(node->range), "capture");
    calls.insert(trace.dictionary.Api(node->api).name);
    ASSERT_NE(node->stack, 0u);
    const std::string& file = FrameOfStack(trace, node->stack).file;
    files.insert(file.substr(file.rfind('/') + 1));
    EXPECT_EQ(times, kSteps);
  }
  EXPECT_THAT(calls, testing::UnorderedElementsAre("__cudaLaunchKernel", "cudaMemsetAsync"));
  EXPECT_THAT(files, testing::UnorderedElementsAre("model.cu", "train.cu"));

  // In the reports: a row for each line, and the GPU time with the line that wrote the kernel.
  const collector::Table table = collector::TabulateGraphs(run);
  EXPECT_EQ(table.rows.size(), 2u);
  int64_t launching_ns = 0, capturing_ns = 0;
  for (const collector::CallSite& site : collector::FindCallSites(run.traces)) {
    if (site.api == "cudaGraphLaunch") launching_ns += site.gpu_ns;
    if (site.frame.file.ends_with("train.cu") && site.api == "cudaMemsetAsync") {
      capturing_ns += site.gpu_ns;
    }
  }
  EXPECT_EQ(launching_ns, 0);
  EXPECT_GT(capturing_ns, 0);
}

// A flood of nodes, in the buffers of the program's thread and in those of a thread of CUPTI's own.
TEST_F(GraphsTest, EveryNodeComesWhicheverThreadCollectsThem) {
  for (const char* by_worker : {"0", "1"}) {
    const TracedRun run(
        {Host("graph_flood"), "1000", "64"},
        {{"RANKTAP_STANDIN_KERNEL_NS", "200"}, {"RANKTAP_STANDIN_WORKER_RECORDS", by_worker}},
        {"--level", "full", "--stacks", "off"});
    ASSERT_EQ(run.run().traces.size(), 1u) << run.load_problem();
    EXPECT_EQ(run.run().traces[0].kernels.size(), 64'000u) << by_worker;
    EXPECT_EQ(run.Problems(), "");
  }
}

// By itself CUPTI would take 250 buffers of 3.2 MB in each context for the nodes of graphs.
TEST_F(GraphsTest, CuptiTakesNoMoreOfTheDevicesMemoryThanItMayAndWhatIsUntimedForItIsSaid) {
  const TracedRun run({Host("graph_flood"), "1000", "64"},
                      {{"RANKTAP_STANDIN_KERNEL_NS", "200"},
                       {"RANKTAP_STANDIN_DEVICE_BUFFER_RECORDS", "100"},
                       {"RANKTAP_DEVICE_BUFFERS", "20"},
                       {"RANKTAP_FLUSH_MS", "20"}},
                      {"--level", "full", "--stacks", "off"});
  const std::string output = run.process().output();
  const std::string_view key = "device_bytes=";
  ASSERT_NE(output.find(key), std::string::npos) << output;
  // Three of them at the start, before the program looked.
  EXPECT_LE(std::stoull(output.substr(output.find(key) + key.size())), 20u * 3'200'000);
  ASSERT_EQ(run.run().traces.size(), 1u) << run.load_problem();
  const Trace& trace = run.run().traces[0];
  EXPECT_EQ(trace.kernels.size(), 64'000u);
  EXPECT_EQ(std::ranges::count(trace.kernels.start, collector::kUntimed), 64'000 - 20 * 100);
  EXPECT_THAT(trace.hello.notes(), testing::Contains(testing::HasSubstr("its 20 buffers")));
  EXPECT_EQ(run.Problems(), "");
}

// What a launch of a graph is joined to, before and after the program's own profile.
class GraphSessionsTest : public testing::TestWithParam<const char*> {
 protected:
  void Count(const char* version, const char* level) {
    const TracedRun run(
        {Host("graph_sessions"), std::to_string(kLaunches), "250"},
        {{"RANKTAP_RETURN_MS", "20"},
         {"RANKTAP_WHOLE_GRAPHS", "1"},
         {"RANKTAP_STANDIN_CUPTI_VERSION", version},
         {"RANKTAP_STANDIN_GRAPH_IDS_WRONG", version < std::string("130101") ? "1" : "0"}},
        {"--level", level});
    ASSERT_TRUE(run.process().exited_with(0)) << run.process().errors();
    ASSERT_EQ(run.run().traces.size(), 1u) << run.load_problem();
    const Trace& trace = run.run().traces[0];
    notes_ = {trace.hello.notes().begin(), trace.hello.notes().end()};
    ASSERT_EQ(trace.gaps.size(), 1u);
    CountWork(trace, trace.graph_launches, true);
    CountWork(trace, trace.kernels, false);
    EXPECT_EQ(run.Problems(), "");
  }
  void CountWork(const Trace& trace, const collector::DeviceWork& work, bool is_graph) {
    for (size_t i = 0; i < work.size(); ++i) {
      if (!is_graph && work.graph.At(i) == 0) continue;
      const uint32_t call = work.launch[i];
      const std::string name =
          call == collector::kNone ? "" : trace.dictionary.Api(trace.api_calls.api[call]).name;
      ++(work.start[i] < trace.gaps[0].end ? before_ : after_)[name];
    }
  }

  static constexpr int kLaunches = 20;
  std::map<std::string, int> before_, after_;
  std::vector<std::string> notes_;
};

TEST_P(GraphSessionsTest, AJoinThatCuptiGetsWrongIsRefusedAndSaid) {
  constexpr int works = 2 * kLaunches;  // nodes, whatever is asked of such versions
  ASSERT_NO_FATAL_FAILURE(Count("130001", GetParam()));
  EXPECT_EQ(before_, (std::map<std::string, int>{{"cudaGraphLaunch", works}}));
  EXPECT_EQ(after_, (std::map<std::string, int>{{"", works}}));
  EXPECT_THAT(notes_, testing::Contains(testing::HasSubstr("after a gap are unjoined")));
}

TEST_P(GraphSessionsTest, WhereCuptiIsRightTheyAreJoinedAfterAGapToo) {
  constexpr int works = 2 * kLaunches;  // nodes, whatever is asked of such versions
  ASSERT_NO_FATAL_FAILURE(Count("130101", GetParam()));
  EXPECT_EQ(before_, after_);
  EXPECT_EQ(after_, (std::map<std::string, int>{{"cudaGraphLaunch", works}}));
  EXPECT_THAT(notes_, testing::Not(testing::Contains(testing::HasSubstr("unjoined"))));
}

// Whole graphs, once on, would take the nodes from the program's profile (13.5's header).
TEST(GraphClientTest, TheProgramsProfileHasEveryNodeAtEveryLevelAndSoHaveWe) {
  constexpr int kLaunches = 20;
  const std::string said = "nodes=" + std::to_string(2 * kLaunches) + " ok=1\n";
  for (const char* level : {"ranges", "kernels", "full"}) {
    const TracedRun run({Host("graph_sessions"), std::to_string(kLaunches), "250"},
                        {{"RANKTAP_RETURN_MS", "20"}}, {"--level", level});
    EXPECT_EQ(run.process().output(), said) << level;
    if (level == std::string("ranges")) continue;
    ASSERT_EQ(run.run().traces.size(), 1u) << run.load_problem();
    const Nodes nodes = NodesIn(run.run().traces[0]);
    EXPECT_THAT(nodes, testing::Each(testing::Pair(testing::_, 2 * kLaunches))) << level;
    EXPECT_EQ(nodes.size(), 2u) << level;
  }
}

// For whoever asks for whole graphs all the same.
TEST(GraphClientTest, NodesThatWholeGraphsTakeFromTheProgramsProfileAreNoted) {
  const TracedRun run({Host("graph_sessions"), "20", "250"},
                      {{"RANKTAP_WHOLE_GRAPHS", "1"}, {"RANKTAP_STANDIN_CUPTI_VERSION", "130500"}});
  EXPECT_EQ(run.process().output(), "nodes=0 ok=1\n") << "the stand-in is as 13.5 says";
  ASSERT_EQ(run.run().traces.size(), 1u) << run.load_problem();
  EXPECT_THAT(run.run().traces[0].hello.notes(),
              testing::Contains(testing::HasSubstr("may give that client no nodes")));
}

INSTANTIATE_TEST_SUITE_P(Levels, GraphSessionsTest, testing::Values("kernels", "full"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace ranktap::agent_test
