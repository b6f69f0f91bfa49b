// Checks of what can be won back, of busy devices, of FLOPs and of peaks: each on a made run whose
// truth is known, beside one that differs in nothing else.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "collector/report/claims/claim.h"
#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "collector/trace/device_counters.h"
#include "tests/unit/collector/report/claims/claim_programs.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

std::string SaysOf(const Run& run, Claim claim, std::string_view against) {
  for (const CrossCheck& check : AllCrossChecks()) {
    if (check.claim == claim && check.against == against) return check.disagreement(run);
  }
  ADD_FAILURE() << "no check " << against;
  return "";
}

TEST(RecoverableClaim, WithoutLaunchesNobodyKnowsWhetherTheHostWasLate) {
  InsightProgram program = AKernelLaunched(6 * kMs), without = AKernelLaunched(6 * kMs);
  EXPECT_EQ(SaysOf(program.run(), Claim::kRecoverable, "launches"), "");
  without->trace().origin = TraceOrigin::kKineto;
  for (uint32_t& launch : without->trace().kernels.launch) launch = kNone;
  const Verdict verdict = Judge(without.run());
  EXPECT_TRUE(verdict.sentence.ends_with(
      "How much of it can be won back is undecided: no launches are recorded."))
      << verdict.sentence;
  EXPECT_FALSE(verdict.losses[0].recoverable_known);
  const Table table = TabulateVerdict(without.run(), {});
  EXPECT_TRUE(
      std::holds_alternative<std::monostate>(table.rows[0][ColumnNamed(table, "recoverable_ns")]));
}

// All 6 ms are on the path, and nothing in the file ends when the kernel begins.
TEST(RecoverableClaim, AWaitForWhatIsNotInTheFileIsNotSaidToBeRecoverable) {
  InsightProgram waits = AKernelLaunched(0), late = AKernelLaunched(6 * kMs);
  EXPECT_EQ(SaysOf(waits.run(), Claim::kRecoverable, "cause"),
            "the file does not show what the launched work waits for");
  EXPECT_NE(Judge(waits.run()).sentence.find("can be won back is undecided: the file does not"),
            std::string::npos);
  EXPECT_EQ(SaysOf(late.run(), Claim::kRecoverable, "cause"), "");
}

// The path ends at the first kernel, 7 ms into the last of two steps: its launch is not in the
// file.
TEST(RecoverableClaim, APathThatBeginsAmidTheStepIsNotThePath) {
  const auto program_of = [](bool is_known) {
    InsightProgram program;
    program->AddStep(0, 10 * kMs);
    program->AddStep(10 * kMs, 20 * kMs);
    program->AddKernel({.launched = 10 * kMs + kUs, .start = 17 * kMs, .end = 18 * kMs});
    program->AddKernel({.launched = 10 * kMs + 2 * kUs, .start = 18 * kMs, .end = 20 * kMs});
    if (!is_known) program->trace().kernels.launch[0] = kNone;
    return program;
  };
  InsightProgram cut = program_of(false), whole = program_of(true);
  EXPECT_EQ(SaysOf(cut.run(), Claim::kRecoverable, "path"),
            "the critical path is known for 15.0 % of the steps only");
  EXPECT_EQ(SaysOf(whole.run(), Claim::kRecoverable, "path"), "");
}

