// A user owns the directories of the own runs, and puts there what a collector that runs as root
// must not follow, wait for or believe.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <fstream>
#include <sstream>

#include "collector/file/owned_file.h"
#include "collector/trace/load/trace_check.h"
#include "collector/trace/load/trace_loader.h"
#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/unit/collector/collector_process.h"
#include "tests/unit/collector/temporary_directory.h"
#include "tests/unit/collector/trace_file.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;
using fakes::FakeAgent;
using ::testing::HasSubstr;

constexpr uid_t kMallory = 65534, kAlice = 65533;
constexpr char kSecret[] = "the secret name of Alice's kernel";
const std::string kToken = "mallorys session";  // 16 bytes

std::string TextOf(const fs::path& path) {
  std::ifstream input(path, std::ios::binary);
  std::stringstream text;
  text << input.rdbuf();
  return text.str();
}

class HostileDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root serves other users";
  }
  std::unique_ptr<CollectorProcess> StartCollector() {
    return std::make_unique<CollectorProcess>(directory_.path(),
                                              CollectorProcess::Setup{.all_users = true});
  }
  // One kernel of that name, acked, by a process of that user.
  int SendKernel(uid_t user, const std::string& session, const std::string& name) {
    return RunChild([&] {
      if (::setuid(user) != 0) return 10;
      FakeAgent agent({.rank = 0});
      agent.hello.set_session(session);
      agent.hello.mutable_process()->add_command_line("program of " + std::to_string(user));
      const v1::Welcome welcome = agent.Join(directory_ / "sockets/collector.sock");
      if (!welcome.refused().empty()) return 11;
      agent.Rewind(welcome);
      proto::KernelEvent kernel{};
      kernel.name = agent.InternText(name);
      const uint32_t writer = agent.AddWriter();
      for (uint64_t i = 0; welcome.positions_size() > 0 && i < welcome.positions(0).next_event();
           ++i) {
        agent.Emit(writer, kernel);
      }
      agent.Emit(writer, kernel);
      agent.FlushWriter(writer,
                        welcome.positions_size() > 0 ? welcome.positions(0).next_event() : 0);
      agent.AwaitAcks();
      return 0;
    });
  }
  fs::path RunOf(uid_t user) const {
    for (const auto& entry : fs::directory_iterator(directory_ / "runs/" + std::to_string(user))) {
      return entry.path();
    }
    return {};
  }
  static fs::path TraceIn(const fs::path& run) {
    for (const auto& entry : fs::directory_iterator(run)) {
      if (entry.path().extension() == ".trace") return entry.path();
    }
    return {};
  }
  // As Mallory: `act` returns whether it worked.
  static void AsMallory(const std::function<bool()>& act) {
    ASSERT_EQ(RunChild([&] { return ::setuid(kMallory) == 0 && act() ? 0 : 1; }), 0);
  }

  TemporaryDirectory directory_;
};

TEST_F(HostileDirectoryTest, LinksToAnotherUsersRunBringNothingOfItOver) {
  auto collector = StartCollector();
  ASSERT_EQ(SendKernel(kMallory, kToken, "mine"), 0);
  ASSERT_EQ(SendKernel(kAlice, "the one of Alice", kSecret), 0);
  ASSERT_EQ(collector->Stop(), 0);
  collector = StartCollector();  // which knows whose file is where
  const fs::path mine = RunOf(kMallory), hers = RunOf(kAlice);
  const fs::path my_trace = TraceIn(mine), her_trace = TraceIn(hers);
  AsMallory([&] {
    return ::unlink((mine / "run.json").c_str()) == 0 && ::unlink(my_trace.c_str()) == 0 &&
           ::symlink((hers / "run.json").c_str(), (mine / "run.json").c_str()) == 0 &&
           ::symlink(her_trace.c_str(), my_trace.c_str()) == 0;
  });
  ASSERT_EQ(SendKernel(kMallory, kToken, "mine"), 0);
  ASSERT_EQ(collector->Stop(), 0);
  for (const auto& entry : fs::recursive_directory_iterator(directory_ / "runs/65534")) {
    if (entry.is_symlink() || !entry.is_regular_file()) continue;
    EXPECT_THAT(TextOf(entry.path()), ::testing::Not(HasSubstr("program of 65533")));
    if (entry.path().extension() != ".trace") continue;
    const auto trace = LoadTrace(entry.path());
    ASSERT_TRUE(trace.ok()) << trace.message();
    for (uint32_t id = 0; id < trace->dictionary.strings(); ++id) {
      EXPECT_NE(trace->dictionary.String(id), kSecret) << entry.path();
    }
  }
}

TEST_F(HostileDirectoryTest, AFifoInPlaceOfAFileStopsNobody) {
  auto collector = StartCollector();
  ASSERT_EQ(SendKernel(kMallory, kToken, "mine"), 0);
  ASSERT_EQ(collector->Stop(), 0);
  collector = StartCollector();
  const fs::path mine = RunOf(kMallory);
  AsMallory([&] {
    return ::unlink((mine / "run.json").c_str()) == 0 &&
           ::mkfifo((mine / "run.json").c_str(), 0600) == 0;
  });
  EXPECT_EQ(SendKernel(kMallory, kToken, "mine"), 0);
  EXPECT_EQ(SendKernel(kAlice, "the one of Alice", kSecret), 0);
  // A collector that waits for the FIFO would not hear the end of its pipe either.
  const FileDescriptor writer(::open((mine / "run.json").c_str(), O_WRONLY | O_NONBLOCK));
  EXPECT_EQ(collector->Stop(), 0);
}

