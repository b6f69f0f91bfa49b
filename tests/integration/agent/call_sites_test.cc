// Twenty places of a program that call CUDA, found again by function, file and line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "collector/report/host/call_sites.h"
#include "collector/symbols/resolve_stacks.h"
#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::CallSite;
using collector::ResolvedAddress;
using collector::SourceFrame;
using collector::Trace;
using testing::HasSubstr;

struct Site {
  int64_t calls = 0;
  std::vector<std::string> functions;  // innermost first; all but the last inlined
};

std::map<uint32_t, Site> PlantedSites(const std::string& output) {
  std::map<uint32_t, Site> sites;
  std::istringstream lines(output);
  std::string word, functions;
  uint32_t line = 0;
  int64_t calls = 0;
  while (lines >> word >> line >> calls >> functions) {
    Site& site = sites[line];
    site.calls = calls;
    std::istringstream names(functions);
    for (std::string name; std::getline(names, name, '<');) site.functions.push_back(name);
  }
  return sites;
}

// The functions at the innermost address of the stack that lies in the program itself.
std::vector<SourceFrame> FramesInProgram(const Trace& trace, uint32_t stack) {
  for (const uint64_t address : trace.dictionary.Stack(stack).frames) {
    const ResolvedAddress* const resolved = trace.symbols.Find(address);
    if (resolved != nullptr && resolved->module == "call_sites") return resolved->frames;
  }
  return {};
}

class CallSitesTest : public testing::TestWithParam<const char*> {};

TEST_P(CallSitesTest, EachIsFoundByFunctionFileAndLineThroughInlines) {
  TracedRun traced({Host("call_sites")}, {}, {"--level", "kernels", "--stacks", GetParam()});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  EXPECT_EQ(traced.Problems(), "");
  const std::map<uint32_t, Site> planted = PlantedSites(traced.process().output());
  ASSERT_GE(planted.size(), 20u);
  collector::Run run = traced.TakeRun();
  collector::ResolveStacks({}, &run);
  ASSERT_EQ(run.traces.size(), 1u);
  EXPECT_THAT(run.traces[0].symbols.problems(), testing::IsEmpty());

  std::map<uint32_t, CallSite> found;
  for (const CallSite& site : collector::FindCallSites(run.traces)) {
    if (site.module == "call_sites") found[site.frame.line] = site;
  }
  for (const auto& [line, site] : planted) {
    SCOPED_TRACE("line " + std::to_string(line));
    ASSERT_TRUE(found.contains(line));
    EXPECT_EQ(found[line].host.count, site.calls);
    // The path as the compiler was given it; a compiler cache may know it by another checkout.
    EXPECT_THAT(found[line].frame.file, testing::EndsWith("/tests/workloads/hosts/call_sites.cc"));
    EXPECT_THAT(found[line].frame.function, HasSubstr(site.functions[0]));
  }
  EXPECT_EQ(found.size(), planted.size());
}

TEST_P(CallSitesTest, InlinedFunctionsComeWithThoseTheyAreInlinedInto) {
  TracedRun traced({Host("call_sites")}, {}, {"--level", "kernels", "--stacks", GetParam()});
  const std::map<uint32_t, Site> planted = PlantedSites(traced.process().output());
  collector::Run run = traced.TakeRun();
  collector::ResolveStacks({}, &run);
  ASSERT_EQ(run.traces.size(), 1u);
  const Trace& trace = run.traces[0];
  int checked = 0;
  for (uint32_t stack = 1; stack < trace.dictionary.stacks(); ++stack) {
    const std::vector<SourceFrame> frames = FramesInProgram(trace, stack);
    if (frames.empty() || !planted.contains(frames[0].line)) continue;
    const std::vector<std::string>& expected = planted.at(frames[0].line).functions;
    if (expected.size() == 1) continue;
    ++checked;
    ASSERT_GE(frames.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_THAT(frames[i].function, HasSubstr(expected[i]));
      EXPECT_EQ(frames[i].inlined, i + 1 < expected.size()) << frames[i].function;
    }
  }
  EXPECT_GE(checked, 3);
}

INSTANTIATE_TEST_SUITE_P(Policies, CallSitesTest, testing::Values("sync", "all"),
                         [](const auto& info) { return std::string(info.param); });

TEST(CallSitesElsewhereTest, AreFoundInAFolderOfSymbolsWhenTheProgramHasMoved) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("symbols-" + std::to_string(getpid()));
  fs::create_directories(folder / "moved" / "deep");
  fs::copy_file(Host("call_sites"), folder / "call_sites", fs::copy_options::overwrite_existing);
  TracedRun traced({(folder / "call_sites").string()}, {}, {"--stacks", "all"});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  fs::rename(folder / "call_sites", folder / "moved" / "deep" / "call_sites");
  collector::Run run = traced.TakeRun();
  ASSERT_EQ(run.traces.size(), 1u);

  collector::ResolveStacks({}, &run);
  EXPECT_THAT(run.traces[0].symbols.problems(),
              testing::ElementsAre(HasSubstr("is not on this machine")));
  run.traces[0].symbols = {};
  collector::ResolveStacks({(folder / "moved").string()}, &run);
  EXPECT_THAT(run.traces[0].symbols.problems(), testing::IsEmpty());
  bool any = false;
  for (const CallSite& site : collector::FindCallSites(run.traces)) {
    any |= site.frame.function.find("large_frame") != std::string::npos && site.frame.line != 0;
  }
  EXPECT_TRUE(any);
  fs::remove_all(folder);
}

// A walk costs microseconds, and what CUPTI calls the symbol of a call that launches nothing is a
// new one each time.
TEST(StackPolicyTest, ASecondCallFromTheSamePlaceNeedsNoWalk) {
  const TracedRun traced({Host("train_cuda"), "--ranks", "1", "--steps", "200"}, {},
                         {"--stacks", "all"});
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  const auto& cost = traced.run().traces[0].cost;
  EXPECT_GT(cost.stacks(), 1000u);
  EXPECT_GT(cost.stack_memo_hits(), cost.stacks() * 9 / 10);
}

TEST(StackPolicyTest, OffTakesNoneAndLaunchOnlyLaunches) {
  const TracedRun off({Host("launches"), "20"}, {}, {"--level", "full", "--stacks", "off"});
  const TracedRun launch({Host("launches"), "20"}, {}, {"--stacks", "launch"});
  ASSERT_EQ(off.run().traces.size(), 1u);
  ASSERT_EQ(launch.run().traces.size(), 1u);
  EXPECT_EQ(off.run().traces[0].dictionary.stacks(), 0u);
  const Trace& trace = launch.run().traces[0];
  int with = 0;
  for (size_t i = 0; i < trace.api_calls.size(); ++i) {
    const std::string& api = trace.dictionary.Api(trace.api_calls.api[i]).name;
    const bool has = trace.api_calls.stack.At(i) != 0;
    EXPECT_EQ(has, api.find("LaunchKernel") != std::string::npos) << api;
    with += has;
  }
  EXPECT_EQ(with, 20);
}

}  // namespace
}  // namespace ranktap::agent_test