// One of four ranks loads data for 900 us more; in the mean of the ranks that is 225 us.
TEST(RecoverableClaim, NothingIsWonBackBeyondItsLoss) {
  SyntheticJob job({.ranks = 4,
                    .layers = 1,
                    .late = {{.rank = 3, .cause = Cause::kDataLoading, .ns = 900'000}}});
  int64_t sum = 0;
  for (const Loss& loss : Judge(job.run()).losses) {
    EXPECT_LE(loss.recoverable_ns, loss.ns) << NameOf(loss.cause);
    sum +=
        loss.cause == Cause::kDataLoading || loss.cause == Cause::kWait ? loss.recoverable_ns : 0;
  }
  EXPECT_GE(sum, 900'000) << "what the others wait for counts as their wait";
}

// No check is registered without a sentence's subject, and each has a word of its own.
TEST(CrossChecks, EachHasAClaimAndAWord) {
  std::set<std::pair<std::string_view, std::string_view>> words;
  for (const CrossCheck& check : AllCrossChecks()) {
    EXPECT_FALSE(NameOf(check.claim).empty());
    EXPECT_TRUE(words.emplace(NameOf(check.claim), check.against).second) << check.against;
  }
}

// A run to whose claims nothing is to be said passes every check of every claim.
TEST(CrossChecks, APlainJobPassesAll) {
  SyntheticJob job(
      {.ranks = 4, .layers = 2, .late = {{.rank = 2, .cause = Cause::kHost, .ns = 400'000}}});
  for (const CrossCheck& check : AllCrossChecks()) {
    EXPECT_EQ(check.disagreement(job.run()), "") << NameOf(check.claim) << " " << check.against;
  }
}

TEST(LargestLossClaim, LostEventsTakeIt) {
  InsightProgram program = AKernelLaunched(6 * kMs), lossy = AKernelLaunched(6 * kMs);
  EXPECT_EQ(SaysOf(program.run(), Claim::kLargestLoss, "missing"), "");
  lossy->trace().not_read = 1'000;
  lossy->trace().not_read_most = "events of category odd";
  EXPECT_EQ(SaysOf(lossy.run(), Claim::kLargestLoss, "missing"),
            "1000 events of rank-0.trace could not be read, mostly events of category odd");
  EXPECT_TRUE(Judge(lossy.run()).refused);
}

TEST(BusyClaim, LaunchesWhoseWorkIsNotInTheFileAreNoIdleDevice) {
  InsightProgram whole = AKernelLaunched(6 * kMs), cut = AKernelLaunched(6 * kMs);
  for (int64_t at = 0; at < 100 * kMs; at += 10 * kMs) {
    cut->AddCall("cudaLaunchKernel", 100 * kMs + at, 100 * kMs + at + kUs);
  }
  cut->trace().origin = TraceOrigin::kKineto;
  EXPECT_EQ(SaysOf(cut.run(), Claim::kBusy, "launches"),
            "the work of 10 launches of rank-0.trace is not in the file");
  const Table figures = TabulateKeyFigures(cut.run(), {});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(
      figures.rows[0][ColumnNamed(figures, "busy_percent")]));
  EXPECT_TRUE(IsUnchecked(cut.run(), "low-utilization"));
  EXPECT_DOUBLE_EQ(CellAt<double>(TabulateKeyFigures(whole.run(), {}), 0, "busy_percent"), 40);
}

TEST(BusyClaim, ADeviceThatNvmlSeesInUseIsNotCalledIdle) {
  const auto program_of = [](double percent) {
    InsightProgram program = AKernelLaunched(6 * kMs);
    Trace& trace = program->trace();
    const uint32_t name = trace.dictionary.AppendString(
        kDeviceCounters[static_cast<size_t>(DeviceCounter::kUtilisation)]);
    for (int64_t at = 10; at < 15; ++at) {
      trace.counters.start.push_back(at * kMs);
      trace.counters.end.push_back(at * kMs);
      trace.counters.name.push_back(name);
      trace.counters.device.push_back(0);
      trace.counters.value.push_back(percent);
    }
    return program;
  };
  InsightProgram shared = program_of(95), own = program_of(45);
  EXPECT_EQ(SaysOf(shared.run(), Claim::kBusy, "devices"),
            "NVML saw device 0 of rank-0.trace in use for 95.0 % of the time, the records for "
            "42.6 %");
  EXPECT_EQ(SaysOf(own.run(), Claim::kBusy, "devices"), "");
}

TEST(FlopsClaim, ProductsWithoutShapesAreNotZero) {
  constexpr std::string_view kShapes = "[[8192, 8192], [8192, 8192]]";
  InsightProgram known = AProduct(kShapes, 9), unknown = AProduct(kShapes, 4);
  EXPECT_EQ(SaysOf(unknown.run(), Claim::kFlops, "kernels"),
            "no operator tells the FLOPs of 60.0 % of the time of rank-0.trace's products");
  EXPECT_EQ(SaysOf(known.run(), Claim::kFlops, "kernels"), "");
}

// 2 x 8192^3 in 10 ms are 110 TFLOP/s, 11 % of an H100's 989; 8 times as many rows are 89 %; 16
// times as many would be 178 %.
TEST(PeakClaim, NoRateIsSaidToBeOverThePeak) {
  InsightProgram over = AProduct("[[131072, 8192], [8192, 8192]]"),
                 under = AProduct("[[65536, 8192], [8192, 8192]]");
  EXPECT_EQ(SaysOf(over.run(), Claim::kPeak, "bound"),
            "rank-0.trace would do 177.8 % of the peak of its device for c10::BFloat16");
  EXPECT_EQ(SaysOf(under.run(), Claim::kPeak, "bound"), "");
  const Table refused = TabulateThroughput(over.run(), {}),
              said = TabulateThroughput(under.run(), {});
  EXPECT_TRUE(
      std::holds_alternative<std::monostate>(refused.rows[0][ColumnNamed(refused, "mfu_percent")]));
  EXPECT_NEAR(CellAt<double>(said, 0, "mfu_percent"), 88.9, 0.1);
}

}  // namespace
}  // namespace ranktap::collector
