// `--keep`: the last part of each rank stays, whatever it is given, and a dump of it is a run.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <future>
#include <set>

#include "collector/file/json.h"
#include "collector/ingest/control/control_client.h"
#include "collector/trace/load/run_reader.h"
#include "collector/trace/load/trace_check.h"
#include "collector/trace/marked_lines.h"
#include "proto/framework_marks.h"
#include "proto/operator_payload.h"
#include "proto/sample_marks.h"
#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/unit/collector/collector_process.h"
#include "tests/unit/collector/test_collector.h"

namespace ranktap::collector {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Segments end by size: no test waits for the time.
constexpr uint64_t kKeptBytes = 54'000;

ServerOptions Keeping() {
  ServerOptions options;
  options.keep = {.ns = 3'600'000'000'000, .bytes = kKeptBytes};
  return options;
}

class KeptRank {
 public:
  KeptRank(const std::string& socket, uint32_t rank) : agent_({.rank = rank, .chunks = 48}) {
    (void)agent_.Join(socket);
    writer_ = agent_.AddWriter();
    Tell(proto::kCommDomain, proto::kGroupsMark,
         R"({"name": "dp_0", "description": "", "backend": "nccl", "ranks": [0, 1], "size": 2})");
    Tell(proto::kSampleDomain, proto::kSampledCodesMark, "[1,\"train.py\",\"main\"]\n");
    Tell(proto::kSampleDomain, proto::kSampledFramesMark, "[1,0,1,31]\n");
    proto::NameEvent stream{.time_ticks = 1, .id = 7, .object = proto::NamedObject::kStream};
    stream.name = agent_.InternText("the copies' stream");
    agent_.Emit(writer_, stream);
  }
  // Kernels of names, and samples at places, that there were never before; as many each time.
  void WorkAtNewPlaces(int round) {
    agent_.TellAgain();
    Tell(proto::kSampleDomain, proto::kSampledAgainMark, "");
    std::string codes, frames, samples;
    for (int i = 1; i <= kPlaces; ++i) {
      const std::string place = std::to_string(round * kPlaces + i);
      codes += "[" + place + ",\"/job/generated_" + place + ".py\",\"step_" + place + "\"]\n";
      frames += "[" + place + ",0," + place + ",1]\n";
      samples += "[1," + place + ",0,5,1000000,2000000,1000000,0,0,0]\n";
    }
    Tell(proto::kSampleDomain, proto::kSampledCodesMark, codes);
    Tell(proto::kSampleDomain, proto::kSampledFramesMark, frames);
    Tell(proto::kSampleDomain, proto::kSamplesMark, samples);
    for (int i = 1; i <= kPlaces; ++i) {  // a window of operators, each with inputs of its own
      const std::string number = std::to_string(round * int{proto::kSignaturesOfWindow} + i);
      Tell(proto::kOperatorDomain, proto::kSignaturesMark,
           "[" + number + ",\"[[" + number + ", 64]]\",\"[\\\"float\\\"]\",\"\"]\n");
    }
    suffix_ = " of round " + std::to_string(round);
    names_ = 300;
    Work(1);
  }
  // At the place that was told at the beginning.
  void Sample() {
    Tell(proto::kSampleDomain, proto::kSamplesMark, "[1,1,0,5,1000000,2000000,1000000,0,0,0]\n",
         2'000'000);
    agent_.Flush(500);
  }
  // Kernels whose times do not compress, stored by the time it returns.
  void Work(int blocks) {
    for (int block = 0; block < blocks; ++block) {
      for (uint32_t i = 0; i < 2000; ++i, ++next_) {
        random_ = random_ * 6364136223846793005 + 1442695040888963407;
        proto::KernelEvent kernel{};
        kernel.start_ns = 1'000'000 * uint64_t{next_} + (random_ >> 48);
        kernel.end_ns = kernel.start_ns + (random_ >> 40) % 1'000'000;
        kernel.correlation = next_;
        kernel.name = agent_.InternText("kernel " + std::to_string(next_ % names_) + suffix_);
        agent_.Emit(writer_, kernel);
      }
      agent_.Flush(500);
      agent_.SendClock();
      agent_.AwaitAcks();
    }
  }
  void Leave() { agent_.LeaveLastWords(); }
  // The next collector gets what the one before has not acknowledged.
  void GoOnAt(const std::string& socket) {
    agent_.Disconnect();
    agent_.Rewind(agent_.Join(socket));
  }

