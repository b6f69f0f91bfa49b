// Names and shapes by which *kernels* groups, on kernels whose times are known in closed form.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "collector/report/report.h"
#include "collector/trace/symbol_name.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

// 40 launches of each of 2 instances of a template, each on 4 grids in turn: instance i on grid g
// takes 1000 i + 100 g + n ns the nth time.
constexpr const char* kMangled[] = {"_ZN2at6native4scanILi4EfEEvPT0_i",
                                    "_ZN2at6native4scanILi8EfEEvPT0_i"};
constexpr const char* kDemangled[] = {"void at::native::scan<4, float>(float*, int)",
                                      "void at::native::scan<8, float>(float*, int)"};

collector::Run KernelsOnGrids(const char* const (&names)[2]) {
  collector::Run run;
  Trace& trace = run.traces.emplace_back();
  trace.lanes = {{0, 1, 7}};
  uint32_t shapes[4];
  for (uint32_t grid = 0; grid < 4; ++grid) {
    shapes[grid] = trace.dictionary.AppendShape({.grid = {grid + 1, 2, 1}, .block = {32, 4, 2}});
  }
  Kernels& kernels = trace.kernels;
  int64_t now = 1'000;
  for (int64_t i = 0; i < 2; ++i) {
    const uint32_t name = trace.dictionary.AppendString(names[i]);
    for (int64_t n = 0; n < 40; ++n) {
      const int64_t grid = n % 4;
      kernels.start.push_back(now);
      kernels.end.push_back(now += 1'000 * (i + 1) + 100 * grid + n / 4);
      kernels.lane.push_back(0);
      kernels.correlation.push_back(static_cast<uint32_t>(kernels.size()));
      kernels.launch.push_back(kNone);
      kernels.name.push_back(name);
      kernels.shape.push_back(shapes[grid]);
    }
  }
  return run;
}

TEST(KernelNames, GridAndBlockGroupExactly) {
  const collector::Run run = KernelsOnGrids(kMangled);
  ReportOptions options;
  const Report* const report = FindReport("cuda_gpu_kern_gb_sum", &options);
  ASSERT_NE(report, nullptr);
  EXPECT_TRUE(options.by_grid);
  const Table table = (*report)(run, options);
  ASSERT_EQ(table.rows.size(), 8u);
  for (int64_t row = 0; row < 8; ++row) {
    // The longest first: the second instance, each on its largest grid first. 10 times each, with 0
    // to 9 ns more.
    const int64_t grid = 3 - row % 4, least = (row < 4 ? 2'000 : 1'000) + 100 * grid;
    const auto at = static_cast<size_t>(row);
    EXPECT_EQ(CellAt<std::string>(table, at, "name"), kDemangled[row < 4 ? 1 : 0]);
    EXPECT_EQ(CellAt<std::string>(table, at, "grid_xyz"), std::to_string(grid + 1) + "x2x1");
    EXPECT_EQ(CellAt<std::string>(table, at, "block_xyz"), "32x4x2");
    EXPECT_EQ(CellAt<int64_t>(table, at, "calls"), 10);
    EXPECT_EQ(CellAt<int64_t>(table, at, "total_ns"), 10 * least + 45);
    EXPECT_EQ(CellAt<int64_t>(table, at, "median_ns"), least + 5);  // 4.5, rounded
    EXPECT_EQ(CellAt<int64_t>(table, at, "min_ns"), least);
    EXPECT_EQ(CellAt<int64_t>(table, at, "max_ns"), least + 9);
    EXPECT_EQ(CellAt<int64_t>(table, at, "stddev_ns"), 3);  // sqrt(82.5 / 9)
  }
  EXPECT_EQ((*report)(run).rows.size(), 2u);
}

TEST(KernelNames, EachFormGroupsWhatItCannotTellApart) {
  const collector::Run run = KernelsOnGrids(kMangled);
  const auto names = [&](const std::string& nsys) {
    ReportOptions options;
    const Table table = (*FindReport(nsys, &options))(run, options);
    std::vector<std::string> found;
    for (size_t row = 0; row < table.rows.size(); ++row) {
      found.push_back(CellAt<std::string>(table, row, "name"));
    }
    EXPECT_TRUE(table.notes.empty()) << nsys;
    return found;
  };
  EXPECT_EQ(names("cuda_gpu_kern_sum"), (std::vector<std::string>{kDemangled[1], kDemangled[0]}));
  EXPECT_EQ(names("cuda_gpu_kern_sum:mangled"),
            (std::vector<std::string>{kMangled[1], kMangled[0]}));
  EXPECT_EQ(names("cuda_gpu_kern_sum:base"), (std::vector<std::string>{"scan"}));
  EXPECT_EQ(names("cuda_gpu_kern_gb_sum:base").size(), 4u);
  EXPECT_EQ(FindReport("cuda_gpu_kern_sum:nonsense"), nullptr);
  EXPECT_EQ(FindReport("cuda_api_sum:base"), nullptr);
  EXPECT_EQ(FindReport("kernels:base"), nullptr);
}

TEST(KernelNames, OfNamesRecordedDemangledTheMangledOnesAreNotInvented) {
  const Table table =
      (*FindReport("kernels"))(KernelsOnGrids(kDemangled), {.kernel_names = KernelNames::kMangled});
  EXPECT_EQ(CellAt<std::string>(table, 0, "name"), kDemangled[1]);
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_EQ(table.notes[0],
            "2 of 2 names were recorded demangled only; nothing tells their mangled names");
}

TEST(KernelNames, HtasNamesAreTheDemangledOnesAndANoteSaysSo) {
  const collector::Run run = KernelsOnGrids(kMangled);
  const Report& report = *FindReport("kernels");
  EXPECT_TRUE(report(run, {.hta_compat = true}).notes.empty());
  for (const ReportOptions& options :
       {ReportOptions{.hta_compat = true, .kernel_names = KernelNames::kBase},
        ReportOptions{.hta_compat = true, .by_grid = true}}) {
    const Table table = report(run, options);
    ASSERT_EQ(table.notes.size(), 1u);
    EXPECT_EQ(table.notes[0], "HTA groups by demangled name alone; the other forms are left out");
  }
}

TEST(KernelNames, ABaseNameIsTheFunctionsOwn) {
  for (const auto& [readable, base] : std::vector<std::pair<std::string, std::string>>{
           {"gemm", "gemm"},
           {"ns::gemm(float*)", "gemm"},
           {"void (anonymous namespace)::gemm<float, (ns::Kind)3>(float*, int)", "gemm"},
           {"void at::native::vectorized_elementwise_kernel<4, "
            "at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, "
            "at::native::FillFunctor<float>, std::array<char*, 1ul>)",
            "vectorized_elementwise_kernel"},
           {"std::enable_if<(4>2), void>::type ns::pick<int>(int)", "pick"},
           {"void f<g(int)::{lambda(float)#1}>(g(int)::{lambda(float)#1})", "f"},
           {"ns::Body::operator()(int)", "operator()"},
           {"ns::operator<(ns::A, ns::B)", "operator<"},
           {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL"},
           {"triton_red_fused_add 0d1d2d", "triton_red_fused_add 0d1d2d"},
           {"(name missing)", "(name missing)"}}) {
    EXPECT_EQ(BaseKernelName(readable), base);
  }
}

}  // namespace
}  // namespace ranktap::collector
