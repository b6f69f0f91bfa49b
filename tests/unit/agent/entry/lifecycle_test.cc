// An agent without entry points, with one made-up source and made-up hooks, which keep the duties
// that the lifecycle gives them. A start is for good, so each test has a process of its own.
#include "agent/entry/lifecycle.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "agent/core/capture_state.h"
#include "agent/core/own_thread.h"
#include "agent/core/writer.h"
#include "agent/entry/confinement.h"
#include "agent/entry/injection.h"
#include "agent/entry/python_forks.h"
#include "agent/sources/source.h"
#include "proto/events.h"

namespace ranktap::agent {
namespace {

std::string g_told;  // to the source
ConfinementDuties g_duties{};
int g_installed = 0;

constexpr Source kSources[] = {{.name = "made up",
                                .finish =
                                    [](uint64_t) {
                                      g_told += Capturing(kCaptureRanges)
                                                    ? "finish while capturing;"
                                                    : "finish;";
                                      fprintf(stderr, "source: %s\n", g_told.c_str());
                                    },
                                .pause = [] { g_told += "pause;"; },
                                .resume = [] { g_told += "resume;"; }}};

}  // namespace

std::span<const Source> AllSources() { return kSources; }
proto::LoadedBy AgentLoadedBy() { return proto::LoadedBy::kPreload; }
void InstallPythonForkHooks(const ConfinementDuties&) {}
void InstallConfinementHooks(const ConfinementDuties& duties) {
  g_duties = duties;
  ++g_installed;
}

namespace {

namespace fs = std::filesystem;

class LifecycleTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    MakeDirectory();
    setenv("RANKTAP_SOCKET", (directory_ / "nobody").c_str(), 1);
    setenv("RANKTAP_SPOOL", directory_.c_str(), 1);
    setenv("RANKTAP_LEVEL", "ranges", 1);
    unsetenv("RANKTAP_DISABLE");
  }
  void TearDown() override {
    fs::remove_all(directory_);
    unsetenv("LIFECYCLE_TEST_DIRECTORY");
  }

  // That of the parent in the process of InAProcess, whose end cleans up nothing.
  void MakeDirectory() {
    constexpr const char* kDirectory = "LIFECYCLE_TEST_DIRECTORY";
    if (getenv(kDirectory) == nullptr) {
      std::string directory = fs::temp_directory_path() / "ranktap-lifecycle-XXXXXX";
      ASSERT_NE(mkdtemp(directory.data()), nullptr);
      setenv(kDirectory, directory.c_str(), 1);
    }
    directory_ = getenv(kDirectory);
  }

  // Runs the body in a new process, which ends by exit() and has said that.
  template <typename Body>
  static void InAProcess(const char* said, Body body) {
    EXPECT_EXIT((body(), std::exit(HasFailure() ? 1 : 0)), testing::ExitedWithCode(0), said);
  }

  // A pause waits 500 ms for our threads; a busy machine may take longer.
  static bool PauseInTime() {
    constexpr int kTries = 60;
    for (int i = 0; i < kTries; ++i) {
      if (g_duties.pause(Pauses::kAlways)) return true;
    }
    return false;
  }

  // Whether a file of the spool has this text.
  bool IsSpooled(const std::string& text) const {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory_)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      if (bytes.find(text) != bytes.npos) return true;
    }
    return false;
  }

  fs::path directory_;
};

TEST_F(LifecycleTest, ADisabledProcessIsOffForGood) {
  setenv("RANKTAP_DISABLE", "1", 1);
  InAProcess("", [&] {
    EXPECT_FALSE(StartOnce());
    unsetenv("RANKTAP_DISABLE");
    EXPECT_FALSE(StartOnce());
    EXPECT_EQ(OwnThreadsRunning(), 0u);
    EXPECT_FALSE(Capturing(kCaptureAlive));
  });
}

TEST_F(LifecycleTest, NothingStartsWhereTheEnvironmentNamesNoSocket) {
  unsetenv("RANKTAP_SOCKET");
  InAProcess("", [&] { EXPECT_FALSE(StartOnce()); });
}

