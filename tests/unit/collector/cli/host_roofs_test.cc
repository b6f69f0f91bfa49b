#include "collector/cli/host_roofs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "collector/calibrate/calibrate_device.h"
#include "collector/facts/roofline/roofs.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using testing::HasSubstr;

// One rank on one GPU.
Run RunOn(const std::string& host, const std::string& device) {
  Run run;
  Trace& trace = run.traces.emplace_back();
  trace.hello.mutable_process()->set_host(host);
  v1::Device* const of = trace.hello.add_devices();
  of->set_id(0);
  of->set_name(device);
  of->set_uuid(std::string(16, '\x11'));
  trace.lanes = {{0, 1, 7}};
  return run;
}

DeviceRoofs RoofsOf(const std::string& host, const std::string& device) {
  DeviceRoofs roofs;
  roofs.host = host;
  roofs.name = device;
  roofs.uuid = "11111111111111111111111111111111";
  roofs.arithmetic = {{"fp32", "FMA", {100e9, 1}, 1000, false}};
  return roofs;
}

bool IsCalibrated(const Run& run) {
  return RoofsOfTrace(run.traces[0], {}).Of(0).calibrated != nullptr;
}

class DeviceRoofsFileTest : public testing::Test {
 protected:
  DeviceRoofsFileTest() { ::setenv("XDG_DATA_HOME", folder_.path().c_str(), 1); }

  std::string Write(const std::string& path, const DeviceRoofs& roofs) const {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << DeviceRoofsText(roofs);
    return path;
  }
  // What is said of a file that somebody names.
  std::string Complaint(const std::string& file, const collector::Run& run) const {
    testing::internal::CaptureStderr();
    EXPECT_FALSE(TakeHostRoofs(file, run));
    EXPECT_FALSE(IsCalibrated(run));
    return testing::internal::GetCapturedStderr();
  }

  TemporaryDirectory folder_;
};

TEST_F(DeviceRoofsFileTest, AReportTakesTheFileThatCalibrateWroteOfItsHostAndDevice) {
  Write(DeviceRoofsPath("box", RoofsOf("", "").uuid), RoofsOf("box", "GPU 5"));
  const collector::Run own = RunOn("box", "GPU 5"), other_host = RunOn("other", "GPU 5"),
                       other_device = RunOn("box", "GPU 6");
  for (const collector::Run* const run : {&own, &other_host, &other_device})
    EXPECT_TRUE(TakeHostRoofs("", *run));
  EXPECT_TRUE(IsCalibrated(own));
  EXPECT_FALSE(IsCalibrated(other_host));
  EXPECT_FALSE(IsCalibrated(other_device));
}

TEST_F(DeviceRoofsFileTest, ANamedFileOfAnotherDeviceIsRefusedByName) {
  const std::string file = Write(folder_ / "roofs.gpu0.json", RoofsOf("box", "GPU 5"));
  const collector::Run own = RunOn("box", "GPU 5");
  EXPECT_TRUE(TakeHostRoofs(file, own));
  EXPECT_TRUE(IsCalibrated(own));
  EXPECT_THAT(Complaint(file, RunOn("box", "GPU 6")),
              HasSubstr("it is of GPU 5 in box, UUID 11111111111111111111111111111111, and the run "
                        "is of GPU 6 in box; calibrate there"));
  EXPECT_THAT(Complaint(file, RunOn("other", "GPU 5")), HasSubstr("the run is of GPU 5 in other"));
}

TEST_F(DeviceRoofsFileTest, AFileOfTheStandInIsNoRoof) {
  DeviceRoofs roofs = RoofsOf("box", "GPU 5");
  roofs.is_stand_in = true;
  const std::string file = Write(DeviceRoofsPath("box", roofs.uuid), roofs);
  EXPECT_THAT(Complaint(file, RunOn("box", "GPU 5")), HasSubstr("the stand-in for CUDA"));
  const collector::Run run = RunOn("box", "GPU 5");
  EXPECT_TRUE(TakeHostRoofs("", run));
  EXPECT_FALSE(IsCalibrated(run));
}

}  // namespace
}  // namespace ranktap::collector
