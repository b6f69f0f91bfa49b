// Ranks killed at seeded moments, by the hundred: what a thread had done when it died is in the
// trace, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/fault_seed.h"
#include "tests/integration/agent/traced_run.h"
#include "tests/workloads/hosts/dies_ledger.h"

namespace ranktap::faults_test {
namespace {

namespace fs = std::filesystem;
using agent_test::Host;
using agent_test::SumWriters;
using agent_test::TracedRun;
using collector::Trace;

struct Done {
  uint64_t launches = 0, ranges = 0;
};

// By thread id.
std::map<int32_t, Done> ReadLedger(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  Ledger ledger{};
  file.read(reinterpret_cast<char*>(&ledger), sizeof(ledger));
  std::map<int32_t, Done> done;
  for (const LedgerLine& line : ledger.lines) {
    if (line.thread != 0) done[line.thread] = {line.launches, line.ranges};
  }
  return done;
}

std::map<int32_t, Done> InTrace(const Trace& trace) {
  std::map<int32_t, Done> done;
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    if (trace.ranges.unfinished.At(i) == 0)
      ++done[trace.writers[trace.ranges.writer[i]].thread].ranges;
  }
  for (size_t i = 0; i < trace.api_calls.size(); ++i) {
    const std::string_view name = trace.dictionary.Api(trace.api_calls.api[i]).name;
    if (name.find("Launch") == std::string_view::npos) continue;
    ++done[trace.writers[trace.api_calls.writer[i]].thread].launches;
  }
  return done;
}

// Losses that a death does not explain: it may come between counting an event and committing it,
// which is one event of each thread.
uint64_t UnexplainedLosses(const collector::Writer& writer) {
  const uint64_t half_written = writer.lost[static_cast<size_t>(proto::Loss::kDeath)];
  return proto::Total(writer.lost) + proto::Total(writer.declared) -
         std::min<uint64_t>(half_written, 1);
}

class RankDeathTest : public testing::TestWithParam<const char*> {};

TEST_P(RankDeathTest, EveryCompletedCallOfEveryThreadIsInTheTraceOnce) {
  const int count = FaultCount(200);
  const uint32_t seed = FaultSeed();
  std::string folder = testing::TempDir() + "/ledgers.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const TracedRun traced(
      {Host("dies"), "storm", GetParam(), std::to_string(count), std::to_string(seed), folder});
  SCOPED_TRACE("seed " + std::to_string(seed));
  ASSERT_TRUE(traced.process().exited_with(0))
      << traced.process().output() << traced.process().errors();
  EXPECT_EQ(traced.process().errors(), "");
  EXPECT_EQ(traced.Problems(), "");

  // By the thread that a process begins with, which has its pid.
  std::map<int32_t, std::map<int32_t, Done>> traces;
  uint64_t events = 0, half_written = 0;
  for (const Trace& trace : traced.run().traces) {
    const auto sums = SumWriters(trace);
    EXPECT_EQ(sums.produced, sums.stored + sums.lost) << "pid " << trace.info.pid;
    for (const collector::Writer& writer : trace.writers) {
      EXPECT_EQ(UnexplainedLosses(writer), 0u)
          << "pid " << trace.info.pid << " thread " << writer.thread;
    }
    events += sums.stored;
    half_written += sums.lost;
    traces[static_cast<int32_t>(trace.info.pid)] = InTrace(trace);
  }
  int ledgers = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    ++ledgers;
    const auto ledger = ReadLedger(entry.path());
    const auto found = std::find_if(traces.begin(), traces.end(), [&](const auto& trace) {
      return ledger.contains(trace.first);
    });
    ASSERT_NE(found, traces.end()) << "no trace of ledger " << entry.path();
    for (const auto& [thread, done] : ledger) {
      const Done stored = found->second.contains(thread) ? found->second.at(thread) : Done{};
      // A call may have been stored and not yet counted.
      EXPECT_GE(stored.launches, done.launches) << "thread " << thread;
      EXPECT_LE(stored.launches, done.launches + 1) << "thread " << thread;
      EXPECT_GE(stored.ranges, done.ranges) << "thread " << thread;
      EXPECT_LE(stored.ranges, done.ranges + 1) << "thread " << thread;
    }
  }
  EXPECT_EQ(ledgers, count);
  EXPECT_EQ(traces.size(), static_cast<size_t>(count));
  std::printf("%d processes died by %s (seed %u): %lu events stored, %lu half written, none lost\n",
              count, GetParam(), seed, events, half_written);
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Ways, RankDeathTest, testing::Values("kill", "abort", "segv", "_exit"),
                         [](const auto& info) {
                           return std::string(info.param[0] == '_' ? "exit" : info.param);
                         });

}  // namespace
}  // namespace ranktap::faults_test