TEST_F(HostileDirectoryTest, WhatIsFoundAtStartIsItsUsersOwnFileOrLeftAlone) {
  const std::string run = directory_ / "runs/65534/run-1";
  fs::create_directories(run);
  ASSERT_EQ(::chmod((directory_ / "runs/65534").c_str(), 0711), 0);
  TraceFileBuilder(directory_ / "other.trace.part").EndBlock();
  ASSERT_EQ(::chown((directory_ / "other.trace.part").c_str(), kAlice, 0), 0);
  const std::string before = TextOf(directory_ / "other.trace.part");
  ASSERT_EQ(::link((directory_ / "other.trace.part").c_str(), (run + "/a.trace.part").c_str()), 0);
  ASSERT_EQ(::symlink((directory_ / "other.trace.part").c_str(), (run + "/b.trace.part").c_str()),
            0);
  ASSERT_EQ(::mkfifo((run + "/c.trace.part").c_str(), 0600), 0);
  ASSERT_EQ(::chown(run.c_str(), kMallory, 0), 0);
  const Result<RunRegistry> registry = RunRegistry::Open(directory_ / "runs", {});
  ASSERT_TRUE(registry.ok()) << registry.message();
  EXPECT_THAT(registry->sealed(), ::testing::IsEmpty());
  EXPECT_THAT(registry->problems(), ::testing::SizeIs(3));
  EXPECT_EQ(TextOf(directory_ / "other.trace.part"), before);
}

TEST(OwnedFileTest, NamesLeadOutOfNoDirectory) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "file") << "text";
  fs::create_directory(directory / "sub");
  const FileDescriptor sub(::open((directory / "sub").c_str(), O_RDONLY | O_DIRECTORY));
  for (const char* const name : {"../file", "..", "", "/etc/passwd"}) {
    EXPECT_FALSE(OpenOwnedFile(sub.get(), name, ::geteuid(), name).ok()) << name;
  }
  const FileDescriptor top(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
  EXPECT_TRUE(OpenOwnedFile(top.get(), "file", ::geteuid(), "file").ok());
  EXPECT_FALSE(OpenOwnedFile(top.get(), "file", ::geteuid() + 1, "file").ok());
  EXPECT_FALSE(OpenOwnedFile(top.get(), "sub", ::geteuid(), "sub").ok());
  EXPECT_FALSE(ReadOwnedFile(top.get(), "file", ::geteuid(), "file", 3).ok());
  EXPECT_EQ(*ReadOwnedFile(top.get(), "file", ::geteuid(), "file", 4), "text");
}

// 300 MiB of frames in 50 KB: a start, or a process that comes back, would read them every time.
TEST(LongTailTest, AFileWithTooMuchBehindItsCheckpointIsLeftAlone) {
  const TemporaryDirectory directory;
  const std::string run = directory / ("runs/" + std::to_string(::geteuid()) + "/run-1");
  fs::create_directories(run);
  {
    TraceFileBuilder file(run + "/rank-00000.trace.part");
    for (int i = 0; i < 300; ++i) {
      file.Add({.type = static_cast<proto::FrameType>(200)},
               std::string(proto::kMaxPayloadBytes, '\0'));
      file.EndBlock();
    }
  }
  const Result<RunRegistry> registry = RunRegistry::Open(directory / "runs", {});
  ASSERT_TRUE(registry.ok()) << registry.message();
  ASSERT_EQ(registry->problems().size(), 1u);
  EXPECT_THAT(registry->problems()[0], HasSubstr("too much behind its last checkpoint"));
  EXPECT_TRUE(fs::exists(run + "/rank-00000.trace.part"));
}

// A kill cuts a file anywhere, in its header too.
TEST(CutOffPartTest, IsSealedWhereverItsBeginningEnds) {
  const TemporaryDirectory directory;
  TraceFileBuilder(directory / "whole.trace").EndBlock();
  const std::string whole = TextOf(directory / "whole.trace");
  const std::string run = directory / ("runs/" + std::to_string(::geteuid()) + "/run-1");
  fs::create_directories(run);
  const std::vector<size_t> cuts = {0, 1, 63, 64, 65, 127, 128, 140};
  for (const size_t size : cuts) {
    std::ofstream(run + "/rank-" + std::to_string(size) + ".trace.part") << whole.substr(0, size);
  }
  const Result<RunRegistry> registry = RunRegistry::Open(directory / "runs", {});
  ASSERT_TRUE(registry.ok()) << registry.message();
  EXPECT_THAT(registry->problems(), ::testing::IsEmpty());
  EXPECT_THAT(registry->sealed(), ::testing::SizeIs(cuts.size()));
  for (const std::string& path : registry->sealed()) {
    const Result<TraceCheck> check = CheckTrace(path);
    ASSERT_TRUE(check.ok()) << check.message();
    EXPECT_TRUE(check->ok()) << path << ": " << check->problems[0].what;
    EXPECT_THAT(check->ending.detail(), HasSubstr("killed before the first event"));
  }
}

}  // namespace
}  // namespace ranktap::collector
