// The training program under the real agent and collector: the trace says what the stand-in's truth
// log says, event by event, no more and no less. Once for each CUPTI there is a stand-in of: its
// records are as long, its functions as many and its callback ids as high as in the vendor's
// library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
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
               const std::function<Span(const Json&)>& span, bool graphs_by_node) {
  Events events;
  for (const Json& line : lines) {
    const bool is_whole = line.value("type", "") == "graph_launch";
    if (is_whole ? graphs_by_node : line.value("graph", 0) != 0 && !graphs_by_node) continue;
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

// Which recording of an event was waited for: records say so since 12.8.
std::string SyncKey(const Json& line, bool has_event_sync) {
  return Key(line["kind"], line["context"], line["stream"], line["event"],
             has_event_sync ? line["event_sync"] : Json(0), line["correlation"]);
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

struct Version {
  const char* name;
  uint32_t number;     // cuptiGetVersion
  const char* folder;  // of the stand-in, below the build tree
};
void PrintTo(const Version& version, std::ostream* out) { *out << version.name; }

// 12.0 calls itself 18, as 11.8 does.
constexpr Version kVersions[] = {
    {"11.8", 18, "fakes/cupti-11.8"},     {"12.0", 18, "fakes/cupti-12.0"},
    {"12.4", 22, "fakes/cupti-12.4"},     {"12.8", 26, "fakes/cupti-12.8"},
    {"12.9", 28, "fakes/cupti-12.9"},     {"13.0", 130001, "fakes"},
    {"13.4", 130401, "fakes/cupti-13.4"}, {"13.5", 130500, "fakes/cupti-13.5"},
};
constexpr uint32_t kSyncIdsSince = 26, kLaunchByHandleSince = 130000, kWholeGraphsSince = 130200;

Environment EnvironmentOf(const Version& version) {
  return {{"LD_LIBRARY_PATH", BuildPath(version.folder) + ":" + BuildPath("fakes")}};
}

class ParityTest : public testing::TestWithParam<Version> {
 protected:
  void SetUp() override {
    if (!HasStandIn(GetParam())) {
      GTEST_SKIP() << "no stand-in for CUPTI " << GetParam().name << ": run scripts/setup";
    }
    // One run for all tests of a version: four processes take a while.
    std::unique_ptr<TracedRun>& run = runs_[GetParam().name];
    if (run == nullptr) {
      run = std::make_unique<TracedRun>(
          std::vector<std::string>{Host("train_cuda"), "--ranks", std::to_string(kRanks), "--steps",
                                   std::to_string(kSteps)},
          EnvironmentOf(GetParam()));
    }
    run_ = run.get();
    ASSERT_TRUE(run_->process().exited_with(0)) << run_->process().errors();
    ASSERT_EQ(run_->run().traces.size(), size_t{kRanks}) << run_->load_problem();
  }
  static void TearDownTestSuite() { runs_.clear(); }

  static bool HasStandIn(const Version& version) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(BuildPath(version.folder), none)) {
      if (entry.path().filename().string().starts_with("libcupti.so")) return true;
    }
    return false;
  }

  void ExpectEveryRank(const std::string& type, Events (*traced)(const Trace&),
                       const std::function<std::string(const Json&)>& key,
                       Span (*span)(const Json&) = &SpanOf) {
    for (const Trace& trace : run_->run().traces) {
      SCOPED_TRACE("rank " + std::to_string(trace.info.rank.value_or(99)));
      ExpectSame(type, traced(trace),
                 Collect(run_->process().Truth(static_cast<int>(trace.info.pid), type), key, span,
                         GetParam().number < kWholeGraphsSince));
    }
  }

  static std::map<std::string, std::unique_ptr<TracedRun>> runs_;
  TracedRun* run_ = nullptr;
};

std::map<std::string, std::unique_ptr<TracedRun>> ParityTest::runs_;

INSTANTIATE_TEST_SUITE_P(Cupti, ParityTest, testing::ValuesIn(kVersions), [](const auto& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '.', '_');
  return name;
});

