// Programs in surroundings where little works: limits, denied system calls, other allocators,
// sanitizers, namespaces, small file systems. To the user each ends as without ranktap, and what
// was recorded verifies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

using collector::Trace;
using testing::HasSubstr;

void ExpectEverythingAccounted(const TracedRun& traced) {
  if (traced.run().traces.empty()) return;  // the agent stayed off
  EXPECT_EQ(traced.Problems(), "");
  for (const Trace& trace : traced.run().traces) {
    const Sums sums = SumWriters(trace);
    EXPECT_EQ(sums.produced, sums.stored + sums.lost);
  }
}

// Every kernel of a run whose one process made so many.
void ExpectKernels(const TracedRun& traced, uint64_t kernels) {
  ASSERT_EQ(traced.run().traces.size(), 1u) << traced.load_problem();
  EXPECT_EQ(traced.run().traces[0].kernels.size(), kernels);
  EXPECT_EQ(SumWriters(traced.run().traces[0]).lost, 0u);
}

std::string CaseName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

class ConfinedTest : public testing::TestWithParam<std::string> {};

TEST_P(ConfinedTest, TheProgramEndsAsBare) {
  const std::vector<std::string> command = {Host("confined"), GetParam(), "--",
                                            Host("endings"),  "return",   "200"};
  const SimulatedRun bare(command, {});
  const TracedRun traced(command);
  ExpectSameToTheUser(bare, traced.process());
  ExpectEverythingAccounted(traced);
}

INSTANTIATE_TEST_SUITE_P(Limits, ConfinedTest,
                         testing::Values("limit=nofile:24", "limit=nofile:64", "limit=fsize:0",
                                         "limit=fsize:4096", "limit=fsize:1048576",
                                         "limit=fsize:8388608", "limit=as:200000000",
                                         "limit=as:300000000", "limit=data:20000000",
                                         "limit=stack:65536", "limit=nproc:0", "limit=memlock:0",
                                         "limit=sigpending:0"),
                         CaseName);

INSTANTIATE_TEST_SUITE_P(Denied, ConfinedTest,
                         testing::Values("deny=socket", "deny=connect", "deny=sendmsg",
                                         "deny=recvfrom", "deny=poll", "deny=memfd_create",
                                         "deny=fcntl", "deny=madvise", "deny=getrandom",
                                         "deny=prctl", "deny=getrlimit", "deny=setpriority",
                                         "deny=sched_setscheduler", "deny=process_vm_readv",
                                         "deny=membarrier", "deny=uname", "deny=readlink",
                                         "deny=clone3", "eintr=recvfrom", "eintr=sendmsg"),
                         CaseName);

TEST(SurroundingsTest, AProgramOfOneThreadLivesWhereFutexIsRefused) {
  const std::vector<std::string> command = {Host("confined"), "deny=futex", "--", Host("matrix"),
                                            "middle",         "none",       "1"};
  const SimulatedRun bare(command, {});
  const TracedRun traced(command);
  EXPECT_TRUE(bare.exited_with(20)) << bare.errors();
  ExpectSameToTheUser(bare, traced.process());
}

TEST(SurroundingsTest, RingsShrinkToTheLargestFileAllowedAndSaySo) {
  const TracedRun traced(
      {Host("confined"), "limit=fsize:4194304", "--", Host("endings"), "return", "200"});
  ExpectKernels(traced, 200);
  EXPECT_THAT(traced.run().traces[0].info.notes, testing::Contains(HasSubstr("RLIMIT_FSIZE")));
}

TEST(SurroundingsTest, AProgramThatLocksItselfUpIsRecordedUntilThen) {
  const std::vector<std::string> command = {Host("sandboxed"), "300"};
  const SimulatedRun bare(command, {});
  if (!bare.exited_with(0)) GTEST_SKIP() << "no seccomp here: " << bare.errors();
  const TracedRun traced(command);
  ExpectSameToTheUser(bare, traced.process());
  EXPECT_EQ(traced.Problems(), "");
  ExpectKernels(traced, 300);
}

TEST(SurroundingsTest, SignalsReachWhomTheyAreMeantFor) {
  const std::vector<std::string> command = {Host("signals"), "200"};
  const SimulatedRun bare(command, {});
  ASSERT_TRUE(bare.exited_with(0)) << bare.output() << bare.errors();
  const TracedRun traced(command);
  ExpectSameToTheUser(bare, traced.process());
  EXPECT_EQ(traced.Problems(), "");
}

TEST(SurroundingsTest, CallsLeaveErrnoFloatingPointAndMasksAsTheyWereOnSmallStacks) {
  const std::vector<std::string> command = {Host("delicate"), "500"};
  const SimulatedRun bare(command, {});
  ASSERT_THAT(bare.output(), HasSubstr("changed=0"));
  for (const char* stacks : {"off", "all"}) {
    const TracedRun traced(command, {{"RANKTAP_STACKS", stacks}});
    ExpectSameToTheUser(bare, traced.process());
    EXPECT_EQ(traced.Problems(), "");
    ExpectKernels(traced, 4 * 501);
  }
}

