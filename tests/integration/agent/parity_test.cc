// The training program under the real agent and collector: the trace says what the stand-in's truth
// log says, event by event, no more and no less.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::Trace;

constexpr int kRanks = 4, kSteps = 3;
// Of the clock readings that map CUPTI's clock to the trace's; the truth maps with its own.
constexpr int64_t kToleranceNs = 1000;

struct Span {
  int64_t start, end;
  auto operator<=>(const Span&) const = default;
};
// What happened, as text -> when. Equal keys (two launches of one graph node) are sorted by time.
using Events = std::multimap<std::string, Span>;

template <typename... Parts>
std::string Key(const Parts&... parts) {
  return Json::array({parts...}).dump();
}

void ExpectSame(const std::string& what, const Events& traced, const Events& truth) {
  std::multiset<std::string> traced_keys, truth_keys;
  for (const auto& [key, span] : traced) traced_keys.insert(key);
  for (const auto& [key, span] : truth) truth_keys.insert(key);
  EXPECT_FALSE(truth.empty()) << what << ": the truth has none, so the test shows nothing";
  ASSERT_EQ(traced_keys, truth_keys) << what;
  auto other = truth.begin();
  for (const auto& [key, span] : traced) {
    EXPECT_LE(std::llabs(span.start - other->second.start), kToleranceNs) << what << " " << key;
    EXPECT_LE(std::llabs(span.end - other->second.end), kToleranceNs) << what << " " << key;
    ++other;
  }
}

Span SpanOf(const Json& line) {
  return {line.at("start_raw_ns").get<int64_t>(), line.at("end_raw_ns").get<int64_t>()};
}

Events Collect(const std::vector<Json>& lines, const std::function<std::string(const Json&)>& key,
               const std::function<Span(const Json&)>& span) {
  Events events;
  for (const Json& line : lines) {
    // Nodes of a graph are traced as one launch at this level.
    if (line.value("type", "") != "graph_launch" && line.value("graph", 0) != 0) continue;
    events.emplace(key(line), span(line));
  }
  return events;
}

const collector::Lane& LaneOf(const Trace& trace, const collector::DeviceWork& work, size_t row) {
  return trace.lanes[work.lane[row]];
}

Events KernelsOf(const Trace& trace) {
  Events events;
  const collector::Kernels& kernels = trace.kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const collector::Lane& lane = LaneOf(trace, kernels, i);
    const proto::LaunchShape* shape = trace.dictionary.Shape(kernels.shape[i]);
    if (shape == nullptr) {
      ADD_FAILURE() << "a kernel without a shape";
      continue;
    }
    events.emplace(
        Key(std::string(trace.dictionary.String(kernels.name[i])), lane.device, lane.context,
            lane.stream, kernels.correlation[i], shape->grid, shape->block, shape->cluster,
            shape->static_shared_bytes, shape->dynamic_shared_bytes, shape->registers_per_thread),
        Span{kernels.start[i], kernels.end[i]});
  }
  return events;
}

std::string KernelKey(const Json& line) {
  return Key(line["name"], line["device"], line["context"], line["stream"], line["correlation"],
             line["grid"], line["block"], line["cluster"], line["static_shared"],
             line["dynamic_shared"], line["registers"]);
}

Events CopiesOf(const Trace& trace) {
  static const char* const kMemory[] = {"unknown", "pageable", "pinned",
                                        "device",  "array",    "managed"};
  Events events;
  const collector::Copies& copies = trace.copies;
  for (size_t i = 0; i < copies.size(); ++i) {
    const collector::Lane& lane = LaneOf(trace, copies, i);
    events.emplace(
        Key(lane.device, lane.context, lane.stream, copies.correlation[i], copies.bytes[i],
            kMemory[copies.src_kind[i]], kMemory[copies.dst_kind[i]], copies.flags.At(i) == 1),
        Span{copies.start[i], copies.end[i]});
  }
  return events;
}

std::string CopyKey(const Json& line) {
  return Key(line["device"], line["context"], line["stream"], line["correlation"], line["bytes"],
             line["from"], line["to"], line["async"]);
}

Events MemsetsOf(const Trace& trace) {
  Events events;
  const collector::Memsets& memsets = trace.memsets;
  for (size_t i = 0; i < memsets.size(); ++i) {
    const collector::Lane& lane = LaneOf(trace, memsets, i);
    events.emplace(Key(lane.device, lane.context, lane.stream, memsets.correlation[i],
                       memsets.bytes[i], memsets.value.At(i), memsets.flags.At(i) == 1),
                   Span{memsets.start[i], memsets.end[i]});
  }
  return events;
}

std::string MemsetKey(const Json& line) {
  return Key(line["device"], line["context"], line["stream"], line["correlation"], line["bytes"],
             line["value"], line["async"]);
}

Events GraphLaunchesOf(const Trace& trace) {
  Events events;
  const collector::GraphLaunches& graphs = trace.graph_launches;
  for (size_t i = 0; i < graphs.size(); ++i) {
    const collector::Lane& lane = LaneOf(trace, graphs, i);
    events.emplace(
        Key(lane.device, lane.context, lane.stream, graphs.correlation[i], graphs.graph.At(i)),
        Span{graphs.start[i], graphs.end[i]});
  }
  return events;
}

