// What tables say of files of torch.profiler whose truth a few lines hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/export/exporter.h"
#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/import/kineto/kineto_text.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(KinetoTables, WhatMtiaRanIsDeviceWork) {
  const collector::Run run =
      OpenText(File("", Span("mtia_runtime", "runFunction", 1, 2, "\"correlation\":5") + "," +
                            Work("mtia_ccp_events", "job_exe", 10, 4, 5)));
  const Table kernels = TabulateKernels(run, {});
  ASSERT_EQ(kernels.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(kernels, 0, "name"), "job_exe");
  EXPECT_EQ(CellAt<int64_t>(kernels, 0, "total_ns"), 4000);
  EXPECT_EQ(run.traces.at(0).kernels.launch[0], 0u);
}

TEST(KinetoTables, DeviceEventsOfACategoryThatIsNotReadAreCounted) {
  const collector::Run run =
      OpenText(File("", Work("npu_queue", "a", 1, 2, 1) + "," + Work("npu_queue", "b", 4, 2, 2) +
                            "," + Span("npu_host", "c", 4, 2)));
  EXPECT_THAT(run.traces.at(0).info.notes,
              Contains("this trace has 2 device events of category npu_queue that are not read"));
  EXPECT_THAT(run.traces[0].info.notes, Contains("events of category npu_host: 1 not read"));
}

TEST(KinetoTables, NoVerdictWhereMoreThanAHundredthOfAFileIsNotRead) {
  std::string events = Work("npu_queue", "a", 1, 2, 1);
  for (int i = 0; i < 50; ++i) events += "," + Work("kernel", "gemm", 10 + i, 1, 10 + i);
  EXPECT_EQ(Judge(OpenText(File("", events))).sentence,
            "No verdict: 1 event of x.json could not be read, mostly device events of category "
            "npu_queue, so what the time went to is not known.");
  for (int i = 50; i < 200; ++i) events += "," + Work("kernel", "gemm", 10 + i, 1, 10 + i);
  EXPECT_FALSE(Judge(OpenText(File("", events))).refused);
}

// A kernel by hipLaunchKernel and three by one hipGraphLaunch.
std::string HipGraph(const std::string& api) {
  return Call(api + "LaunchKernel", 1, 2, 1) + "," + Work("kernel", "eager", 5, 10, 1) + "," +
         Call(api + "GraphLaunch", 20, 4, 2) + "," + Work("kernel", "a", 30, 5, 2) + "," +
         Work("kernel", "a", 35, 5, 2) + "," + Work("kernel", "b", 40, 7, 2);
}