TEST(SurroundingsTest, ChildrenThatWereForkedBeforeCudaAreProcessesOfTheirOwn) {
  const TracedRun traced({Host("forks_first"), "4", "50"});
  ASSERT_TRUE(traced.process().exited_with(0)) << traced.process().errors();
  EXPECT_EQ(traced.Problems(), "");
  ASSERT_EQ(traced.run().traces.size(), 4u);
  for (const Trace& trace : traced.run().traces) EXPECT_EQ(trace.kernels.size(), 50u);
}

// Whoever was there first has the name: what an agent sends is not for everybody.
TEST(SurroundingsTest, ACollectorThatRunsAsAnotherUserGetsNotAByte) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  std::string folder = testing::TempDir() + "/squatter.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = folder + "/socket";
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  int ready[2], received[2];
  ASSERT_EQ(pipe(ready) + pipe(received), 0);
  const pid_t squatter = fork();
  if (squatter == 0) {
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    char bytes[64] = {};
    if (setuid(65534) != 0 ||
        bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ||
        listen(listener, 8) != 0 || chmod(path.c_str(), 0777) != 0 ||
        write(ready[1], bytes, 1) != 1) {
      _exit(1);
    }
    for (;;) {
      const int connection = accept(listener, nullptr, nullptr);
      const ssize_t size = recv(connection, bytes, sizeof(bytes), 0);
      if (size > 0) (void)!write(received[1], bytes, static_cast<size_t>(size));
      close(connection);
    }
  }
  close(ready[1]), close(received[1]);
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const std::string agent = BuildPath("lib/libranktap.so");
  const SimulatedRun traced({Host("launches"), "2000", "2000"}, {{"LD_PRELOAD", agent},
                                                                 {"CUDA_INJECTION64_PATH", agent},
                                                                 {"NVTX_INJECTION64_PATH", agent},
                                                                 {"RANKTAP_SOCKET", path},
                                                                 {"RANKTAP_SPOOL_MIB", "0"}});
  EXPECT_TRUE(traced.exited_with(0));
  kill(squatter, SIGKILL);
  waitpid(squatter, nullptr, 0);
  EXPECT_EQ(read(received[0], &byte, 1), 0) << "nothing was written before the end of the pipe";
  std::filesystem::remove_all(folder);
}

class AllocatorTest : public testing::TestWithParam<std::string> {};

// Before us and behind us.
TEST_P(AllocatorTest, TheProgramsAllocatorServesUsTooInEitherOrder) {
  const std::string library = "/usr/lib/x86_64-linux-gnu/" + GetParam();
  if (!std::filesystem::exists(library)) GTEST_SKIP() << library << " is not installed";
  const std::string agent = BuildPath("lib/libranktap.so");
  for (const std::string& preload : {library, agent + ":" + library}) {
    SCOPED_TRACE(preload);
    const std::vector<std::string> command = {Host("throws"), "ranges", "50"};
    const SimulatedRun bare(command, {{"LD_PRELOAD", library}});
    const TracedRun traced(command, {{"LD_PRELOAD", preload}});
    ExpectSameToTheUser(bare, traced.process());
    ASSERT_EQ(traced.run().traces.size(), 1u);
    ExpectEverythingAccounted(traced);
  }
  const TracedRun forks({Host("forks"), "fork", "40", "8", "touch"}, {{"LD_PRELOAD", library}});
  EXPECT_TRUE(forks.process().exited_with(0)) << forks.process().errors();
  ExpectEverythingAccounted(forks);
}

INSTANTIATE_TEST_SUITE_P(Allocators, AllocatorTest,
                         testing::Values("libjemalloc.so.2", "libtcmalloc_minimal.so.4",
                                         "libmimalloc.so.2.0"),
                         CaseName);

class SanitizedTest : public testing::TestWithParam<std::string> {};

TEST_P(SanitizedTest, ASanitizedProgramEndsAsBareAndIsRecorded) {
  const std::vector<std::string> command = {Host("endings_" + GetParam()), "return", "100"};
  const SimulatedRun bare(command, {});
  if (!bare.exited_with(0)) GTEST_SKIP() << "does not run here at all: " << bare.errors();
  const TracedRun traced(command);
  EXPECT_EQ(traced.process().status(), bare.status()) << traced.process().errors();
  EXPECT_EQ(traced.process().output(), bare.output());
  if (GetParam() == "address") {
    // AddressSanitizer ends a program in which another library comes first.
    EXPECT_THAT(traced.process().errors(), HasSubstr("no LD_PRELOAD"));
  } else {
    EXPECT_EQ(traced.process().errors(), bare.errors());
  }
  EXPECT_EQ(traced.Problems(), "");
  ExpectKernels(traced, 100);
}

