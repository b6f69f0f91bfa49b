// Programs that no agent fits into, and agents that cannot be loaded: stdout and exit status are
// as bare, and stderr has one line, of `ranktap run`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>

#include "tests/integration/hostile/differential_run.h"
#include "tests/integration/standin/simulated_run.h"

namespace ranktap::hostile_test {
namespace {

namespace fs = std::filesystem;
using standin_test::BuildPath;
using testing::HasSubstr;
using testing::StartsWith;

constexpr double kPatienceS = 30;

std::string Plain(const std::string& kind) {
  return BuildPath("workloads/hostile_plain") + (kind.empty() ? "" : "_" + kind);
}

void ExpectBareButForOneLine(const Seen& bare, const Seen& traced, const std::string& line) {
  EXPECT_TRUE(traced.ended);
  EXPECT_EQ(traced.status, bare.status);
  EXPECT_EQ(traced.output, bare.output);
  EXPECT_THAT(traced.errors, StartsWith("ranktap: "));
  EXPECT_THAT(traced.errors, HasSubstr(line));
  EXPECT_EQ(std::ranges::count(traced.errors, '\n'), 1) << traced.errors;
}

struct Foreign {
  std::string kind;
  std::string line;      // of `ranktap run`
  std::string in_shell;  // where it is not the command itself; empty: none
};

void PrintTo(const Foreign& what, std::ostream* out) { *out << what.kind; }

const Foreign kForeign[] = {
    {"musl", "musl", "its C library is not glibc"},
    {"static", "statically linked", "linked statically"},
    {"static_pie", "statically linked", "linked statically"},
    {"32", "32 bits", ""},
};

class ForeignTest : public testing::TestWithParam<Foreign> {};

TEST_P(ForeignTest, RunsAsBareAndRunSaysWhyItIsNotTraced) {
  const std::string program = Plain(GetParam().kind);
  if (!fs::exists(program)) GTEST_SKIP() << "not built: " << program << " (scripts/setup)";
  const Seen bare = Watch({program, "5"}, {}, kPatienceS);
  if (bare.status != 5) GTEST_SKIP() << "does not run here: " << bare.errors;
  for (const LoadedBy loaded_by : {LoadedBy::kPreload, LoadedBy::kVariables}) {
    SCOPED_TRACE(loaded_by == LoadedBy::kPreload ? "preload" : "variables");
    const Traced traced = Trace({program, "5"}, "ranges", loaded_by, kPatienceS);
    ExpectBareButForOneLine(bare, traced.seen, GetParam().line);
    EXPECT_EQ(traced.traces, 0u);
    const Traced in_shell =
        Trace({"/bin/sh", "-c", program + " 5; exit $?"}, "ranges", loaded_by, kPatienceS);
    if (GetParam().in_shell.empty()) {
      EXPECT_EQ(Differences(bare, in_shell.seen, kPatienceS), "");
    } else {
      ExpectBareButForOneLine(bare, in_shell.seen, GetParam().in_shell);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, ForeignTest, testing::ValuesIn(kForeign),
                         [](const auto& info) { return "Of_" + info.param.kind; });

// The kernel raises nothing where the ids stay as they are.
TEST(SetuidTest, AProgramThatIsSetuidToItsOwnUserIsTracedAndNothingIsSaid) {
  const std::string program = testing::TempDir() + "/own_setuid";
  fs::copy(Plain(""), program, fs::copy_options::overwrite_existing);
  fs::permissions(program, fs::perms::set_uid, fs::perm_options::add);
  const Seen bare = Watch({program, "5"}, {}, kPatienceS);
  const Traced traced = Trace({program, "5"}, "ranges", LoadedBy::kPreload, kPatienceS);
  EXPECT_EQ(Differences(bare, traced.seen, kPatienceS), "");
  EXPECT_EQ(traced.traces, 1u);
  fs::remove(program);
}

TEST(NestedRunTest, ARunInsideARunKnowsItsOwnVariables) {
  const Command command = {BuildPath("bin/ranktap"), "run", "--", Plain(""), "5"};
  const Traced traced = Trace(command, "ranges", LoadedBy::kPreload, kPatienceS);
  EXPECT_EQ(traced.seen.status, 5);
  EXPECT_EQ(traced.seen.errors, "");
  EXPECT_EQ(traced.traces, 1u);
}

// A copy of bin/ and lib/ that can be spoilt.
class SpoiltBuild {
 public:
  SpoiltBuild() {
    std::string pattern = testing::TempDir() + "/spoilt.XXXXXX";
    folder_ = mkdtemp(pattern.data());
    fs::create_directory(folder_ + "/bin");
    fs::copy(BuildPath("bin/ranktap"), folder_ + "/bin/ranktap");
    fs::copy(BuildPath("lib"), folder_ + "/lib",
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }
  ~SpoiltBuild() { fs::remove_all(folder_); }
  SpoiltBuild(const SpoiltBuild&) = delete;
  SpoiltBuild& operator=(const SpoiltBuild&) = delete;

  std::string Path(const std::string& relative) const { return folder_ + "/" + relative; }

  // `wrapper`: a shell script that runs its arguments.
  void ExpectOneLine(const std::string& line, const std::string& wrapper = "exec \"$@\"") const {
    const Command command = {Plain(""), "5"};
    const Seen bare = Watch(command, {}, kPatienceS);
    for (const std::string loaded_by : {"", "--no-preload"}) {
      SCOPED_TRACE("run " + loaded_by);
      Command traced_command = {"/bin/sh", "-c", wrapper, "sh", Path("bin/ranktap"), "run"};
      if (!loaded_by.empty()) traced_command.push_back(loaded_by);
      traced_command.insert(traced_command.end(), {"--quiet", "-o", Path("run"), "--"});
      traced_command.insert(traced_command.end(), command.begin(), command.end());
      const Seen traced = Watch(traced_command, {}, kPatienceS);
      ExpectBareButForOneLine(bare, traced, line);
      fs::remove_all(Path("run"));
    }
  }

 private:
  std::string folder_;
};

TEST(SpoiltBuildTest, AMissingLibraryIsSaid) {
  const SpoiltBuild build;
  fs::remove(build.Path("lib/libranktap_agent.so"));
  build.ExpectOneLine("libranktap_agent.so is missing");
  fs::remove(build.Path("lib/libranktap.so"));
  build.ExpectOneLine("libranktap.so is missing");
}

TEST(SpoiltBuildTest, ALibraryForAnotherProcessorIsSaid) {
  const SpoiltBuild build;
  std::fstream agent(build.Path("lib/libranktap_agent.so"),
                     std::ios::binary | std::ios::in | std::ios::out);
  agent.seekp(18);    // e_machine
  agent.put('\xb7');  // EM_AARCH64
  agent.close();
  build.ExpectOneLine("not a library for this processor");
}

TEST(SpoiltBuildTest, AnAgentThatNeedsANewerGlibcIsSaid) {
  const SpoiltBuild build;
  const std::string path = build.Path("lib/libranktap_agent.so");
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string old("GLIBC_2.17\0", 11);
  const size_t at = bytes.find(old);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, old.size(), std::string("GLIBC_2.99\0", 11));
  std::ofstream(path, std::ios::binary) << bytes;
  build.ExpectOneLine("GLIBC_2.99");
}

TEST(SpoiltBuildTest, AFileSystemThatForbidsExecutionIsSaid) {
  const SpoiltBuild build;
  const std::string lib = build.Path("lib");
  // In a mount namespace of its own.
  const std::string mount = "cp -r " + lib + " " + lib + "$$ && mount -t tmpfs -o noexec none " +
                            lib + " && cp -r " + lib + "$$/. " + lib;
  if (Watch({"/usr/bin/unshare", "-m", "/bin/sh", "-c", mount}, {}, kPatienceS).status != 0) {
    GTEST_SKIP() << "not allowed to mount a tmpfs";
  }
  build.ExpectOneLine("mounted noexec",
                      "exec unshare -m /bin/sh -c '" + mount + " && exec \"$@\"' sh \"$@\"");
}

}  // namespace
}  // namespace ranktap::hostile_test