TEST_P(ParityTest, TheTraceNamesTheCuptiThatItCameFrom) {
  for (const Trace& trace : run_->run().traces) {
    std::string version;
    for (const v1::Library& library : trace.hello.libraries()) {
      if (library.name() == "cupti") version = library.version();
    }
    EXPECT_EQ(version, std::to_string(GetParam().number));
  }
}

TEST_P(ParityTest, EveryRankHasATraceAndEveryTraceVerifies) {
  std::set<uint32_t> ranks;
  for (const Trace& trace : run_->run().traces) ranks.insert(trace.info.rank.value());
  EXPECT_THAT(ranks, testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(run_->Problems(), "");
  for (const Trace& trace : run_->run().traces) EXPECT_EQ(SumWriters(trace).lost, 0u);
}

TEST_P(ParityTest, KernelsAreTheTruthsKernels) {
  ExpectEveryRank("kernel", &KernelsOf, &KernelKey);
}
TEST_P(ParityTest, CopiesAreTheTruthsCopies) { ExpectEveryRank("copy", &CopiesOf, &CopyKey); }
TEST_P(ParityTest, MemsetsAreTheTruthsMemsets) {
  ExpectEveryRank("memset", &MemsetsOf, &MemsetKey);
}
TEST_P(ParityTest, GraphLaunchesAreTheTruthsGraphLaunchesWhereCuptiMayRecordThem) {
  if (GetParam().number < kWholeGraphsSince) {
    for (const Trace& trace : run_->run().traces) EXPECT_EQ(trace.graph_launches.size(), 0u);
    return;
  }
  ExpectEveryRank("graph_launch", &GraphLaunchesOf, &GraphLaunchKey);
}
TEST_P(ParityTest, SynchronisationsAreTheTruths) {
  const bool has_event_sync = GetParam().number >= kSyncIdsSince;
  ExpectEveryRank("synchronization", &SyncsOf,
                  [has_event_sync](const Json& line) { return SyncKey(line, has_event_sync); });
}
// CUPTI's kind CUDA_EVENT is off: the calls have the event and the stream as arguments.
TEST_P(ParityTest, EveryRecordedEventIsThereAsItsCallWithBothHandles) {
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
TEST_P(ParityTest, MemoryOperationsAreTheTruths) {
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

// The truth has the newest runtime's ids.
Json CallbackIdOf(const Json& line, const Version& version) {
  constexpr uint32_t kLaunchByHandle = 505, kLaunch = 211;
  if (version.number < kLaunchByHandleSince && line["domain"] == "runtime" &&
      line["cbid"] == kLaunchByHandle) {
    return kLaunch;
  }
  return line["cbid"];
}

TEST_P(ParityTest, EveryCallOfARecordedKindIsThereOnceWithItsThreadAndTimes) {
  for (const Trace& trace : run_->run().traces) {
    const Calls traced = CallsOf(trace);
    EXPECT_THAT(traced.names,
                testing::IsSupersetOf({"cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemsetAsync",
                                       "cudaStreamSynchronize", "cudaEventRecord",
                                       "cudaStreamWaitEvent", "cudaEventSynchronize",
                                       "cudaDeviceSynchronize", "cudaMalloc", "cudaFree"}));
    Events truth;
    for (const Json& line : run_->process().Truth(static_cast<int>(trace.info.pid), "api")) {
      const Json cbid = CallbackIdOf(line, GetParam());
      if (line["nested"] || !traced.recorded.contains({line["domain"].get<std::string>(), cbid})) {
        continue;
      }
      truth.emplace(Key(line["domain"], cbid, line["correlation"], line["thread"], line["status"]),
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

TEST_P(ParityTest, EveryKernelIsJoinedToItsLaunchAndStartsAfterIt) {
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

TEST_P(ParityTest, RangesAreTheProgramsOwnWithDomainPayloadAndOrder) {
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
                    testing::Pair("/backward", kSteps), testing::Pair("/optimizer", kSteps),
                    testing::Pair("/capture", 1)));
    for (const auto& [name, steps] : payloads) {
      EXPECT_THAT(steps, testing::ElementsAre(0, 1, 2)) << name;
    }
  }
}

}  // namespace
}  // namespace ranktap::agent_test
