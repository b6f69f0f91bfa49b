// Limits of control groups, from files laid out as the kernel's.
#include "agent/core/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ranktap::agent {
namespace {

class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() {
    std::string pattern = ::testing::TempDir() + "/limits.XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~MemoryLimitTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  uint64_t Limit() { return MemoryLimit(root_ + "/self", root_ + "/groups"); }

  std::string root_;
};

TEST_F(MemoryLimitTest, WithoutGroupsThereIsNone) { EXPECT_EQ(Limit(), UINT64_MAX); }

TEST_F(MemoryLimitTest, OfVersion2TheLeastUpToTheRootCounts) {
  Write("/self", "0::/system.slice/job/step\n");
  Write("/groups/system.slice/job/step/memory.max", "max\n");
  EXPECT_EQ(Limit(), UINT64_MAX);
  Write("/groups/system.slice/job/memory.max", "67108864\n");
  Write("/groups/system.slice/memory.max", "134217728\n");
  EXPECT_EQ(Limit(), 64u << 20);
}

TEST_F(MemoryLimitTest, OfVersion1TheMemoryHierarchyCounts) {
  Write("/self", "5:cpu,cpuacct:/job\n4:memory:/job\n0::/\n");
  Write("/groups/memory/job/memory.limit_in_bytes", "67108864\n");
  EXPECT_EQ(Limit(), 64u << 20);
}

TEST_F(MemoryLimitTest, AContainerThatSeesItsGroupAsTheRootHasItsLimit) {
  Write("/self", "0::/somewhere/outside\n");
  Write("/groups/memory.max", "67108864\n");
  EXPECT_EQ(Limit(), 64u << 20);
}

}  // namespace
}  // namespace ranktap::agent
