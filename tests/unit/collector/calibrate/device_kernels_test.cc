#include "collector/calibrate/device_kernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "collector/calibrate/calibrate_device.h"

namespace ranktap::collector {
namespace {

// A kernel's code is a section of this name.
std::set<std::string> KernelsIn(std::string_view image) {
  constexpr std::string_view kCode = ".text.ranktap_";
  std::set<std::string> names;
  for (size_t at = image.find(kCode); at != image.npos; at = image.find(kCode, at + 1)) {
    // Not the tail of another section's name.
    if (at > 0 && image[at - 1] == '\0') names.insert(std::string(image.data() + at + 6));
  }
  return names;
}

TEST(DeviceKernelsTest, EachArchitecturesCodeHasTheKernelsOfItsTableAndNoOther) {
  if (!HasDeviceCode()) GTEST_SKIP() << "built without nvcc: there is no code";
  for (const DeviceCode& code : AllDeviceCode()) {
    std::set<std::string> listed = {kCopyKernel, kReadKernel, kEmptyKernel};
    for (const DeviceKernel& kernel : code.kernels) listed.insert(kernel.name);
    EXPECT_EQ(KernelsIn(code.image), listed) << code.architecture;
    EXPECT_EQ(code.image.find("/device_kernels"), code.image.npos) << "a path of this machine";
  }
}

TEST(DeviceKernelsTest, ADeviceGetsTheCodeThatItCanRun) {
  const auto code = [](int major, int minor) {
    const DeviceCode* const found = DeviceCodeFor(major, minor);
    return found == nullptr ? std::string("none") : std::string(found->architecture);
  };
  EXPECT_EQ(code(8, 0), "sm_80");
  EXPECT_EQ(code(8, 9), "sm_80");
  EXPECT_EQ(code(9, 0), "sm_90a");
  EXPECT_EQ(code(10, 3), "sm_100");
  EXPECT_EQ(code(12, 1), "sm_120");
  EXPECT_EQ(code(7, 5), "none");
  EXPECT_EQ(code(11, 0), "none");
}

DeviceRoofs Measured() {
  DeviceRoofs roofs;
  roofs.host = "box";
  roofs.name = "GPU \"x\"";
  roofs.uuid = "00ff";
  roofs.number = 1;
  roofs.driver = "CUDA 13.0";
  roofs.architecture = "9.0";
  roofs.sms = 4;
  roofs.mhz = 1980;
  roofs.l2_bytes = 1 << 20;
  roofs.arithmetic = {{"bf16 tensor", "wgmma", {2e14, 1.5}, 1700, false},
                      {"int8", "mma.sync", {1e14, 2}, 0, true}};
  roofs.bandwidths = {{"L2", 1024, {5e12, 3}}, {"memory", 4096, {}}};
  roofs.latencies = {{"launch", {2000, 4}}};
  return roofs;
}

TEST(DeviceKernelsTest, AFileIsReadAsItWasWrittenAndARateThatNobodyMeasuredStaysNone) {
  const std::string text = DeviceRoofsText(Measured());
  EXPECT_TRUE(IsDeviceRoofs(text));
  const Result<DeviceRoofs> read = ParseDeviceRoofs(text);
  ASSERT_TRUE(read) << read.message();
  EXPECT_EQ(DeviceRoofsText(*read), text);
  ASSERT_EQ(read->arithmetic.size(), 2U);
  EXPECT_TRUE(read->arithmetic[1].is_lower_bound);
  ASSERT_EQ(read->bandwidths.size(), 2U);
  EXPECT_EQ(read->bandwidths[1].rate.rate, 0);
  EXPECT_NE(text.find("\"rate\": null"), text.npos);
  EXPECT_FALSE(ParseDeviceRoofs(R"({"ranktap_roofs": 1})"));
  EXPECT_FALSE(IsDeviceRoofs("no JSON"));
}

TEST(DeviceKernelsTest, AFileOfTheStandInIsRefused) {
  DeviceRoofs roofs = Measured();
  roofs.is_stand_in = true;
  const Result<DeviceRoofs> read = ParseDeviceRoofs(DeviceRoofsText(roofs));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.message(), "it was written on the stand-in for CUDA, which computes nothing");
}

TEST(DeviceKernelsTest, ADevicesFileHasItsUuidInItsName) {
  ::setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(DeviceRoofsPath("box", "00ff"), "/data/ranktap/roofs/box.00ff.json");
  EXPECT_EQ(DeviceRoofsPath("box", ""), "");
  EXPECT_EQ(DeviceRoofsPath("../box", "00ff"), "");
}

}  // namespace
}  // namespace ranktap::collector