TEST(KinetoTables, GraphsOfFilesWithoutNodesAreFoundByTheirLaunch) {
  for (const std::string api : {"hip", "cuda"}) {
    const Table graphs = TabulateGraphs(OpenText(File("", HipGraph(api))), {});
    ASSERT_EQ(graphs.rows.size(), 2u);
    EXPECT_EQ(CellAt<std::string>(graphs, 0, "work"), "a");
    EXPECT_EQ(CellAt<int64_t>(graphs, 0, "calls"), 2);
    EXPECT_EQ(CellAt<int64_t>(graphs, 0, "gpu_ns"), 10'000);
    EXPECT_EQ(CellAt<int64_t>(graphs, 1, "gpu_ns"), 7000);
    EXPECT_THAT(graphs.notes, Contains("1 call of " + api + "GraphLaunch ran 3 pieces of work"));
  }
}

TEST(KinetoTables, HipLaunchesAreLaunches) {
  const collector::Run run = OpenText(
      File("", Call("hipLaunchKernel", 1, 2, 1) + "," + Call("hipExtModuleLaunchKernel", 5, 2, 2) +
                   "," + Call("hipGraphLaunch", 9, 2, 3) + "," + Work("kernel", "k", 20, 3, 3)));
  const Table ranks = TabulateRanks(run, {});
  EXPECT_EQ(CellAt<int64_t>(ranks, 0, "launches_without_kernel"), 2);
  EXPECT_EQ(CellAt<std::string>(ranks, 0, "last_launch"), "k");
}

TEST(KinetoTables, CopiesHaveTheirKindInHipsNamesToo) {
  const collector::Run run =
      OpenText(File("", Work("gpu_memcpy", "CopyHostToDevice", 1, 2, 1, R"(,"bytes":100)") + "," +
                            Work("gpu_memcpy", "CopyDeviceToHost", 5, 3, 2, R"(,"bytes":100)") +
                            "," + Work("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 9, 4, 3)));
  const Table copies = TabulateCopies(run, {});
  ASSERT_EQ(copies.rows.size(), 3u);
  EXPECT_EQ(CellAt<std::string>(copies, 0, "name"), "Memcpy DtoD (Device -> Device)");
  EXPECT_EQ(CellAt<std::string>(copies, 1, "name"), "Memcpy DtoH (Unknown -> Unknown)");
  EXPECT_EQ(CellAt<std::string>(copies, 2, "name"), "Memcpy HtoD (Unknown -> Unknown)");
}

// A call of 10 us whose copy ends inside of it, one whose copy ends behind it, and .item().
TEST(KinetoTables, ACallThatReturnsBehindItsCopyWaitedForIt) {
  for (const std::string api : {"cuda", "hip"}) {
    const Table syncs = TabulateSyncs(
        OpenText(File("", Call(api + "MemcpyAsync", 10, 10, 1) + "," +
                              Work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 14, 5, 1) +
                              "," + Call(api + "MemcpyAsync", 30, 3, 2) + "," +
                              Work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 32, 9, 2) + "," +
                              Span("cpu_op", "aten::item", 50, 30) + "," +
                              Span("cpu_op", "aten::_local_scalar_dense", 51, 28) + "," +
                              Call(api + "StreamSynchronize", 55, 20, 3) + "," +
                              Call(api + "EventQuery", 90, 1, 4))),
        {});
    ASSERT_EQ(syncs.rows.size(), 3u);
    EXPECT_EQ(CellAt<std::string>(syncs, 0, "call"), api + "StreamSynchronize");
    EXPECT_EQ(CellAt<std::string>(syncs, 0, "operator"), "aten::item");
    EXPECT_EQ(CellAt<std::string>(syncs, 1, "call"), api + "MemcpyAsync");
    EXPECT_EQ(CellAt<int64_t>(syncs, 1, "calls"), 1);
    EXPECT_EQ(CellAt<int64_t>(syncs, 1, "total_ns"), 10'000);
    EXPECT_EQ(CellAt<std::string>(syncs, 2, "call"), api + "EventQuery");
  }
}

TEST(KinetoTables, AGraphsLaunchThatOutlivesOneOfItsCopiesDidNotWait) {
  const Table syncs = TabulateSyncs(
      OpenText(File("", Call("cudaGraphLaunch", 10, 10, 1) + "," +
                            Work("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 14, 2, 1))),
      {});
  EXPECT_TRUE(syncs.rows.empty());
}

TEST(KinetoTables, KernelsOfEveryFamilyThatCommunicatesDo) {
  for (const std::string name :
       {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 8>(unsigned long)",
        "void one_shot_all_reduce_kernel<float, 16, 4, false>(float**)",
        "void two_shot_all_reduce_kernel_inplace<float, 16, 4>(float**)",
        "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)",
        "void deep_ep::internode_ll::combine<true, 7168, 9, 4, 3>(void*)",
        "nvshmemi_transfer_allgather_kernel", "ncclDevKernel_Generic_1", "mscclKernel_Sum_half_LL",
        "void mscclpp::collective::allreduceAdapter<float>(int)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<8>()"}) {
    const collector::Run run = OpenText(File("", Work("kernel", name, 5, 10, 1)));
    const Table types = TabulateWorkTypes(run, {});
    ASSERT_EQ(types.rows.size(), 1u) << name;
    EXPECT_EQ(CellAt<std::string>(types, 0, "type"), "communication") << name;
  }
  for (const std::string name : {"void deep_ep::layout::get_dispatch_layout<256, 32, 8>(int*)",
                                 "triton_red_fused_sum_0", "void cub::DeviceReduceKernel<int>()"}) {
    const Table types = TabulateWorkTypes(OpenText(File("", Work("kernel", name, 5, 10, 1))), {});
    EXPECT_EQ(CellAt<std::string>(types, 0, "type"), "compute") << name;
  }
}

std::string LaunchedBy(const std::string& ops) {
  return File("", ops + "," + Call("cudaLaunchKernel", 10, 2, 1) + "," +
                      Work("kernel", "some_kernel", 20, 10, 1));
}

TEST(KinetoTables, AKernelThatACommunicatingOperatorLaunchesCommunicates) {
  const auto type = [](const std::string& ops) {
    return CellAt<std::string>(TabulateWorkTypes(OpenText(LaunchedBy(ops)), {}), 0, "type");
  };
  EXPECT_EQ(type(Span("cpu_op", "symm_mem::multimem_all_reduce_", 1, 30)), "communication");
  EXPECT_EQ(type(Span("cpu_op", "_C_custom_ar::all_reduce", 1, 30)), "communication");
  EXPECT_EQ(
      type(Span("cpu_op", "c10d::allgather_", 1, 30) + "," + Span("cpu_op", "aten::copy_", 5, 20)),
      "compute");
  EXPECT_EQ(type(Span("cpu_op", "symm_mem::fused_all_gather_matmul", 1, 30)), "compute");
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(KinetoTables, MissingBytesAreMissing) {
  const collector::Run run = OpenText(
      File("", Work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 1, 2, 1, R"(,"bytes":4000)") +
                   "," + Work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 5, 2, 2) + "," +
                   Work("gpu_memset", "Memset (Device)", 9, 1, 3, R"(,"bytes":0)")));
  const Table copies = TabulateCopies(run, {});
  ASSERT_EQ(copies.rows.size(), 2u);
  for (const char* const column : {"total_bytes", "max_bytes", "gb_per_s"}) {
    EXPECT_TRUE(std::holds_alternative<std::monostate>(copies.rows[0][ColumnNamed(copies, column)]))
        << column;
  }
  EXPECT_EQ(CellAt<int64_t>(copies, 1, "total_bytes"), 0);
  TemporaryDirectory directory;
  const std::vector<const Trace*> traces = {&run.traces[0]};
  for (const Exporter& exporter : AllExporters()) {
    if (exporter.name != "chrome" && exporter.name != "csv") continue;
    ASSERT_FALSE(exporter.write(run, traces, {}, directory / "out")) << exporter.name;
    const std::string text = ReadFile(directory / "out");
    EXPECT_THAT(text, HasSubstr("4000"));
    if (exporter.name == "csv") continue;
    size_t with_bytes = 0;
    for (size_t at = text.find("\"bytes\":"); at != text.npos;
         at = text.find("\"bytes\":", at + 1)) {
      ++with_bytes;
    }
    EXPECT_EQ(with_bytes, 2u);
  }
}

TEST(KinetoTables, MissingBytesStayMissingInSqlite) {
  const collector::Run run =
      OpenText(File("", Work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 5, 2, 2)));
  TemporaryDirectory directory;
  const std::vector<const Trace*> traces = {&run.traces.at(0)};
  ASSERT_FALSE(FindExporter("sqlite")->write(run, traces, {}, directory / "x.sqlite"));
  const Result<collector::Run> again = OpenRun({directory / "x.sqlite"});
  ASSERT_TRUE(again) << again.message();
  ASSERT_EQ(again->traces.at(0).copies.size(), 1u);
  EXPECT_EQ(again->traces[0].copies.bytes_unknown.At(0), 1);
}

TEST(KinetoTables, AStreamThatIsNoneStaysNone) {
  const std::string none = R"("device":0,"stream":-1,"correlation":)";
  const collector::Run run = OpenText(File("", Span("kernel", "a", 1, 2, none + "1", 0, 7) + "," +
                                                   Span("kernel", "b", 5, 2, none + "2", 0, 7)));
  const Table idle = TabulateIdle(run, {});
  ASSERT_EQ(idle.rows.size(), 1u);
  EXPECT_EQ(CellAt<int64_t>(idle, 0, "stream"), -1);
  EXPECT_EQ(CellAt<std::string>(idle, 0, "cause"), "unknown");  // no launch is in the file
  EXPECT_EQ(CellAt<int64_t>(idle, 0, "idle_ns"), 2000);
}

// 4 GB/s and 1 GB/s; HTA takes the levels of their sum.
TEST(KinetoTables, BandwidthIsOfEachCopy) {
  const std::string text =
      File("", Work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 10, 1, R"(,"bytes":40000)") +
                   "," +
                   Span("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 5, 10,
                        R"("device":0,"stream":8,"correlation":2,"bytes":10000)", 0, 8));
  const Table table = TabulateBandwidth(OpenText(text), {});
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<int64_t>(table, 0, "count"), 2);
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "max_gb_per_s"), 4.0);
  EXPECT_DOUBLE_EQ(CellAt<double>(table, 0, "min_gb_per_s"), 1.0);
  EXPECT_DOUBLE_EQ(
      CellAt<double>(TabulateBandwidth(OpenText(text), {.hta_compat = true}), 0, "max_gb_per_s"),
      5.0);
}

