#include "collector/calibrate/calibrate_host.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "collector/calibrate/numa_nodes.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

TEST(CalibrateHostTest, NumaNodesAreThoseWithCoresThatTheProcessMayUse) {
  const TemporaryDirectory root;
  const auto node = [&root](const std::string& name, const std::string& cores) {
    std::filesystem::create_directory(root / name);
    std::ofstream(root / name + "/cpulist") << cores << "\n";
  };
  node("node0", "0-3,8");
  node("node1", "4-7");
  node("node2", "");  // memory alone
  node("node10", "9-12");
  using Nodes = std::map<int, std::vector<int>>;
  EXPECT_EQ(NumaNodes(root.path(), {1, 2, 8, 9}), (Nodes{{0, {1, 2, 8}}, {10, {9}}}));
  EXPECT_EQ(NumaNodes(root.path(), {4}), (Nodes{{1, {4}}}));
  EXPECT_TRUE(NumaNodes(root / "absent", {0}).empty());
}

TEST(CalibrateHostTest, AFileIsReadAsItWasWritten) {
  HostRoofs roofs;
  roofs.host = "box";
  roofs.processor = "CPU \"x\"";
  roofs.cores = 4;
  roofs.kernel = "6.1.0";
  roofs.mhz = 2100.5;
  roofs.cache_bytes = 1 << 20;
  roofs.arithmetic = {{"bf16", "AVX-512 BF16", {1e12, 2.5}, {3e12, 1}}};
  roofs.levels = {{"memory", 1 << 28, {1e10, 3}, {2e10, 4}}};
  const Result<HostRoofs> read = ParseRoofs(RoofsText(roofs));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(RoofsText(*read), RoofsText(roofs));
  EXPECT_EQ(read->Peaks().bandwidth(), 2e10);
  EXPECT_EQ(read->Peaks().flops(ComputeUnit::kHalfTensor), 3e12);
  EXPECT_EQ(read->Peaks().flops(ComputeUnit::kFp32), 0) << "not measured";
}

TEST(CalibrateHostTest, WhatIsNoFileOfCalibrateIsRefused) {
  for (const char* const text :
       {"", "[]", "{}", "{\"ranktap_roofs\": 2}", "{\"ranktap_roofs\": \"1\"}"}) {
    EXPECT_FALSE(ParseRoofs(text).ok()) << text;
  }
  EXPECT_TRUE(
      ParseRoofs(
          R"({"ranktap_roofs": 1, "flops_per_second": [3, {"all_cores": "x"}], "bytes_per_second": 4})")
          .ok());
  for (const char* const host : {"", "..", "a/b"}) EXPECT_EQ(RoofsPath(host), "");
}

}  // namespace
}  // namespace ranktap::collector