std::string GraphLaunchKey(const Json& line) {
  return Key(line["device"], line["context"], line["stream"], line["correlation"], line["graph"]);
}

Events SyncsOf(const Trace& trace) {
  static const char* const kKinds[] = {"", "event", "stream_wait_event", "stream", "context"};
  Events events;
  const collector::Syncs& syncs = trace.syncs;
  for (size_t i = 0; i < syncs.size(); ++i) {
    events.emplace(Key(kKinds[syncs.type[i]], syncs.context[i], static_cast<int>(syncs.stream[i]),
                       static_cast<int>(syncs.cuda_event[i]), syncs.cuda_event_sync_id.At(i),
                       syncs.correlation[i]),
                   Span{syncs.start[i], syncs.end[i]});
  }
  return events;
}

std::string SyncKey(const Json& line) {
  return Key(line["kind"], line["context"], line["stream"], line["event"], line["event_sync"],
             line["correlation"]);
}

Events MemoryOf(const Trace& trace) {
  Events events;
  for (const proto::MemoryEvent& row : trace.memory) {
    const auto at = static_cast<int64_t>(row.time_ns);
    events.emplace(
        Key(row.operation == 1 ? "allocate" : "free", row.address, row.bytes, row.device,
            row.context, static_cast<int>(row.stream), row.correlation, row.is_async != 0),
        Span{at, at});
  }
  return events;
}

std::string MemoryKey(const Json& line) {
  return Key(line["operation"], line["address"], line["bytes"], line["device"], line["context"],
             line["stream"], line["correlation"], line["async"]);
}

Span AtDeviceTime(const Json& line) {
  const auto at = line.at("raw_ns").get<int64_t>();
  return {at, at};
}

class ParityTest : public testing::Test {
 protected:
  // One run for all: four processes take a while.
  static void SetUpTestSuite() {
    run_ = new TracedRun(
        {Host("train_cuda"), "--ranks", std::to_string(kRanks), "--steps", std::to_string(kSteps)});
  }
  static void TearDownTestSuite() {
    delete run_;
    run_ = nullptr;
  }
  void SetUp() override {
    ASSERT_TRUE(run_->process().exited_with(0)) << run_->process().errors();
    ASSERT_EQ(run_->run().traces.size(), size_t{kRanks}) << run_->load_problem();
  }

  void ExpectEveryRank(const std::string& type, Events (*traced)(const Trace&),
                       std::string (*key)(const Json&), Span (*span)(const Json&) = &SpanOf) {
    for (const Trace& trace : run_->run().traces) {
      SCOPED_TRACE("rank " + std::to_string(trace.info.rank.value_or(99)));
      ExpectSame(type, traced(trace),
                 Collect(run_->process().Truth(static_cast<int>(trace.info.pid), type), key, span));
    }
  }

  static TracedRun* run_;
};

TracedRun* ParityTest::run_ = nullptr;

TEST_F(ParityTest, EveryRankHasATraceAndEveryTraceVerifies) {
  std::set<uint32_t> ranks;
  for (const Trace& trace : run_->run().traces) ranks.insert(trace.info.rank.value());
  EXPECT_THAT(ranks, testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(run_->Problems(), "");
  for (const Trace& trace : run_->run().traces) EXPECT_EQ(SumWriters(trace).lost, 0u);
}

TEST_F(ParityTest, KernelsAreTheTruthsKernels) {
  ExpectEveryRank("kernel", &KernelsOf, &KernelKey);
}
TEST_F(ParityTest, CopiesAreTheTruthsCopies) { ExpectEveryRank("copy", &CopiesOf, &CopyKey); }
TEST_F(ParityTest, MemsetsAreTheTruthsMemsets) {
  ExpectEveryRank("memset", &MemsetsOf, &MemsetKey);
}
TEST_F(ParityTest, GraphLaunchesAreTheTruthsGraphLaunches) {
  ExpectEveryRank("graph_launch", &GraphLaunchesOf, &GraphLaunchKey);
}
TEST_F(ParityTest, SynchronisationsAreTheTruths) {
  ExpectEveryRank("synchronization", &SyncsOf, &SyncKey);
}
// CUPTI's kind CUDA_EVENT is off: the calls have the event and the stream as arguments.
TEST_F(ParityTest, EveryRecordedEventIsThereAsItsCallWithBothHandles) {
  for (const Trace& trace : run_->run().traces) {
    std::multiset<uint32_t> truth, traced;
    for (const Json& line :
         run_->process().Truth(static_cast<int>(trace.info.pid), "event_record")) {
      truth.insert(line["correlation"].get<uint32_t>());
    }
    const collector::EventCalls& calls = trace.event_calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (trace.dictionary.Api(calls.api[i]).name != "cudaEventRecord") continue;
      traced.insert(calls.correlation[i]);
      EXPECT_NE(calls.event.At(i), 0u);
      EXPECT_NE(calls.stream.At(i), 0u);
    }
    EXPECT_FALSE(truth.empty());
    EXPECT_EQ(traced, truth);
  }
}
TEST_F(ParityTest, MemoryOperationsAreTheTruths) {
  ExpectEveryRank("memory", &MemoryOf, &MemoryKey, &AtDeviceTime);
}

