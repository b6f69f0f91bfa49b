// Kinds of traces that are not the usual one, each in closed form with its truth worked out by
// hand: what the verdict says first, the steps, the devices' time, the kernels. Times are
// milliseconds.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/import/kineto/kineto_text.h"
#include "tests/unit/collector/nanoseconds.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

struct Piece {
  std::string category, name;
  double start, end;
};

// What runs on one thread and one stream.
class Program {
 public:
  explicit Program(std::string runtime = "cuda_runtime") : runtime_(std::move(runtime)) {}

  void Step(int number, double start, double end) {
    Add("user_annotation", "ProfilerStep#" + std::to_string(number), start, end, "");
  }
  // A call of 10 us that launches `work`.
  void Launch(const std::string& api, double at, const std::vector<Piece>& work) {
    Call(api, at, at + 0.01);
    for (const Piece& piece : work) {
      Add(piece.category, piece.name, piece.start, piece.end,
          R"("device":0,"stream":7,"correlation":)" + std::to_string(correlation_), 0, 7);
    }
  }
  void Call(const std::string& api, double start, double end) {
    Add(runtime_, api, start, end, R"("correlation":)" + std::to_string(++correlation_));
  }
  collector::Run Open() const { return OpenText(File("", events_)); }

 private:
  void Add(const std::string& category, const std::string& name, double start, double end,
           const std::string& args, int pid = kPid, int tid = 11) {
    const auto us = [](double ms) { return static_cast<int64_t>(ms * 1000 + 0.5); };
    events_ += (events_.empty() ? "" : ",") +
               Span(category, name, us(start), us(end) - us(start), args, pid, tid);
  }

  std::string runtime_, events_;
  int correlation_ = 0;
};

struct Truth {
  std::string sentence;
  std::vector<double> steps;                            // their lengths
  double span, compute, other;                          // of the device
  std::vector<std::pair<std::string, double>> kernels;  // totals, the largest first
};

void Expect(const Program& program, const Truth& truth) {
  const collector::Run run = program.Open();
  EXPECT_EQ(Judge(run).sentence, truth.sentence);
  const Table steps = TabulateSteps(run, {});
  std::vector<double> lengths;
  for (size_t row = 0; row < steps.rows.size(); ++row) {
    lengths.push_back(static_cast<double>(CellAt<int64_t>(steps, row, "total_ns")) / kMs);
  }
  EXPECT_EQ(lengths, truth.steps);
  const Table temporal = TabulateTemporal(run, {});
  ASSERT_EQ(temporal.rows.size(), 1u);
  const auto of = [&temporal](const char* column) {
    return static_cast<double>(CellAt<int64_t>(temporal, 0, column)) / kMs;
  };
  EXPECT_EQ(of("span_ns"), truth.span);
  EXPECT_EQ(of("compute_ns"), truth.compute);
  EXPECT_EQ(of("non_compute_ns"), truth.other);
  EXPECT_EQ(of("idle_ns"), truth.span - truth.compute - truth.other);
  const Table kernels = TabulateKernels(run, {});
  std::vector<std::pair<std::string, double>> totals;
  for (size_t row = 0; row < kernels.rows.size(); ++row) {
    totals.emplace_back(CellAt<std::string>(kernels, row, "name"),
                        static_cast<double>(CellAt<int64_t>(kernels, row, "total_ns")) / kMs);
  }
  EXPECT_EQ(totals, truth.kernels);
}

// The device waits 26-31 for a host that waited for it, of which 5 ms the two steps share; 0-1 for
// one that had launched nothing; 1-2 and 31-32 for what was launched.
TEST(KinetoTruths, TwoSteps) {
  Program program;
  program.Step(0, 0, 30);
  program.Launch("cudaLaunchKernel", 1, {{"kernel", "gemm", 2, 26}});
  program.Call("cudaDeviceSynchronize", 2, 26);
  program.Step(1, 30, 40);
  program.Launch("cudaLaunchKernel", 31, {{"kernel", "gemm", 32, 40}});
  Expect(program,
         {.sentence = "The largest loss is 2.500 ms of each 20.00 ms step (12.5 %): an idle "
                      "device after the host waited for it (synchronisation).",
          .steps = {30, 10},
          .span = 38,
          .compute = 32,
          .other = 0,
          .kernels = {{"gemm", 32}}});
}

// torch.profiler's last step lasts until it stops. In the others 0-1 is a launched kernel's wait,
// 9-10 the host's after it waited.
TEST(KinetoTruths, AStubAtTheEnd) {
  Program program;
  for (int i = 0; i < 4; ++i) {
    program.Step(i, 10 * i, 10 * i + 10);
    program.Launch("cudaLaunchKernel", 10 * i, {{"kernel", "gemm", 10.0 * i + 1, 10.0 * i + 9}});
    program.Call("cudaDeviceSynchronize", 10 * i + 1, 10 * i + 9);
  }
  program.Step(4, 40, 40.2);
  Expect(program,
         {.sentence = "The largest loss is 1.000 ms of each 10.00 ms step (10.0 %): an idle "
                      "device after the host waited for it (synchronisation).",
          .steps = {10, 10, 10, 10},
          .span = 38,
          .compute = 32,
          .other = 0,
          .kernels = {{"gemm", 32}}});
}