// Net calls a block, which calls a layer that launches 7 us of work, and the layer again.
TEST(KinetoTables, ModulesComeFromTheirPythonCalls) {
  const collector::Run run = OpenText(File(
      "", Span("python_function", "nn.Module: Net_0", 0, 100) + "," +
              Span("python_function", "train.py(3): forward", 1, 98) + "," +
              Span("python_function", "nn.Module: Block_0", 10, 40) + "," +
              Span("python_function", "nn.Module: Linear_0", 20, 20) + "," +
              Span("cpu_op", "aten::mm", 22, 10,
                   R"("Input Dims":[[2, 3], [3, 5]],"Input type":["float", "float"])") +
              "," + Call("cudaLaunchKernel", 25, 2, 1) + "," + Work("kernel", "gemm", 60, 7, 1) +
              "," + Span("python_function", "nn.Module: Linear_1", 70, 10)));
  const Table modules = TabulateModules(run, {});
  ASSERT_EQ(modules.rows.size(), 4u);
  EXPECT_EQ(CellAt<std::string>(modules, 0, "module"), "Net_0");
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "self_ns"), 50'000);
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "gpu_ns"), 7000);
  EXPECT_EQ(CellAt<int64_t>(modules, 0, "forward_flops"), 2 * 2 * 3 * 5);
  EXPECT_EQ(CellAt<std::string>(modules, 2, "module"), "Net_0.Block_0.Linear_0");
  EXPECT_EQ(CellAt<int64_t>(modules, 2, "total_ns"), 20'000);
  EXPECT_EQ(CellAt<std::string>(modules, 3, "module"), "Net_0.Linear_1");
  EXPECT_EQ(CellAt<int64_t>(modules, 3, "gpu_ns"), 0);
}

TEST(KinetoTables, AnnotationsAreRanges) {
  const collector::Run run = OpenText(File(
      "", Span("user_annotation", "loss", 0, 50) + "," + Call("cudaLaunchKernel", 25, 2, 1) + "," +
              Work("kernel", "k", 60, 7, 1) + "," + Span("user_annotation", "loss", 100, 30)));
  const Table ranges = TabulateRanges(run, {});
  ASSERT_EQ(ranges.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(ranges, 0, "name"), "loss");
  EXPECT_EQ(CellAt<std::string>(ranges, 0, "domain"), "record_function");
  EXPECT_EQ(CellAt<int64_t>(ranges, 0, "calls"), 2);
  EXPECT_EQ(CellAt<int64_t>(ranges, 0, "total_ns"), 80'000);
  EXPECT_EQ(CellAt<int64_t>(ranges, 0, "gpu_ns"), 7000);
}

}  // namespace
}  // namespace ranktap::collector
