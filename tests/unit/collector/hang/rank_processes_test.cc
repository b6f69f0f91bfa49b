#include "collector/hang/rank_processes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

void WriteIn(const std::string& folder, const std::string& name, const std::string& text) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + name) << text;
}

TEST(RankProcesses, TheOomKillersCountIsThatOfTheProcesssOwnControlGroup) {
  const TemporaryDirectory root;
  WriteIn(root.path() + "/job/step0", "memory.events", "low 0\noom 3\noom_kill 2\n");
  WriteIn(root.path() + "/memory/old", "memory.oom_control", "under_oom 0\noom_kill 5\n");
  const std::string unified = OomKillsFile("0::/job/step0\n", root.path());
  EXPECT_EQ(unified, root.path() + "/job/step0/memory.events");
  EXPECT_EQ(OomKillsIn(unified), 2);
  EXPECT_EQ(OomKillsIn(OomKillsFile("9:cpu:/\n4:memory:/old\n0::/\n", root.path())), 5);
}

TEST(RankProcesses, WhereTheGroupHasNoCountTheMachinesIsTaken) {
  const TemporaryDirectory root;
  WriteIn(root.path(), "memory.events", "oom_kill\n");
  for (const char* const groups : {"", "nonsense", "0::/\n", "::::\n4:memory:/../..\n"}) {
    const std::string file = OomKillsFile(groups, root.path());
    EXPECT_TRUE(file.empty() || file == "/proc/vmstat") << file;
  }
}

}  // namespace
}  // namespace ranktap::collector
