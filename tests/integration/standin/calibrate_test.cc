// `ranktap calibrate --only gpu` on the stand-in: what it asks of the driver, and that it makes no
// figure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "collector/calibrate/device_kernels.h"
#include "tests/integration/standin/simulated_run.h"

namespace ranktap::standin_test {
namespace {

using collector::DeviceCodeFor;
using collector::DeviceKernel;
using testing::HasSubstr;

class CalibrateTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!collector::HasDeviceCode()) GTEST_SKIP() << "built without nvcc: calibrate has no kernels";
    std::string pattern = testing::TempDir() + "/roofs.XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  SimulatedRun Calibrate(const Environment& more) const {
    Environment environment = {{"XDG_DATA_HOME", folder_}};
    environment.insert(environment.end(), more.begin(), more.end());
    return SimulatedRun({BuildPath("bin/ranktap"), "calibrate", "--only", "gpu"}, environment);
  }

  std::vector<Json> Files() const {
    std::vector<Json> files;
    const std::string roofs = folder_ + "/ranktap/roofs";
    if (!std::filesystem::exists(roofs)) return files;
    for (const auto& entry : std::filesystem::directory_iterator(roofs)) {
      files.push_back(Json::parse(ReadFile(entry.path())));
    }
    return files;
  }

  std::string folder_;
};

std::vector<std::string> CallsOf(const SimulatedRun& run) {
  std::vector<std::string> names;
  for (const Json& call : run.Truth(run.Processes().at(0), "api")) names.push_back(call["name"]);
  return names;
}

int64_t Count(const std::vector<std::string>& calls, std::string_view name) {
  return std::count(calls.begin(), calls.end(), name);
}

TEST_F(CalibrateTest, EveryKernelIsFoundByNameAndRunsOnEachDevice) {
  const SimulatedRun run = Calibrate({{"RANKTAP_STANDIN_DEVICES", "2"}});
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  const int pid = run.Processes().at(0);
  std::set<std::string> expected = {collector::kCopyKernel, collector::kReadKernel,
                                    collector::kEmptyKernel};
  for (const DeviceKernel& kernel : DeviceCodeFor(9, 0)->kernels) expected.insert(kernel.name);
  std::map<int, std::set<std::string>> ran;
  for (const Json& kernel : run.Truth(pid, "kernel")) ran[kernel["device"]].insert(kernel["name"]);
  EXPECT_EQ(ran, (std::map<int, std::set<std::string>>{{0, expected}, {1, expected}}));
  EXPECT_TRUE(run.Truth(pid, "refused").empty());
  EXPECT_TRUE(run.Truth(pid, "violation").empty());
  EXPECT_FALSE(run.Truth(pid, "peer_copy").empty());
}

TEST_F(CalibrateTest, CallsComeInOrderAndWhatIsTakenIsGivenBack) {
  const SimulatedRun run = Calibrate({{"RANKTAP_STANDIN_DEVICES", "1"}});
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  const std::vector<std::string> calls = CallsOf(run);
  auto at = calls.begin();
  for (const char* const name :
       {"cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
        "cuModuleLoadData", "cuStreamCreate", "cuModuleGetFunction", "cuEventRecord",
        "cuLaunchKernel", "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime",
        "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuModuleUnload",
        "cuDevicePrimaryCtxRelease_v2"}) {
    at = std::find(at, calls.end(), name);
    ASSERT_NE(at, calls.end()) << name;
    ++at;
  }
  EXPECT_EQ(at, calls.end()) << "called after the device was left: " << *at;
  EXPECT_EQ(Count(calls, "cuMemAlloc_v2"), Count(calls, "cuMemFree_v2"));
  EXPECT_EQ(Count(calls, "cuMemHostAlloc"), Count(calls, "cuMemFreeHost"));
  EXPECT_EQ(Count(calls, "cuEventCreate"), Count(calls, "cuEventDestroy_v2"));
}

TEST_F(CalibrateTest, TheStandInsFileSaysSoAndHasNoFigure) {
  const SimulatedRun run = Calibrate({{"RANKTAP_STANDIN_DEVICES", "1"}});
  ASSERT_TRUE(run.exited_with(0)) << run.errors();
  EXPECT_THAT(run.output(), HasSubstr("this is the stand-in for CUDA, which computes nothing"));
  const std::vector<Json> files = Files();
  ASSERT_EQ(files.size(), 1U);
  EXPECT_TRUE(files[0].contains("stand_in"));
  EXPECT_EQ(files[0]["device"], "Simulated GPU 0");
  for (const char* const table : {"flops_per_second", "bytes_per_second", "latencies"}) {
    ASSERT_FALSE(files[0][table].empty()) << table;
    for (const Json& row : files[0][table]) {
      EXPECT_TRUE(row[row.contains("ns") ? "ns" : "rate"].is_null()) << row;
      EXPECT_FALSE(row.contains("mhz")) << row;
    }
  }
}

TEST_F(CalibrateTest, AFailingCallIsOneLineAndEndsTheMeasurement) {
  const SimulatedRun run = Calibrate(
      {{"RANKTAP_STANDIN_DEVICES", "2"}, {"RANKTAP_STANDIN_FAIL", "cuMemAlloc_v2:2:after=1"}});
  EXPECT_TRUE(run.exited_with(1));
  EXPECT_THAT(run.errors(), testing::MatchesRegex(
                                "ranktap: no more GPUs were measured: cuMemAlloc_v2: .*\\(2\\)\n"));
  EXPECT_TRUE(Files().empty());
  const std::vector<std::string> calls = CallsOf(run);
  EXPECT_EQ(Count(calls, "cuDevicePrimaryCtxRetain"), 1) << "the second device is left alone";
  EXPECT_EQ(Count(calls, "cuDevicePrimaryCtxRelease_v2"), 1);
  EXPECT_EQ(Count(calls, "cuMemFree_v2"), 1);
}

TEST_F(CalibrateTest, WithoutADeviceOrADriverItSaysWhich) {
  const SimulatedRun without_device = Calibrate({{"RANKTAP_STANDIN_DEVICES", "0"}});
  EXPECT_TRUE(without_device.exited_with(1));
  EXPECT_EQ(without_device.errors(), "ranktap: no GPU was measured: the driver has none\n");
  const SimulatedRun without_driver = Calibrate({{"LD_LIBRARY_PATH", ""}});
  EXPECT_TRUE(without_driver.exited_with(1));
  EXPECT_EQ(without_driver.errors(),
            "ranktap: no GPU was measured: there is no driver (libcuda.so.1)\n");
}

}  // namespace
}  // namespace ranktap::standin_test
