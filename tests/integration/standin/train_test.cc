// The training program on the stand-in: a reference CUPTI client is told what the truth log says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/integration/standin/simulated_run.h"

namespace ranktap::standin_test {
namespace {

constexpr int kRanks = 4, kSteps = 3;

Environment Injected(const Environment& more = {}) {
  Environment environment = {{"CUDA_INJECTION64_PATH", BuildPath("tests/libcupti_probe.so")},
                             {"PROBE_KINDS", kDeviceKinds}};
  environment.insert(environment.end(), more.begin(), more.end());
  return environment;
}

SimulatedRun Train(const Environment& environment, int ranks = kRanks) {
  return SimulatedRun({BuildPath("workloads/train_cuda"), "--ranks", std::to_string(ranks),
                       "--steps", std::to_string(kSteps)},
                      environment);
}

// The named fields of every line, as a multiset: records have no order.
std::multiset<std::string> Pick(const std::vector<Json>& lines,
                                const std::vector<std::string>& fields) {
  std::multiset<std::string> picked;
  for (const Json& line : lines) {
    Json some;
    for (const std::string& field : fields) some[field] = line.at(field);
    picked.insert(some.dump());
  }
  return picked;
}

// For each type of line: the fields that truth and records must agree on.
const std::map<std::string, std::vector<std::string>>& ComparedFields() {
  static const auto* fields = new std::map<std::string, std::vector<std::string>>{
      {"kernel",
       {"name", "device", "context", "stream", "correlation", "start_ns", "end_ns", "graph",
        "graph_node", "grid", "block", "cluster", "static_shared", "dynamic_shared", "registers"}},
      {"copy",
       {"device", "context", "stream", "correlation", "start_ns", "end_ns", "graph", "bytes",
        "async"}},
      {"memset",
       {"device", "context", "stream", "correlation", "start_ns", "end_ns", "graph", "bytes",
        "value", "async"}},
      {"synchronization",
       {"kind", "context", "stream", "event", "event_sync", "correlation", "start_ns", "end_ns"}},
      {"event_record",
       {"device", "context", "stream", "event", "event_sync", "correlation", "device_ns"}},
      {"memory",
       {"operation", "address", "bytes", "device", "context", "stream", "correlation", "async",
        "device_ns"}},
  };
  return *fields;
}

TEST(StandinTrainTest, FourRanksAreTracedExactlyAsTheTruthSays) {
  SimulatedRun run = Train(Injected());
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  std::vector<int> pids = run.Processes();
  ASSERT_EQ(pids.size(), size_t{kRanks});
  for (int pid : pids) {
    for (const auto& [type, fields] : ComparedFields()) {
      std::vector<Json> truth = run.Truth(pid, type);
      EXPECT_FALSE(truth.empty()) << type;
      EXPECT_EQ(Pick(run.Told(pid, type), fields), Pick(truth, fields)) << type;
    }
  }
}

TEST(StandinTrainTest, EveryRankUsesItsOwnDeviceAndPrintsItsLosses) {
  SimulatedRun run = Train(Injected());
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  std::set<unsigned> devices;
  for (int pid : run.Processes()) {
    std::set<unsigned> of_rank;
    for (const Json& kernel : run.Truth(pid, "kernel"))
      of_rank.insert(kernel["device"].get<unsigned>());
    EXPECT_EQ(of_rank.size(), 1u);
    devices.insert(of_rank.begin(), of_rank.end());
    EXPECT_EQ(run.Told(pid, "device").size(), 4u);
  }
  EXPECT_THAT(devices, testing::ElementsAre(0, 1, 2, 3));
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(run.output(), testing::HasSubstr("rank " + std::to_string(rank) + " device " +
                                                 std::to_string(rank) + " step 2 loss"));
  }
}

TEST(StandinTrainTest, CallbacksAreTheTracedCallsWithTheirKernelsNames) {
  SimulatedRun run = Train(Injected({{"PROBE_APIS", "1"}}), 1);
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  int pid = run.Processes().at(0);
  std::vector<Json> told = run.Told(pid, "api");
  std::vector<std::string> fields = {"domain",      "cbid",   "name",  "thread",
                                     "correlation", "status", "symbol"};
  EXPECT_EQ(Pick(told, fields), Pick(run.Truth(pid, "api"), fields));
  std::map<unsigned, std::string> launched;
  for (const Json& call : told) {
    EXPECT_TRUE(call["carried"]) << call;
    if (call["symbol"] != "") launched[call["correlation"]] = call["symbol"];
  }
  size_t launched_kernels = 0;
  for (const Json& kernel : run.Told(pid, "kernel")) {
    if (kernel["graph"] != 0) continue;
    ++launched_kernels;
    EXPECT_EQ(launched[kernel["correlation"]], kernel["name"].get<std::string>()) << kernel;
  }
  // One launch was captured into the graph: it has a callback and no kernel of its own.
  EXPECT_EQ(launched_kernels + 1, launched.size());
}

TEST(StandinTrainTest, StreamsAreInOrderAndKernelsStartAfterTheirLaunch) {
  SimulatedRun run = Train({}, 1);
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  int pid = run.Processes().at(0);
  std::map<unsigned, uint64_t> entered, stream_end;
  for (const Json& call : run.Truth(pid, "api")) {
    if (!call["nested"]) entered[call["correlation"]] = call["enter_raw_ns"];
  }
  for (const Json& kernel : run.Truth(pid, "kernel")) {
    EXPECT_GT(kernel["start_raw_ns"].get<uint64_t>(), entered.at(kernel["correlation"])) << kernel;
    EXPECT_LT(kernel["start_ns"].get<uint64_t>(), kernel["end_ns"].get<uint64_t>());
    uint64_t& end = stream_end[kernel["stream"]];
    EXPECT_GE(kernel["start_ns"].get<uint64_t>(), end) << kernel;
    end = kernel["end_ns"];
  }
  EXPECT_FALSE(stream_end.empty());
}

TEST(StandinTrainTest, GraphTraceGivesOneRecordPerLaunchAndNoNodes) {
  SimulatedRun run = Train(Injected({{"PROBE_KINDS", "10,2,51"}}), 1);
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  int pid = run.Processes().at(0);
  std::vector<std::string> fields = {"device",      "context",  "stream", "graph",
                                     "correlation", "start_ns", "end_ns"};
  EXPECT_EQ(run.Truth(pid, "graph_launch").size(), size_t{kSteps});
  EXPECT_EQ(Pick(run.Told(pid, "graph_launch"), fields),
            Pick(run.Truth(pid, "graph_launch"), fields));
  for (const Json& kernel : run.Told(pid, "kernel")) EXPECT_EQ(kernel["graph"], 0) << kernel;
}

TEST(StandinTrainTest, OlderLayoutsDeliverTheSameRecords) {
  for (const char* version : {"18", "21", "24", "28", "130000", "99", "0"}) {
    SimulatedRun run = Train(Injected({{"RANKTAP_STANDIN_CUPTI_VERSION", version}}), 1);
    ASSERT_TRUE(run.exited_with(0)) << run.errors();
    int pid = run.Processes().at(0);
    // The fields of the first layout: what came later is not there to be read.
    std::vector<std::string> fields = {"name", "stream", "correlation", "start_ns", "end_ns"};
    EXPECT_EQ(Pick(run.Told(pid, "kernel"), fields), Pick(run.Truth(pid, "kernel"), fields))
        << version;
    EXPECT_EQ(run.Told(pid, "copy").size(), run.Truth(pid, "copy").size()) << version;
  }
}

}  // namespace
}  // namespace ranktap::standin_test