// Which calls are recorded, by domain and callback id; and the calls themselves.
struct Calls {
  std::set<std::pair<std::string, uint32_t>> recorded;
  std::set<std::string> names;
  Events events;
};

Calls CallsOf(const Trace& trace) {
  Calls calls;
  for (const collector::ApiCalls* table :
       {&trace.api_calls, static_cast<const collector::ApiCalls*>(&trace.event_calls)}) {
    for (size_t i = 0; i < table->size(); ++i) {
      const collector::ApiFunction& api = trace.dictionary.Api(table->api[i]);
      const std::string domain = api.domain == proto::ApiDomain::kDriver ? "driver" : "runtime";
      calls.recorded.emplace(domain, api.cbid);
      calls.names.insert(api.name);
      calls.events.emplace(Key(domain, api.cbid, table->correlation[i],
                               trace.writers[table->writer[i]].thread, table->status.At(i)),
                           Span{table->start[i], table->end[i]});
    }
  }
  return calls;
}

TEST_F(ParityTest, EveryCallOfARecordedKindIsThereOnceWithItsThreadAndTimes) {
  for (const Trace& trace : run_->run().traces) {
    const Calls traced = CallsOf(trace);
    EXPECT_THAT(traced.names,
                testing::IsSupersetOf({"cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemsetAsync",
                                       "cudaStreamSynchronize", "cudaEventRecord",
                                       "cudaStreamWaitEvent", "cudaEventSynchronize",
                                       "cudaDeviceSynchronize", "cudaMalloc", "cudaFree"}));
    Events truth;
    for (const Json& line : run_->process().Truth(static_cast<int>(trace.info.pid), "api")) {
      if (line["nested"] ||
          !traced.recorded.contains({line["domain"].get<std::string>(), line["cbid"]})) {
        continue;
      }
      truth.emplace(
          Key(line["domain"], line["cbid"], line["correlation"], line["thread"], line["status"]),
          Span{line["enter_raw_ns"].get<int64_t>(), line["exit_raw_ns"].get<int64_t>()});
    }
    std::multiset<std::string> traced_keys, truth_keys;
    for (const auto& [key, span] : traced.events) traced_keys.insert(key);
    for (const auto& [key, span] : truth) truth_keys.insert(key);
    ASSERT_EQ(traced_keys, truth_keys);
    auto other = truth.begin();
    for (const auto& [key, span] : traced.events) {
      // The callbacks come after the truth's entry and after its exit.
      EXPECT_GE(span.start, other->second.start - kToleranceNs) << key;
      EXPECT_LE(span.start, other->second.end + kToleranceNs) << key;
      EXPECT_GE(span.end, other->second.end - kToleranceNs) << key;
      ++other;
    }
  }
}

TEST_F(ParityTest, EveryKernelIsJoinedToItsLaunchAndStartsAfterIt) {
  for (const Trace& trace : run_->run().traces) {
    for (size_t i = 0; i < trace.kernels.size(); ++i) {
      const uint32_t launch = trace.kernels.launch[i];
      ASSERT_NE(launch, collector::kNone);
      EXPECT_THAT(trace.dictionary.Api(trace.api_calls.api[launch]).name,
                  testing::HasSubstr("Launch"));
      EXPECT_GE(trace.kernels.start[i], trace.api_calls.start[launch] - kToleranceNs);
    }
  }
}

TEST_F(ParityTest, RangesAreTheProgramsOwnWithDomainPayloadAndOrder) {
  for (const Trace& trace : run_->run().traces) {
    std::map<std::string, std::vector<int64_t>> payloads;
    std::map<std::string, int> counts;
    for (size_t i = 0; i < trace.ranges.size(); ++i) {
      const std::string domain(trace.dictionary.Domain(trace.ranges.domain[i]));
      const std::string name(trace.dictionary.String(trace.ranges.name[i]));
      ++counts[domain + "/" + name];
      if (domain == "train") {
        payloads[name].push_back(static_cast<int64_t>(trace.ranges.payload.At(i)));
      }
      EXPECT_EQ(trace.ranges.unfinished.At(i), 0) << name;
    }
    EXPECT_THAT(counts,
                testing::UnorderedElementsAre(
                    testing::Pair("train/step", kSteps), testing::Pair("train/load", kSteps),
                    testing::Pair("train/all_reduce", kSteps), testing::Pair("/forward", kSteps),
                    testing::Pair("/backward", kSteps), testing::Pair("/optimizer", kSteps)));
    for (const auto& [name, steps] : payloads) {
      EXPECT_THAT(steps, testing::ElementsAre(0, 1, 2)) << name;
    }
  }
}

}  // namespace
}  // namespace ranktap::agent_test