 private:
  void Tell(std::string_view domain, std::string_view mark, const std::string& line,
            uint64_t ticks = 1) {
    proto::MarkEvent event{.time_ticks = ticks};
    event.nvtx.domain = agent_.InternText(std::string(domain), proto::EntryKind::kNvtxDomain);
    event.nvtx.name = agent_.InternText(std::string(mark));
    event.nvtx.payload = proto::kBytesSchema;
    event.nvtx.payload_type = proto::kNvtxSchemaPayload;
    const uint64_t head[2] = {proto::kBytesSchema, line.size()};
    agent_.Emit(writer_, event, "",
                std::string(reinterpret_cast<const char*>(head), sizeof(head)) + line);
  }

  fakes::FakeAgent agent_;
  static constexpr int kPlaces = 100;
  uint32_t writer_ = 0, next_ = 0, names_ = 7;
  std::string suffix_;
  uint64_t random_ = 1;
};

v1::Dump DumpOf(TestCollector* collector) {
  std::promise<v1::ControlReply> reply;
  v1::ControlRequest request;
  request.set_verb(v1::ControlRequest::VERB_DUMP);
  request.set_reason("a test");
  collector->collector().Dump(request,
                              [&](v1::ControlReply told) { reply.set_value(std::move(told)); });
  const v1::ControlReply told = reply.get_future().get();
  EXPECT_EQ(told.problem(), "");
  return told.dumps_size() == 1 ? told.dumps(0) : v1::Dump();
}

void ExpectWhole(const std::string& path) {
  const Result<RunCheck> check = CheckRun(path);
  ASSERT_TRUE(check.ok()) << check.message();
  for (const TraceCheck& trace : check->traces) {
    for (const Damage& problem : trace.problems) ADD_FAILURE() << trace.path << problem.what;
  }
  for (const std::string& problem : check->problems) ADD_FAILURE() << problem;
}

// Correlations in a row, up to `last`; names that were told before the first of them.
void ExpectLastKernels(const Trace& trace, uint32_t last) {
  ASSERT_GT(trace.kernels.size(), 1000u);
  EXPECT_LT(trace.kernels.size(), last) << "the first ones are gone";
  std::vector<uint32_t> seen(trace.kernels.correlation.begin(), trace.kernels.correlation.end());
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen.back(), last);
  for (size_t i = 1; i < seen.size(); ++i) ASSERT_EQ(seen[i], seen[i - 1] + 1);
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    ASSERT_EQ(trace.dictionary.String(trace.kernels.name[i]),
              "kernel " + std::to_string(trace.kernels.correlation[i] % 7));
  }
  ASSERT_EQ(trace.process_groups.size(), 1u) << "told once, long before";
  ASSERT_EQ(trace.names.size(), 1u);
  EXPECT_EQ(trace.dictionary.String(trace.names[0].name), "the copies' stream");
}

TEST(KeepTest, TheLastPartOfARankIsOneFileThatVerifiesWithWhatWasToldOnceBefore) {
  TestCollector collector(Keeping());
  EXPECT_EQ(RunChild([&] {
              KeptRank rank(collector.socket(), 0);
              rank.Work(9);
              rank.Sample();
              rank.Leave();
              return 0;
            }),
            0);
  const RunInfo info = collector.Finish();
  ASSERT_EQ(info.traces.size(), 1u);
  EXPECT_EQ(info.traces[0].file, "rank-00000.trace");
  EXPECT_EQ(info.traces[0].status, TraceStatus::kClosed);
  EXPECT_LT(info.traces[0].bytes, kKeptBytes + kKeptBytes / 4);
  ExpectWhole(collector.run_path());
  const auto run = collector.Load();
  ASSERT_EQ(run.traces.size(), 1u);
  ExpectLastKernels(run.traces[0], 9 * 2000 - 1);
  EXPECT_EQ(run.traces[0].ending.how(), v1::Ending::HOW_GOODBYE);
  // A sample is of a place that was told at the beginning.
  for (const std::string_view mark :
       {proto::kSampledCodesMark, proto::kSampledFramesMark, proto::kSamplesMark}) {
    const Trace& trace = run.traces[0];
    EXPECT_EQ(
        std::ranges::count_if(trace.marks.name,
                              [&](uint32_t name) { return trace.dictionary.String(name) == mark; }),
        1)
        << mark;
  }
}

