#include "collector/facts/roofline/device_peaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace ranktap::collector {
namespace {

std::string_view NameOfDevice(std::string_view asked, uint64_t memory = 0) {
  const DevicePeaks* const found = FindDevicePeaks(asked, memory);
  return found == nullptr ? "" : found->name;
}

// FLOP a byte from which on memory does not bound.
double RidgeOf(std::string_view name, ComputeUnit unit) {
  const DevicePeaks* const device = FindDevicePeaks(name);
  return device->flops(unit) / device->bandwidth();
}

TEST(DevicePeaksTest, TheRidgesOfTheArticleComeOutOfTheTable) {
  EXPECT_NEAR(RidgeOf("1080 Ti", ComputeUnit::kFp32), 23.35, 0.005);
  EXPECT_NEAR(RidgeOf("A100", ComputeUnit::kFp32), 12.54, 0.005);
  EXPECT_NEAR(RidgeOf("H200", ComputeUnit::kHalfTensor), 206, 0.5);
}

TEST(DevicePeaksTest, NamesOfDriversAndOfPeopleFindTheirDevice) {
  EXPECT_EQ(NameOfDevice("NVIDIA A100-SXM4-80GB"), "A100 SXM 80GB");
  EXPECT_EQ(NameOfDevice("A100-PCIE-40GB"), "A100 PCIe 40GB");
  EXPECT_EQ(NameOfDevice("NVIDIA A100 80GB PCIe"), "A100 PCIe 80GB");
  EXPECT_EQ(NameOfDevice("NVIDIA A100-PG509-200", uint64_t{85} << 30), "A100 SXM 80GB");
  EXPECT_EQ(NameOfDevice("NVIDIA H100 80GB HBM3"), "H100 SXM");
  EXPECT_EQ(NameOfDevice("h100 pcie"), "H100 PCIe");
  EXPECT_EQ(NameOfDevice("Tesla V100-SXM2-32GB"), "V100 SXM2");
  EXPECT_EQ(NameOfDevice("NVIDIA GeForce GTX 1080 Ti"), "GTX 1080 Ti");
  EXPECT_EQ(NameOfDevice("GTX1080Ti"), "GTX 1080 Ti");
  EXPECT_EQ(NameOfDevice("rtx4090"), "RTX 4090");
}

TEST(DevicePeaksTest, ADeviceThatSharesANumberIsAnother) {
  for (const std::string_view other :
       {"NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 3090 Ti", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "GTX 1080", "A1000",
        ""}) {
    EXPECT_EQ(NameOfDevice(other), "") << other;
  }
}

TEST(DevicePeaksTest, AnUnknownDeviceFailsWithTheNearest) {
  const auto h1000 = DevicePeaksNamed("NVIDIA H1000");
  ASSERT_FALSE(h1000);
  EXPECT_THAT(h1000.message(), testing::HasSubstr("'NVIDIA H1000'; nearest: H100"));
  EXPECT_THAT(DevicePeaksNamed("RTX 3090 Ti").message(), testing::HasSubstr("RTX 3090"));
}

// Two FLOPs a multiply-add; CUDA cores of an SM by architecture.
TEST(DevicePeaksTest, PeaksOfCudaCoresAreCoresTimesClock) {
  for (const DevicePeaks& device : AllDevicePeaks()) {
    if (device.boost_mhz == 0) continue;
    const double each = device.flops(ComputeUnit::kFp32) / (device.sms * 2e6 * device.boost_mhz);
    const double cores = each > 96 ? 128 : 64;
    EXPECT_NEAR(each, cores, cores * 0.02) << device.name;
  }
}

// Dense FLOPs of a compute unit's matrix cores a clock, by the white papers of CDNA 2 to 4.
TEST(DevicePeaksTest, PeaksOfMatrixCoresAreComputeUnitsTimesClock) {
  struct Board {
    std::string_view name;
    double units, mhz, half, fp8, tf32, fp64;
  };
  for (const Board& board : {Board{"AMD Instinct MI210", 104, 1700, 1024, 0, 0, 256},
                             Board{"AMD Instinct MI250X", 110, 1700, 1024, 0, 0, 256},
                             Board{"AMD Instinct MI300X", 304, 2100, 2048, 4096, 1024, 256},
                             Board{"AMD Instinct MI325X", 304, 2100, 2048, 4096, 1024, 256},
                             Board{"AMD Instinct MI355X", 256, 2400, 4096, 8192, 0, 128}}) {
    const DevicePeaks* const known = FindDevicePeaks(board.name);
    ASSERT_NE(known, nullptr) << board.name;
    const double clocks = board.units * board.mhz * 1e6;
    const auto is = [&](ComputeUnit unit, double each) {
      EXPECT_NEAR(known->flops(unit), each * clocks, 0.001 * each * clocks + 1) << board.name;
    };
    is(ComputeUnit::kHalfTensor, board.half);
    is(ComputeUnit::kFp8, board.fp8);
    is(ComputeUnit::kTf32, board.tf32);
    is(ComputeUnit::kFp64Tensor, board.fp64);
    is(ComputeUnit::kFp64, board.fp64);
    is(ComputeUnit::kFp32, 256);
    EXPECT_DOUBLE_EQ(PeakFlops(board.name, "c10::BFloat16"),
                     known->flops(ComputeUnit::kHalfTensor));
    EXPECT_DOUBLE_EQ(PeakFlops(board.name, "c10::Float8_e4m3fnuz"),
                     known->flops(ComputeUnit::kFp8));
  }
}

TEST(DevicePeaksTest, EveryRowNamesItsSourceAndIsFoundByItsName) {
  std::set<std::string_view> names;
  for (const DevicePeaks& device : AllDevicePeaks()) {
    EXPECT_FALSE(device.source.empty()) << device.name;
    EXPECT_GT(device.bandwidth_gb, 0) << device.name;
    EXPECT_EQ(NameOfDevice(device.name), device.name);
    EXPECT_TRUE(names.insert(device.name).second) << device.name;
  }
}

TEST(DevicePeaksTest, APeakScalesWithTheClockThatItsUnitsCountAt) {
  const DevicePeaks& h100 = *FindDevicePeaks("H100 SXM");
  EXPECT_DOUBLE_EQ(h100.FlopsAt(ComputeUnit::kHalfTensor, 1830), 989.4e12);
  EXPECT_DOUBLE_EQ(h100.FlopsAt(ComputeUnit::kFp32, 990), 33.5e12);
  EXPECT_EQ(FindDevicePeaks("B200")->FlopsAt(ComputeUnit::kFp32, 990), 0);
}

}  // namespace
}  // namespace ranktap::collector