TEST_F(LifecycleTest, AProgramWithFewDescriptorsKeepsThemAll) {
  InAProcess("", [&] {
    const rlimit few{.rlim_cur = 63, .rlim_max = 63};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_FALSE(StartOnce());
    EXPECT_EQ(OwnThreadsRunning(), 0u);
  });
}

TEST_F(LifecycleTest, ThereIsOneStartAndEachLaterEntryLooksForNewModules) {
  InAProcess("", [&] {
    EXPECT_TRUE(StartOnce());
    EXPECT_EQ(OwnThreadsRunning(), 1u);
    EXPECT_TRUE(StartOnce());
    EXPECT_EQ(OwnThreadsRunning(), 1u);
    EXPECT_EQ(g_installed, 2);
    EXPECT_TRUE(Capturing(kCaptureRanges));
  });
}

TEST_F(LifecycleTest, AForkChildIsOffAndItsParentGoesOn) {
  InAProcess("", [&] {
    ASSERT_TRUE(StartOnce());
    const pid_t child = fork();
    if (child == 0) _exit(StartOnce() || Capturing(kCaptureAlive) || InOwnProcess() ? 1 : 0);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(Capturing(kCaptureAlive));
    EXPECT_TRUE(StartOnce());
  });
}

TEST_F(LifecycleTest, OursAreAwayFromAPauseToItsEnd) {
  InAProcess("", [&] {
    ASSERT_TRUE(StartOnce());
    ASSERT_TRUE(PauseInTime());
    EXPECT_EQ(OwnThreadsRunning(), 0u);
    EXPECT_FALSE(g_duties.pause(Pauses::kAlways)) << "by a handler in the midst of it";
    g_duties.resume();
    EXPECT_EQ(OwnThreadsRunning(), 1u);
    EXPECT_TRUE(g_told.starts_with("pause;") && g_told.ends_with("pause;resume;")) << g_told;
    EXPECT_TRUE(Capturing(kCaptureRanges));
  });
}

TEST_F(LifecycleTest, AThreadOfOursThatPyTorchKeepsHoldsUpNoPauseAndTheOthersComeBack) {
  InAProcess("", [&] {
    ASSERT_TRUE(StartOnce());
    static OwnThread kept;
    ASSERT_TRUE(kept.Start({.name = "test",
                            .nice = 0,
                            .stack_bytes = 256 << 10,
                            .body =
                                [](void*) {
                                  for (;;) pause();
                                },
                            .owner = nullptr,
                            .may_be_lost = true}));
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(PauseInTime());
      EXPECT_EQ(OwnThreadsRunning(), 1u);
      g_duties.resume();
      EXPECT_EQ(OwnThreadsRunning(), 2u);
    }
  });
}

TEST_F(LifecycleTest, BesideAThreadOfTheProgramACallOfOneThreadPausesNobody) {
  InAProcess("", [&] {
    ASSERT_TRUE(StartOnce());
    EXPECT_TRUE(g_duties.is_alone());
    std::thread([] {
      EXPECT_FALSE(g_duties.is_alone());
      EXPECT_FALSE(g_duties.pause(Pauses::kIfAlone));
    }).join();
    EXPECT_EQ(OwnThreadsRunning(), 1u);
    EXPECT_EQ(g_told, "");
  });
}

TEST_F(LifecycleTest, AnEndForGoodLeavesNoThreadAndTheSpoolSaysWhy) {
  InAProcess("", [&] {
    ASSERT_TRUE(StartOnce());
    ThreadState::Current()->Emit(proto::RangeEndEvent{.time_ticks = 1, .range = 1});
    g_duties.stop_for_good("a reason of the test");
    EXPECT_EQ(OwnThreadsRunning(), 0u);
    EXPECT_FALSE(Capturing(kCaptureAlive));
    EXPECT_FALSE(StartOnce());
    EXPECT_TRUE(IsSpooled("a reason of the test"));
    EXPECT_EQ(g_told, "finish;");
  });
}

TEST_F(LifecycleTest, AtTheExitASourceFinishesWhileItStillMayRecord) {
  InAProcess("source: finish while capturing;", [&] { ASSERT_TRUE(StartOnce()); });
}

}  // namespace
}  // namespace ranktap::agent