uint64_t NumberAt(std::string_view line, size_t index) {
  const Json row = ParseJson(line);
  return row.is_array() && row.size() > index ? row[index].get<uint64_t>() : 0;
}

// Samples, whose frames are told, whose code objects are told.
size_t CountSamplesOfKnownPlaces(const Trace& trace) {
  const auto lines = [&trace](std::string_view mark) {
    return MarkedLines(trace, proto::kSampleDomain, mark);
  };
  std::set<uint64_t> codes, frames;
  for (const auto& line : lines(proto::kSampledCodesMark)) codes.insert(NumberAt(line, 0));
  for (const auto& line : lines(proto::kSampledFramesMark)) {
    EXPECT_TRUE(codes.contains(NumberAt(line, 2))) << line;
    frames.insert(NumberAt(line, 0));
  }
  for (const auto& line : lines(proto::kSamplesMark)) {
    EXPECT_TRUE(frames.contains(NumberAt(line, 1))) << line;
  }
  return lines(proto::kSamplesMark).size();
}

TEST(KeepTest, HoweverManyNamesAndPlacesThereWereTheSameBytesHoldAsManyEventsWithTheirNames) {
  ServerOptions options;
  options.keep = {.ns = 3'600'000'000'000, .bytes = 120'000};
  TestCollector collector(options);
  KeptRank rank(collector.socket(), 0);
  int round = 0;
  const auto kernels_after = [&](int rounds) {
    while (round < rounds) rank.WorkAtNewPlaces(round++);
    const v1::Dump dump = DumpOf(&collector);
    ExpectWhole(dump.path());
    auto run = LoadRun(dump.path());
    EXPECT_TRUE(run.ok());
    const Trace& trace = run->traces.at(0);
    EXPECT_EQ(trace.process_groups.size(), 1u) << "told once, long before";
    EXPECT_GT(CountSamplesOfKnownPlaces(trace), 500u);
    for (const uint32_t name : trace.kernels.name) {
      EXPECT_THAT(trace.dictionary.String(name), StartsWith("kernel "));
    }
    return trace.kernels.size();
  };
  const size_t at_first = kernels_after(14);
  EXPECT_LT(at_first, 13u * 2000) << "the first ones are gone";
  EXPECT_NEAR(static_cast<double>(kernels_after(40)), static_cast<double>(at_first), 2000);
  rank.Leave();
}

TEST(KeepTest, ADumpIsARunOfTheSameIntervalAndRecordingGoesOn) {
  TestCollector collector(Keeping());
  KeptRank first(collector.socket(), 0), second(collector.socket(), 1);
  for (int i = 0; i < 9; ++i) {
    first.Work(1);
    second.Work(1);
  }
  const v1::Dump dump = DumpOf(&collector);
  ASSERT_EQ(dump.problem(), "");
  EXPECT_THAT(dump.path(), StartsWith(collector.run_path() + "/dump-"));
  EXPECT_EQ(dump.traces(), 2u);
  first.Work(1);
  second.Work(1);
  first.Leave();
  second.Leave();
  ExpectWhole(dump.path());
  auto run = LoadRun(dump.path());
  ASSERT_TRUE(run.ok()) << run.message();
  EXPECT_EQ(run->info.metadata.at("dump"), "a test");
  ASSERT_EQ(run->traces.size(), 2u);
  for (const Trace& trace : run->traces) ExpectLastKernels(trace, 9 * 2000 - 1);
  // One may have stored a block of its 2,000 as a segment ended.
  const auto first_of = [&](size_t i) { return run->traces[i].kernels.correlation[0]; };
  EXPECT_LE(std::max(first_of(0), first_of(1)) - std::min(first_of(0), first_of(1)), 2000u);
  (void)collector.Finish(0);
  ExpectWhole(collector.run_path());
  const auto rest = collector.Load();
  ASSERT_EQ(rest.traces.size(), 2u);
  for (const Trace& trace : rest.traces) ExpectLastKernels(trace, 10 * 2000 - 1);
}

TEST(KeepTest, ADumpOntoAFullDiskSaysSoLeavesNothingAndRecordingGoesOn) {
  ::signal(SIGXFSZ, SIG_IGN);
  TestCollector collector(Keeping());
  KeptRank rank(collector.socket(), 0);
  rank.Work(9);
  rlimit unlimited{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  rlimit limit = unlimited;
  limit.rlim_cur = kKeptBytes / 2;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const v1::Dump dump = DumpOf(&collector);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  EXPECT_THAT(dump.problem(), HasSubstr("File too large"));
  EXPECT_FALSE(std::filesystem::exists(dump.path()));
  rank.Work(1);
  rank.Leave();
  (void)collector.Finish(0);
  ExpectWhole(collector.run_path());
  ExpectLastKernels(collector.Load().traces.at(0), 10 * 2000 - 1);
}

std::vector<std::string> DirectoriesIn(const std::string& path) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.is_directory()) found.push_back(entry.path());
  }
  return found;
}

