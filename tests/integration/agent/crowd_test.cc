// More threads than the rings have large chunks, and containers that are small: nothing is lost for
// want of ring memory while the collector keeps up, and the program has what it needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

namespace fs = std::filesystem;
using collector::Trace;

Sums SumsOf(const TracedRun& traced) {
  EXPECT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  EXPECT_EQ(traced.Problems(), "");
  EXPECT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  return traced.run().traces.empty() ? Sums{} : SumWriters(traced.run().traces[0]);
}

TEST(CrowdTest, AThousandThreadsThatDoLittleLoseNothing) {
  const TracedRun traced({Host("crowd"), "live", "1000", "20"}, {}, {"--level", "ranges"});
  const Sums sums = SumsOf(traced);
  EXPECT_EQ(sums.stored, 2 * 1000u * 20);
  EXPECT_EQ(sums.lost, 0u);
}

TEST(CrowdTest, OfFiveThousandShortThreadsLessThanOnePercentIsLost) {
  const TracedRun traced({Host("crowd"), "short", "5000"}, {}, {"--level", "ranges"});
  const Sums sums = SumsOf(traced);
  EXPECT_EQ(sums.produced, 2 * 5000u);
  EXPECT_LT(sums.lost, sums.produced / 100);
}

// A control group of 64 MiB, of version 1 or 2, where we may make one.
class SmallGroup {
 public:
  SmallGroup() {
    const std::string name = "/ranktap-test-" + std::to_string(getpid());
    for (const auto& [root, file] : {std::pair("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                                     std::pair("/sys/fs/cgroup", "memory.max")}) {
      std::error_code error;
      if (!fs::create_directory(root + name, error)) continue;
      path_ = root + name;
      std::ofstream limit(path_ + "/" + file);
      limit << (64 << 20) << std::flush;
      if (limit.good() && fs::exists(path_ + "/" + file)) return;
      fs::remove(path_, error);
      path_.clear();
    }
  }
  ~SmallGroup() {
    std::error_code error;
    if (!path_.empty()) fs::remove(path_, error);
  }
  bool made() const { return !path_.empty(); }
  std::string tasks() const { return path_ + "/cgroup.procs"; }

 private:
  std::string path_;
};

TEST(SmallContainerTest, AProgramOf45MiBLivesIn64) {
  const SmallGroup group;
  if (!group.made()) GTEST_SKIP() << "no control group can be made here; rings_sharing_test counts";
  const std::vector<std::string> command = {Host("crowd"), "small", "45", group.tasks()};
  const SimulatedRun bare(command, {});
  ASSERT_TRUE(bare.exited_with(0)) << bare.errors();
  const TracedRun traced(command, {}, {"--level", "ranges"});
  ExpectSameToTheUser(bare, traced.process());
  const Sums sums = SumsOf(traced);
  EXPECT_EQ(sums.produced, sums.stored + sums.lost);
  EXPECT_EQ(sums.produced, 4'000'000u);
  EXPECT_THAT(traced.run().traces.at(0).info.notes,
              testing::Contains(testing::HasSubstr("rings of 8 MiB instead of 32")));
}

}  // namespace
}  // namespace ranktap::agent_test