INSTANTIATE_TEST_SUITE_P(Sanitizers, SanitizedTest,
                         testing::Values("address", "thread", "undefined"), CaseName);

TEST(SurroundingsTest, AStaticProgramRunsAsBare) {
  const TracedRun traced({Host("plain_static"), "7"});
  EXPECT_TRUE(traced.process().exited_with(7));
  EXPECT_EQ(traced.process().output(), SimulatedRun({Host("plain_static"), "7"}, {}).output());
  EXPECT_THAT(traced.process().errors(), HasSubstr("statically linked"));
}

// scripts/install again and again, of two builds in turn, while programs start.
TEST(SurroundingsTest, ProgramsThatStartWhileTheAgentIsReplacedRunAsBare) {
  std::string folder = testing::TempDir() + "/install.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string script = R"(
    for build in a b; do
      mkdir -p $build/bin $build/lib
      printf '#!/bin/sh\necho ranktap 1.0\n' > $build/bin/ranktap; chmod +x $build/bin/ranktap
      cp -r $LIBRARIES/. $build/lib; echo $build >> $build/lib/libranktap.so
    done
    install() { $SOURCE/scripts/install $PWD/prefix $PWD/$1 2>> installs; }
    install a
    (while [ ! -e stop ]; do install b; install a; done) &
    export RANKTAP_SOCKET=$PWD/none RANKTAP_SPOOL_MIB=0 RANKTAP_EXIT_MS=1
    agent=$PWD/prefix/current/lib/libranktap.so failed=0
    for i in $(seq 60); do
      LD_PRELOAD=$agent CUDA_INJECTION64_PATH=$agent $PROGRAM return 10 > out || failed=$((failed + 1))
    done
    touch stop; wait
    echo failed $failed, versions $(ls prefix/versions | wc -l))";
  const SimulatedRun storm({"/bin/bash", "-ec", "cd " + folder + script},
                           {{"LIBRARIES", BuildPath("lib")},
                            {"SOURCE", RANKTAP_SOURCE_DIR},
                            {"PROGRAM", Host("endings")}});
  EXPECT_EQ(storm.output(), "failed 0, versions 2\n");
  EXPECT_EQ(storm.errors(), "");
  std::filesystem::remove_all(folder);
}

class NamespaceTest : public testing::TestWithParam<std::string> {};

TEST_P(NamespaceTest, AProgramInANamespaceOfItsOwnIsRecorded) {
  const std::vector<std::string> command = {
      "/bin/sh", "-c", "exec unshare " + GetParam() + " " + Host("endings") + " return 100"};
  const SimulatedRun bare(command, {});
  if (!bare.exited_with(0)) GTEST_SKIP() << "no namespaces here: " << bare.errors();
  const TracedRun traced(command);
  ExpectSameToTheUser(bare, traced.process());
  EXPECT_EQ(traced.Problems(), "");
  ExpectKernels(traced, 100);
}

INSTANTIATE_TEST_SUITE_P(Namespaces, NamespaceTest,
                         testing::Values("-n", "-m", "-u", "-i", "-pf", "-U -r", "-U -r -n -pf"),
                         CaseName);

// The traces do not fit: the program ends as bare, and the file system holds what verifies.
class SmallFileSystemTest : public testing::TestWithParam<std::string> {};

TEST_P(SmallFileSystemTest, AFullFileSystemHoldsAVerifiedPrefixAndTheProgramDoesNotNotice) {
  std::string folder = testing::TempDir() + "/small.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto mounted = [&](const std::string& script) {
    return SimulatedRun(
        {"/usr/bin/unshare", "-m", "/bin/sh", "-c",
         "mount -t tmpfs -o size=" + GetParam() + " none " + folder + " || exit 77; " + script},
        {});
  };
  if (!mounted("exit 0").exited_with(0)) GTEST_SKIP() << "not allowed to mount a tmpfs";
  const std::string ranktap = BuildPath("bin/ranktap"), run = folder + "/run";
  const SimulatedRun full =
      mounted(ranktap + " run --quiet -o " + run + " -- " + Host("threads") + " 4 4 0 200000; " +
              "echo ended $?; " + ranktap + " verify " + run + "; echo verified $?; " + ranktap +
              " report " + run + " losses > /dev/null; echo reported $?");
  EXPECT_THAT(full.output(), HasSubstr("ended 0")) << full.errors();
  EXPECT_THAT(full.output(), HasSubstr("verified 0")) << full.errors();
  EXPECT_THAT(full.output(), HasSubstr(" declared lost")) << full.errors();
  EXPECT_THAT(full.output(), HasSubstr("reported 0")) << full.errors();
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SmallFileSystemTest, testing::Values("256k", "1m", "4m"), CaseName);

}  // namespace
}  // namespace ranktap::agent_test
