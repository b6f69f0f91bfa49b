// Programs that give up rights or change their shape after their first event, bare and traced: ends
// as bare, and each thread may do what the program may. A new case is a line in kCases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/integration/hostile/differential_run.h"
#include "tests/integration/hostile/surroundings.h"
#include "tests/integration/standin/simulated_run.h"

namespace ranktap::hostile_test {
namespace {

using standin_test::BuildPath;

constexpr double kPatienceS = 30, kSlackS = 3;

struct Case {
  std::string name;
  Command command;
};

void PrintTo(const Case& what, std::ostream* out) { *out << what.name; }

Command Rights(const std::string& call, const std::string& way) {
  return {BuildPath("workloads/rights"), call, way};
}

Command OnTheStandIn(Command command) {
  command.push_back("cuda");
  command.insert(command.begin(), {"/usr/bin/env", "LD_LIBRARY_PATH=" + BuildPath("fakes")});
  return command;
}

Command Tool(const std::string& script) { return WithNvtxAtStart({"/bin/sh", "-c", script}); }

// capset by a number, from a library that is loaded long after the first event.
const char kPython[] = R"(
import ctypes, glob, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(126, (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()))
for path in sorted(glob.glob('/proc/self/task/*/status')):
    if open(path).read().count('CapEff:\t0000000000000000') != 1: print('a thread kept its rights')
try: os.setuid(1000)
except OSError as error: print(error)
)";

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto add = [&cases](const std::string& call, const std::vector<std::string>& ways) {
    for (const std::string& way : ways) {
      std::string name = call + "_" + way;
      for (char& character : name) character = character == '-' ? '_' : character;
      cases.push_back({name, Rights(call, way)});
    }
  };
  const std::vector<std::string> kEveryWay = {"libc", "syscall", "dlsym", "libcap", "late"};
  for (const char* call : {"capset", "keepcaps", "securebits", "bounding", "nonewprivs"}) {
    add(call, kEveryWay);
  }
  add("ambient", {"libc", "syscall", "dlsym"});
  add("landlock", {"syscall", "dlsym"});
  for (const char* call : {"ids", "groups", "fsids", "unshare-vm", "unshare-sighand",
                           "unshare-thread", "setns-user", "setns-mnt", "setns-time", "thread"}) {
    add(call, {"libc", "syscall"});
  }
  cases.push_back({"capset_with_cuda", OnTheStandIn(Rights("capset", "libc"))});
  cases.push_back({"securebits_with_cuda", OnTheStandIn(Rights("securebits", "syscall"))});
  cases.push_back({"setns_mnt_with_cuda", OnTheStandIn(Rights("setns-mnt", "libc"))});
  cases.push_back({"setpriv", Tool("setpriv --reuid=65534 --clear-groups id -u")});
  cases.push_back(
      {"setpriv_of_all", Tool("setpriv --no-new-privs --inh-caps=-all --ambient-caps=-all "
                              "--bounding-set=-all --regid=65534 --reuid=65534 --clear-groups "
                              "grep -E '^(Uid|Cap|NoNew)' /proc/self/status")});
  cases.push_back({"unshare_mount", Tool("unshare -m echo in a mount namespace")});
  cases.push_back({"unshare_user", Tool("unshare -Upf echo in a user namespace")});
  cases.push_back({"nsenter", Tool("nsenter -t $$ -m echo entered")});
  cases.push_back({"python_ctypes", WithNvtxAtStart({"/usr/bin/python3", "-c", kPython})});
  return cases;
}

class RightsMatrix : public testing::TestWithParam<Case> {};

TEST_P(RightsMatrix, EndsAsBareWithTheSameRightsInEveryThread) {
  const Command& command = GetParam().command;
  const Seen bare = Watch(command, {}, kPatienceS);
  if (bare.status == 77) GTEST_SKIP() << "not possible on this machine: " << bare.errors;
  ASSERT_TRUE(bare.ended) << "the bare program hangs";
  for (const Corner& corner : Corners()) {
    SCOPED_TRACE(corner.Name());
    const Traced traced = Trace(command, corner.level, corner.loaded_by, kPatienceS);
    EXPECT_EQ(Differences(bare, traced.seen, kSlackS), "");
    EXPECT_EQ(traced.problems, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, RightsMatrix, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST(RightsTest, RecordingGoesOnWithTheNewRights) {
  const Command command = Rights("capset", "libc");
  if (Watch(command, {}, kPatienceS).status == 77) GTEST_SKIP() << "this needs root";
  const Traced traced = Trace(command, "ranges", LoadedBy::kPreload, kPatienceS);
  EXPECT_EQ(traced.problems, "");
  EXPECT_EQ(traced.ranges, 12u);
}

}  // namespace
}  // namespace ranktap::hostile_test
