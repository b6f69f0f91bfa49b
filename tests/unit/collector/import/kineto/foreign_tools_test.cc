// Files of other profilers, and devices that are no GPUs: named, and nothing is said of what they
// did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/report/reports.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/import/kineto/kineto_text.h"
#include "tests/unit/collector/report/table_access.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;
using std::string_literals::operator""s;

std::string TwentyLaunches() {
  std::string events;
  for (int i = 1; i <= 20; ++i) {
    events += (i > 1 ? "," : "") + Call("cudaLaunchKernel", 10 * i, 2, i) + "," +
              Work("kernel", "k", 10 * i + 5, 3, i);
  }
  return events;
}

// What each of them writes first; JAX's is a message XSpace with the plane "/host:CPU".
TEST(ForeignTools, NamesOtherProfilersAndWhatToDo) {
  EXPECT_THAT(
      WhyNotOpened("\n\x40\x08\x02\x12\x09/host:CPU\x1a\x04"s),
      HasSubstr("x.json: is of XLA's profiler (JAX, TensorFlow, PyTorch/XLA), which ranktap "
                "does not read: TensorBoard's profile plugin"));
  EXPECT_THAT(
      WhyNotOpened(R"({"rocprofiler-sdk-tool": [{"metadata": {"pid": 7}}]})"),
      HasSubstr("is of AMD's rocprof, which ranktap does not read: record a PyTorch program "
                "with torch.profiler"));
  const std::string process = R"({"ph":"M","pid":1,"name":"process_name","args":{"name":")";
  const std::string nameless = R"("ph":"X","ts":1,"dur":2,"args":{}})";
  EXPECT_THAT(
      WhyNotOpened(
          File("", process + R"(/device:TPU:0"}},{"pid":1,"tid":1,"name":"fusion",)" + nameless)),
      HasSubstr("is of XLA's profiler"));
  EXPECT_THAT(
      WhyNotOpened(File("", process + R"(6 GPU0"}},)" + process +
                                R"(2 CPU HIP API"}},{"pid":6,"tid":1,"name":"gemm",)" + nameless)),
      HasSubstr("is of AMD's rocprof"));
  EXPECT_THAT(
      WhyNotOpened(R"([{"name":"aten::mm","tid":1,"pid":"CPU functions",)" + nameless +
                   R"(,{"name":"gemm","tid":"stream 7","pid":"CUDA functions",)" + nameless + "]"),
      HasSubstr("is of PyTorch's profiler before Kineto (torch.autograd.profiler with "
                "use_kineto=False), which ranktap does not read: record with "
                "torch.profiler.profile"));
}

TEST(ForeignTools, AFileOfTorchProfilersIsNoOthersWhateverItsProcessIsCalled) {
  const std::string process =
      R"({"ph":"M","pid":10,"name":"process_name","args":{"name":"/device:TPU:0"}},)";
  EXPECT_EQ(OpenText(File("", process + TwentyLaunches())).traces.at(0).kernels.size(), 20u);
}

// Operators of PyTorch beside an NPU's work without a category: of the device nothing is known.
TEST(ForeignTools, WhatAnotherProfilerSawOfADeviceIsNotAnIdleDevice) {
  std::string host, npu = R"({"ph":"M","pid":9,"name":"process_name","args":{"name":)"
                          R"("Ascend Hardware"}})";
  for (int i = 0; i < 500; ++i) {
    host += Span("cpu_op", "aten::mm", 10 * i, 5) + ",";
    if (i % 100 == 0) {
      npu += R"(,{"ph":"X","pid":9,"tid":2,"name":"MatMulV2","ts":)" + std::to_string(10 * i) +
             R"(,"dur":9,"args":{}})";
    }
  }
  const std::string sentence = Judge(OpenText(File("", host + npu))).sentence;
  EXPECT_EQ(sentence,
            "No verdict: 5 events of x.json could not be read, mostly device work as Ascend's "
            "profiler (torch_npu, msprof) writes it, so what the time went to is not known.");
  host.pop_back();
  EXPECT_THAT(Judge(OpenText(File("", host))).sentence, HasSubstr("Without a device all"));
}

TEST(ForeignTools, EventsWithoutACategoryAreCalledThat) {
  const collector::Run run = OpenText(
      File("", TwentyLaunches() + R"(,{"ph":"X","pid":3,"tid":1,"name":"a","ts":1,"dur":1},)" +
                   R"({"ph":"X","cat":"","pid":3,"tid":1,"name":"b","ts":2,"dur":1})"));
  EXPECT_THAT(run.traces.at(0).info.notes,
              testing::Contains("events without a category: 2 not read"));
  EXPECT_EQ(Judge(run).sentence,
            "No verdict: 2 events of x.json could not be read, mostly events without a category, "
            "so what the time went to is not known.");
}

std::string MemoryOf(int type, int device) {
  return R"({"ph":"i","s":"t","name":"[memory]","pid":10,"tid":11,"ts":5,"args":{"Bytes":1024,)"
         R"("Addr":1,"Total Allocated":1024,"Total Reserved":2048,"Device Type":)" +
         std::to_string(type) + R"(,"Device Id":)" + std::to_string(device) + "}}";
}

// c10::DeviceType: 1 CUDA, 12 XPU, 19 MTIA, 20 another's.
TEST(ForeignTools, ADevicesKindIsTheFiles) {
  const auto device = [](const std::string& events) {
    const collector::Run run = OpenText(File("", events));
    return CellAt<std::string>(TabulateMemory(run, {}), 0, "device");
  };
  EXPECT_EQ(device(MemoryOf(1, 0)), "GPU 0");
  EXPECT_EQ(device(MemoryOf(12, 1)), "XPU 1");
  EXPECT_EQ(device(MemoryOf(19, 0)), "MTIA 0");
  EXPECT_EQ(device(MemoryOf(20, 2) +
                   R"(,{"ph":"M","pid":2,"name":"process_labels","args":{"labels":"NPU 2"}})"),
            "NPU 2");
}

// profile_memory without ProfilerActivity.CUDA.
TEST(ForeignTools, MemoryOfADeviceWithoutItsWorkIsNoIdleDevice) {
  const std::string host = Span("cpu_op", "aten::mm", 1, 50);
  EXPECT_THAT(Judge(OpenText(File("", host + "," + MemoryOf(1, 0)))).sentence,
              testing::StartsWith("Memory of a device is in this file, its work is not: what is "
                                  "known of"));
  EXPECT_THAT(Judge(OpenText(File("", host + "," + MemoryOf(0, -1)))).sentence,
              testing::StartsWith("Without a device all"));
}

}  // namespace
}  // namespace ranktap::collector