// Steps take the host 2 ms and the device 10, 9 of them work: it is four steps behind at the end.
// The first step's work waits for 5 ms, that of each other one for 1: 14 ms of 104.
TEST(KinetoTruths, ADeviceThatLagsBehindByMoreThanAStep) {
  Program program;
  for (int i = 0; i < 10; ++i) {
    program.Step(i, 2 * i, 2 * i + 2);
    program.Launch("cudaLaunchKernel", 2 * i, {{"kernel", "gemm", 10.0 * i + 5, 10.0 * i + 14}});
  }
  Expect(program,
         {.sentence = "The largest loss is 1.400 ms of each 10.40 ms step (13.5 %): launched "
                      "work that waits for something else: on stream 7, for what is "
                      "not in the trace. How much of it can be won back is undecided: the file "
                      "does not show what the launched work waits for.",
          .steps = {14, 10, 10, 10, 10, 10, 10, 10, 10, 10},
          .span = 99,
          .compute = 90,
          .other = 0,
          .kernels = {{"gemm", 90}}});
}

// A kernel of 4 ms, a copy of 1, and 4 ms until the host goes on that waited for them.
TEST(KinetoTruths, HipsNames) {
  Program program("hip_runtime");
  for (int i = 0; i < 4; ++i) {
    const double at = 10 * i;
    program.Step(i, at, at + 10);
    program.Launch("hipLaunchKernel", at, {{"kernel", "Cijk_Ailk", at + 1, at + 5}});
    program.Launch("hipMemcpyAsync", at + 0.1,
                   {{"gpu_memcpy", "CopyHostToDevice", at + 5, at + 6}});
    program.Call("hipStreamSynchronize", at + 0.2, at + 6);
  }
  Expect(program,
         {.sentence = "The largest loss is 4.000 ms of each 10.00 ms step (40.0 %): an idle "
                      "device after the host waited for it (synchronisation).",
          .steps = {10, 10, 10, 10},
          .span = 35,
          .compute = 16,
          .other = 4,
          .kernels = {{"Cijk_Ailk", 16}}});
}

// One launch a step, three kernels from 2 to 8. The host waits for them: 3 ms after each of three
// steps until the next launch, 2 after the last.
TEST(KinetoTruths, CudaGraphs) {
  Program program;
  for (int i = 0; i < 4; ++i) {
    const double at = 10 * i;
    program.Step(i, at, at + 10);
    program.Launch("cudaGraphLaunch", at + 1,
                   {{"kernel", "a", at + 2, at + 4},
                    {"kernel", "b", at + 4, at + 5},
                    {"kernel", "a", at + 5, at + 8}});
    program.Call("cudaStreamSynchronize", at + 1.1, at + 8);
  }
  Expect(program,
         {.sentence = "The largest loss is 2.750 ms of each 10.00 ms step (27.5 %): an idle "
                      "device after the host waited for it (synchronisation).",
          .steps = {10, 10, 10, 10},
          .span = 36,
          .compute = 24,
          .other = 0,
          .kernels = {{"a", 20}, {"b", 4}}});
  const Table graphs = TabulateGraphs(program.Open(), {});
  ASSERT_EQ(graphs.rows.size(), 2u);
  EXPECT_EQ(CellAt<int64_t>(graphs, 0, "calls"), 8);
  EXPECT_EQ(CellAt<int64_t>(graphs, 1, "gpu_ns"), 4 * kMs);
}

// 5 ms of work, launched 1 ms before it runs: 4 ms of each step nothing is launched.
TEST(KinetoTruths, MtiasCategories) {
  Program program("mtia_runtime");
  for (int i = 0; i < 4; ++i) {
    const double at = 10 * i;
    program.Step(i, at, at + 10);
    program.Launch("runFunction", at + 1, {{"mtia_ccp_events", "fc_mm", at + 2, at + 7}});
  }
  Expect(program,
         {.sentence = "The largest loss is 4.000 ms of each 10.00 ms step (40.0 %): an idle "
                      "device because the host launches too late (host-bound).",
          .steps = {10, 10, 10, 10},
          .span = 35,
          .compute = 20,
          .other = 0,
          .kernels = {{"fc_mm", 20}}});
}

// Nothing says where a step begins, and three launches are too few for a period.
TEST(KinetoTruths, AnInferenceWithoutSteps) {
  Program program;
  for (int i = 0; i < 3; ++i) {
    program.Launch("cudaLaunchKernel", 3 * i, {{"kernel", "gemm", 3.0 * i + 1, 3.0 * i + 3}});
  }
  const collector::Run run = program.Open();
  EXPECT_TRUE(TabulateSteps(run, {}).rows.empty());
  const Table temporal = TabulateTemporal(run, {});
  EXPECT_EQ(CellAt<int64_t>(temporal, 0, "span_ns"), 8 * kMs);
  EXPECT_EQ(CellAt<int64_t>(temporal, 0, "compute_ns"), 6 * kMs);
}

}  // namespace
}  // namespace ranktap::collector
