// Programs beside every CUPTI that the stand-in can be. For each version, the table below has what
// it does or may do: what only a GPU can answer stands there with each answer. Cases are drawn by
// the seed; scripts/scorecard (R16h) draws many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/fault_seed.h"
#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::Trace;

struct Version {
  uint32_t number;     // cuptiGetVersion
  const char* folder;  // of a stand-in with that version's functions and callback ids
};

// 11.8 to 12.9 by their libraries, then by number.
constexpr Version kVersions[] = {
    {18, "fakes/cupti-11.8"},
    {18, "fakes/cupti-12.0"},
    {22, "fakes/cupti-12.4"},
    {26, "fakes/cupti-12.8"},
    {28, "fakes/cupti-12.9"},
    {130000, "fakes"},
    {130001, "fakes"},
    {130100, "fakes"},
    {130101, "fakes"},
    {130300, "fakes/cupti-13.4"},
    {130400, "fakes/cupti-13.4"},
    {130401, "fakes/cupti-13.5"},
    {130500, "fakes/cupti-13.5"},
};

// RANKTAP_STANDIN_<name>: one of the values, in versions from `since` to before `until`. The first
// is what the stand-in does untold; graphs that stay whole and attributes that are refused in a
// session are so in all.
struct Trait {
  const char* name;
  std::vector<const char*> values;
  uint32_t since = 0, until = UINT32_MAX;
};

const std::vector<Trait>& Traits() {
  static const std::vector<Trait> traits = {
      {"LATE_US", {"300", "0", "3000"}},
      {"WORKER_RECORDS", {"0", "1"}},
      {"REVERSE_BUFFERS", {"0", "1"}},
      {"REENTER_ON_REQUEST", {"0", "1"}},
      {"CORRELATION", {"always", "api-kinds"}},
      {"OLD_GRAPHS", {"nodes", "silent"}},
      {"DEVICE_BUFFER_RECORDS", {"100000", "10"}},
      {"CLOCK_JITTER_NS", {"0", "15000"}},
      {"STALE_CLOCK", {"0", "3"}},
      {"CLOCK_ZEROES", {"0", "1"}, 24, 130100},
      {"FLUSH_GROWS_US", {"2", "0"}, 0, 130401},
      {"GRAPH_IDS_WRONG", {"0", "1"}, 130000, 130101},
      {"LATE_VERSION", {"1", "0"}, 130300},
      {"HARDWARE_EVENTS", {"27", "0"}, 130401},
  };
  return traits;
}

struct Case {
  std::string text;
  Environment environment;
  const char* program = nullptr;
  std::string correlation;
};

constexpr const char* kPrograms[] = {"launches", "client", "nodes"};
constexpr size_t kLaunches = 400, kNodes = 20, kGraphs = 40;

Case Draw(std::mt19937& random) {
  const auto one_of = [&random](size_t count) { return random() % count; };
  Case drawn;
  const Version& version = kVersions[one_of(std::size(kVersions))];
  drawn.program = kPrograms[one_of(std::size(kPrograms))];
  drawn.text = std::string(drawn.program) + " on " + version.folder + ", version " +
               std::to_string(version.number);
  drawn.environment = {{"LD_LIBRARY_PATH", BuildPath(version.folder) + ":" + BuildPath("fakes")},
                       {"RANKTAP_RETURN_MS", "20"}};
  // The older libraries say theirs, and 12.0 has records longer than its number tells.
  if (version.number >= 130000) {
    drawn.environment.emplace_back("RANKTAP_STANDIN_CUPTI_VERSION", std::to_string(version.number));
  }
  for (const Trait& trait : Traits()) {
    if (version.number < trait.since || version.number >= trait.until) continue;
    const char* const value = trait.values[one_of(trait.values.size())];
    if (value == trait.values[0]) continue;
    drawn.text += std::string(" ") + trait.name + "=" + value;
    drawn.environment.emplace_back(std::string("RANKTAP_STANDIN_") + trait.name, value);
    if (std::string(trait.name) == "CORRELATION") drawn.correlation = value;
  }
  return drawn;
}

bool IsThere(const Case& drawn) {
  const std::string path = drawn.environment[0].second;
  std::error_code none;
  const std::filesystem::directory_iterator folder(path.substr(0, path.find(':')), none);
  return std::any_of(begin(folder), end(folder), [](const auto& entry) {
    return entry.path().filename().string().starts_with("libcupti.so");
  });
}

// All that was launched, joined to its launch: but for the first ones where ids come late.
void ExpectEveryKernel(const Case& drawn, const Trace& trace) {
  EXPECT_EQ(trace.kernels.size(), kLaunches);
  const auto unjoined = std::ranges::count(trace.kernels.launch, collector::kNone);
  EXPECT_LE(static_cast<size_t>(unjoined), drawn.correlation.empty() ? 0 : kLaunches - 1);
}

void RunAndCheck(const Case& drawn) {
  const std::string program = drawn.program;
  std::vector<std::string> command = {Host("launches"), std::to_string(kLaunches), "4000"};
  std::vector<std::string> options;
  if (program == "client") command = {Host("profiles_itself"), "20", "2", "120", "kinds"};
  if (program == "nodes") {
    command = {Host("graph_flood"), std::to_string(kNodes), std::to_string(kGraphs)};
    options = {"--level", "full"};
  }
  const TracedRun traced(command, drawn.environment, options);
  EXPECT_TRUE(traced.process().exited_with(0))
      << traced.process().output() << traced.process().errors();
  EXPECT_EQ(traced.Problems(), "");
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const Trace& trace = traced.run().traces[0];
  const int pid = static_cast<int>(trace.info.pid);
  EXPECT_TRUE(traced.process().Truth(pid, "violation").empty());
  if (program == "launches") ExpectEveryKernel(drawn, trace);
  if (program == "nodes") {
    EXPECT_EQ(trace.kernels.size(), kNodes * kGraphs);
  }
  // Its own profile is the program's check; ours has what lies between its sessions.
  if (program == "client") {
    EXPECT_GE(trace.kernels.size(), 20u);
  }
}

TEST(CuptiMatrixTest, AProgramEndsWellAndItsKernelsAreThereWhateverItsCuptiDoes) {
  std::mt19937 random(FaultSeed());
  const int count = FaultCount(8);
  int made = 0;
  for (int i = 0; i < count; ++i) {
    const Case drawn = Draw(random);
    if (!IsThere(drawn)) continue;
    SCOPED_TRACE("seed " + std::to_string(FaultSeed()) + ", case " + std::to_string(i) + ": " +
                 drawn.text);
    RunAndCheck(drawn);
    ++made;
  }
  EXPECT_GT(made, 0) << "no stand-in of another CUPTI: run scripts/setup";
  std::printf("%d cases of %zu versions and %zu traits\n", made, std::size(kVersions),
              Traits().size());
}

}  // namespace
}  // namespace ranktap::agent_test