// A limit ends it in the middle of the file that it copies.
TEST(KeepTest, OfACollectorThatDiesDuringADumpTheNextOneLosesNothingAndRemovesTheHalf) {
  const TemporaryDirectory directory;
  const KeepLimits keep{.ns = 3'600'000'000'000, .bytes = 240'000};
  auto first = std::make_unique<CollectorProcess>(
      directory.path(),
      CollectorProcess::Setup{.keep = keep, .first = [] {
                                ::signal(SIGXFSZ, SIG_DFL);
                                const rlimit none{0, 0}, least{80'000, RLIM_INFINITY};
                                (void)::setrlimit(RLIMIT_CORE, &none);
                                (void)::setrlimit(RLIMIT_FSIZE, &least);
                              }});
  KeptRank rank(first->socket(), 0);
  rank.Work(12);
  v1::ControlRequest request;
  request.set_verb(v1::ControlRequest::VERB_STATUS);
  const auto status = AskCollector(first->socket(), request);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(status->processes_size(), 1);
  EXPECT_GT(status->processes(0).kept_ns(), 0u);
  EXPECT_GT(status->processes(0).kept_bytes(), 80'000u);
  EXPECT_LT(status->processes(0).kept_bytes(), keep.bytes);
  request.set_verb(v1::ControlRequest::VERB_DUMP);
  EXPECT_FALSE(AskCollector(first->socket(), request).ok());
  const int end = first->Stop();
  ASSERT_TRUE(WIFSIGNALED(end));
  EXPECT_EQ(WTERMSIG(end), SIGXFSZ);

  const std::string run = DirectoriesIn(first->root() + "/" + std::to_string(::geteuid())).at(0);
  const std::string half = DirectoriesIn(run).at(0);
  EXPECT_THAT(half, AllOf(StartsWith(run + "/dump-"), EndsWith(".part")));
  const Result<RunCheck> check = CheckRun(half + "/");
  ASSERT_TRUE(check.ok()) << check.message();
  EXPECT_FALSE(check->ok());
  EXPECT_THAT(check->problems, ElementsAre(HasSubstr(": half a dump: its collector still makes it, "
                                                     "or ended meanwhile; what it was of is in " +
                                                     run)));

  CollectorProcess second(directory.path(), {.keep = keep});
  EXPECT_THAT(DirectoriesIn(run), IsEmpty());
  rank.GoOnAt(second.socket());
  rank.Work(1);
  rank.Leave();
  EXPECT_EQ(second.Stop(), 0);
  ExpectWhole(run);
  auto loaded = LoadRun(run);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  std::vector<uint32_t> seen;
  for (const Trace& trace : loaded->traces) {
    seen.insert(seen.end(), trace.kernels.correlation.begin(), trace.kernels.correlation.end());
  }
  std::ranges::sort(seen);
  ASSERT_EQ(seen.size(), 13u * 2000);
  for (uint32_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i);
}

TEST(KeepTest, WithoutItADumpIsRefusedWithTheOptionThatIsMissing) {
  TestCollector collector;
  KeptRank rank(collector.socket(), 0);
  rank.Work(1);
  EXPECT_THAT(DumpOf(&collector).problem(), HasSubstr("--keep 60s"));
  rank.Leave();
}

}  // namespace
}  // namespace ranktap::collector
