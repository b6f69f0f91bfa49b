// No collector, a dead one, a late one: the agent's frames go into the spool, and from there to the
// next collector, each event once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "collector/ingest/collector.h"
#include "collector/trace/load/run_reader.h"
#include "proto/frame.h"
#include "proto/spool.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/hello.pb.h"
#include "tests/integration/agent/traced_run.h"

namespace ranktap::agent_test {
namespace {

namespace fs = std::filesystem;
using proto::FrameType;

class Scratch {
 public:
  Scratch() {
    std::string pattern = testing::TempDir() + "/spool.XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Scratch() { fs::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Spooled {
  struct Frame {
    uint64_t first, end;
  };
  v1::Hello hello;
  std::map<uint32_t, std::vector<Frame>> events;  // by writer, in order
  std::map<uint32_t, v1::Account> accounts;
  bool said_goodbye = false;
  uint64_t frames = 0, bytes = 0, torn = 0;
};

Spooled ReadSpool(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  const std::string content = text.str();
  Spooled spooled{.bytes = content.size()};
  std::span<const std::byte> rest = std::as_bytes(std::span(content));
  while (!rest.empty()) {
    const proto::FrameView frame = proto::DecodeFrame(rest);
    if (frame.status != proto::FrameStatus::kComplete) break;
    rest = rest.subspan(frame.consumed);
    const auto parse = [&frame](auto* message) {
      ASSERT_TRUE(
          message->ParseFromArray(frame.payload.data(), static_cast<int>(frame.payload.size())));
    };
    if (spooled.frames++ == 0) {
      EXPECT_EQ(frame.header.type, FrameType::kHello);
    }
    if (frame.header.type == FrameType::kHello) parse(&spooled.hello);
    if (frame.header.type == FrameType::kGoodbye) spooled.said_goodbye = true;
    if (frame.header.type == FrameType::kEvents) {
      spooled.events[frame.header.writer].push_back(
          {frame.header.first_event, frame.header.first_event + frame.header.events});
    }
    if (frame.header.type == FrameType::kAccounts) {
      v1::Accounts accounts;
      parse(&accounts);
      for (const v1::Account& account : accounts.accounts()) {
        spooled.accounts[account.writer()] = account;
      }
    }
  }
  spooled.torn = rest.size();
  return spooled;
}

std::vector<std::string> SpoolsIn(const std::string& folder) {
  std::vector<std::string> paths;
  if (!fs::exists(folder)) return paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  return paths;
}

uint64_t Total(const v1::Account& account) {
  uint64_t lost = 0;
  for (const uint64_t count : account.lost()) lost += count;
  return lost;
}

Environment Alone(const Scratch& scratch, const Environment& more = {}) {
  const std::string agent = BuildPath("lib/libranktap.so");
  Environment environment = {{"LD_PRELOAD", agent},
                             {"CUDA_INJECTION64_PATH", agent},
                             {"NVTX_INJECTION64_PATH", agent},
                             {"RANKTAP_LEVEL", "kernels"},
                             {"RANKTAP_SOCKET", scratch / "socket"},
                             {"RANKTAP_SPOOL", scratch / "spool"},
                             {"RANKTAP_EXIT_MS", "10000"}};
  environment.insert(environment.end(), more.begin(), more.end());
  return environment;
}

// A collector of this process at a path of the test's choice.
class LateCollector {
 public:
  LateCollector(const std::string& socket, const std::string& run) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
    collector::FileDescriptor listener(
        ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener.get(), 64), 0);
    collector::ServerOptions options;
    options.collector_id = "0123456789abcdef";
    options.collector_version = "test";
    options.owner = ::geteuid();
    options.level = v1::LEVEL_KERNELS;
    collector::RunInfo info;
    info.run = "test";
    info.command = {"test"};
    collector_ = std::make_unique<collector::Collector>(
        std::move(listener), std::move(*collector::RunDirectory::Create(run, "x")), info, options);
  }
  void Finish() {
    (void)collector_->Finish(10'000'000'000, [](collector::RunInfo*) {});
  }

 private:
  std::unique_ptr<collector::Collector> collector_;
};

// True as soon as the condition is; false after a minute.
bool WaitUntil(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(SpoolTest, WithoutACollectorEverythingIsInOneFileOfTheUsersOwnWithExactAccounts) {
  const Scratch scratch;
  const SimulatedRun bare({Host("endings"), "exit", "50"}, {});
  const SimulatedRun alone({Host("endings"), "exit", "50"}, Alone(scratch));
  EXPECT_EQ(alone.status(), bare.status());
  EXPECT_EQ(alone.output(), bare.output());
  EXPECT_EQ(alone.errors(), bare.errors());
  const std::vector<std::string> files = SpoolsIn(scratch / "spool");
  ASSERT_EQ(files.size(), 1u);
  struct stat status;
  ASSERT_EQ(stat((scratch / "spool").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(files[0].c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);

  const Spooled spooled = ReadSpool(files[0]);
  EXPECT_EQ(spooled.torn, 0u);
  EXPECT_TRUE(spooled.said_goodbye);
  EXPECT_EQ(spooled.hello.session().size(), 16u);
  uint64_t events = 0;
  for (const auto& [writer, frames] : spooled.events) {
    uint64_t next = 0;
    for (const Spooled::Frame& frame : frames) {
      EXPECT_EQ(frame.first, next) << "writer " << writer;
      next = frame.end;
    }
    ASSERT_TRUE(spooled.accounts.contains(writer));
    const v1::Account& account = spooled.accounts.at(writer);
    EXPECT_EQ(account.committed(), next);
    EXPECT_EQ(account.produced(), next + Total(account));
    events += next;
  }
  // 50 ranges are 100 events, and the open one; 50 launches and their kernels.
  EXPECT_GE(events, 201u);
}

// Each so-manyth allocation of the agent's (refuse_memory.c), with no collector to fall back on.
TEST(SpoolTest, MemoryRefusedWhileItIsWrittenCostsNoEventAndNoAccount) {
  const SimulatedRun bare({Host("endings"), "exit", "50"}, {});
  for (const int first : {90, 105, 120, 140, 160, 200}) {
    SCOPED_TRACE(first);
    const Scratch scratch;
    const Environment more = {{"LD_PRELOAD", BuildPath("workloads/refuse_memory.so") + ":" +
                                                 BuildPath("lib/libranktap.so")},
                              {"REFUSE_PROGRAM", "endings"},
                              {"REFUSE_FIRST", std::to_string(first)}};
    const SimulatedRun alone({Host("endings"), "exit", "50"}, Alone(scratch, more));
    EXPECT_EQ(alone.status(), bare.status());
    EXPECT_EQ(alone.output(), bare.output());
    EXPECT_EQ(alone.errors(), bare.errors());
    const std::vector<std::string> files = SpoolsIn(scratch / "spool");
    ASSERT_EQ(files.size(), 1u);
    const Spooled spooled = ReadSpool(files[0]);
    EXPECT_EQ(spooled.torn, 0u);
    EXPECT_TRUE(spooled.said_goodbye);
    uint64_t events = 0;
    for (const auto& [writer, account] : spooled.accounts) {
      EXPECT_EQ(account.produced(), account.committed() + Total(account)) << "writer " << writer;
      const auto frames = spooled.events.find(writer);
      const uint64_t stored = frames == spooled.events.end() ? 0 : frames->second.back().end;
      EXPECT_EQ(account.committed(), stored) << "writer " << writer;
      events += stored;
    }
    EXPECT_GE(events, 201u);
  }
}

TEST(SpoolTest, TheFileStopsAtItsCapAndTheRestIsCounted) {
  constexpr uint64_t kRanges = 300'000;
  const Scratch scratch;
  const SimulatedRun alone({Host("threads"), "4", "4", "0", std::to_string(kRanges)},
                           Alone(scratch, {{"RANKTAP_SPOOL_MIB", "1"}}));
  ASSERT_TRUE(alone.exited_with(0)) << alone.errors();
  const std::vector<std::string> files = SpoolsIn(scratch / "spool");
  ASSERT_EQ(files.size(), 1u);
  const Spooled spooled = ReadSpool(files[0]);
  EXPECT_LE(spooled.bytes, 1u << 20);
  EXPECT_TRUE(spooled.said_goodbye);
  uint64_t produced = 0, lost = 0, committed = 0, stored = 0;
  for (const auto& [writer, account] : spooled.accounts) {
    produced += account.produced();
    committed += account.committed();
    lost += Total(account);
    EXPECT_EQ(account.produced(), account.committed() + Total(account)) << "writer " << writer;
    const auto frames = spooled.events.find(writer);
    if (frames != spooled.events.end()) stored += frames->second.back().end;
  }
  EXPECT_GE(produced, 4 * 2 * kRanges);
  EXPECT_EQ(produced, committed + lost);
  EXPECT_LT(stored, committed + lost);
}

TEST(SpoolTest, ADirectoryThatOthersMayEnterIsNotUsed) {
  const Scratch scratch;
  fs::create_directory(scratch / "spool");
  fs::permissions(scratch / "spool", fs::perms::all);
  const SimulatedRun alone({Host("endings"), "exit", "50"}, Alone(scratch));
  EXPECT_TRUE(alone.exited_with(3));
  EXPECT_TRUE(SpoolsIn(scratch / "spool").empty());
}

TEST(SpoolTest, ALateCollectorGetsEveryEventOnceAndTheFileGoes) {
  constexpr int kLaunches = 4000, kPerSecond = 1000;
  const Scratch scratch;
  std::unique_ptr<LateCollector> collector;
  std::thread starts_late([&] {
    EXPECT_TRUE(WaitUntil([&] { return !SpoolsIn(scratch / "spool").empty(); }));
    collector = std::make_unique<LateCollector>(scratch / "socket", scratch / "run");
  });
  const SimulatedRun process(
      {Host("launches"), std::to_string(kLaunches), std::to_string(kPerSecond)}, Alone(scratch));
  starts_late.join();
  ASSERT_TRUE(process.exited_with(0)) << process.errors();
  collector->Finish();
  const collector::Result<collector::Run> run = collector::LoadRun(scratch / "run");
  const std::vector<std::string> left = SpoolsIn(scratch / "spool");
  if (!run) {
    // It came when the process was already gone: the file has it all.
    ASSERT_EQ(left.size(), 1u) << run.message();
    return;
  }
  ASSERT_EQ(run->traces.size(), 1u);
  const collector::Trace& trace = run->traces[0];
  EXPECT_EQ(trace.kernels.size(), size_t{kLaunches});
  EXPECT_EQ(trace.ranges.size(), 1u);
  const Sums sums = SumWriters(trace);
  EXPECT_EQ(sums.lost, 0u);
  EXPECT_EQ(sums.produced, sums.stored);
  const collector::Result<collector::RunCheck> check = collector::CheckRun(scratch / "run");
  ASSERT_TRUE(check.ok()) << check.message();
  EXPECT_TRUE(check->ok()) << check->traces[0].problems[0].what;
  EXPECT_TRUE(left.empty()) << left[0];
}

TEST(SpoolTest, AfterTheCollectorsDeathTheFileGoesOnWhereTheTraceEnds) {
  const Scratch scratch;
  const pid_t collector = fork();
  if (collector == 0) {
    LateCollector serving(scratch / "socket", scratch / "run");
    for (;;) pause();
  }
  std::thread killer([&] {
    const auto stored = [&] {
      for (const std::string& file : SpoolsIn(scratch / "run")) {
        if (file.ends_with(".part") && fs::file_size(file) > 4096) return true;
      }
      return false;
    };
    EXPECT_TRUE(WaitUntil(stored));
    kill(collector, SIGKILL);
  });
  const SimulatedRun process({Host("launches"), "4000", "1000"}, Alone(scratch));
  killer.join();
  waitpid(collector, nullptr, 0);
  ASSERT_TRUE(process.exited_with(0)) << process.errors();
  const collector::Result<collector::RunCheck> check = collector::CheckRun(scratch / "run");
  ASSERT_TRUE(check.ok()) << check.message();
  ASSERT_EQ(check->traces.size(), 1u);
  const std::vector<std::string> files = SpoolsIn(scratch / "spool");
  ASSERT_EQ(files.size(), 1u);
  const Spooled spooled = ReadSpool(files[0]);
  ASSERT_TRUE(spooled.said_goodbye);
  for (const auto& [writer, account] : spooled.accounts) {
    const auto in_trace = check->traces[0].writers.find(writer);
    const uint64_t stored =
        in_trace == check->traces[0].writers.end() ? 0 : in_trace->second.next_event;
    uint64_t next = stored;
    const auto frames = spooled.events.find(writer);
    if (frames != spooled.events.end()) {
      EXPECT_LE(frames->second.front().first, stored) << "events between trace and spool are gone";
      for (const Spooled::Frame& frame : frames->second) {
        if (frame.end <= stored) continue;
        EXPECT_GE(frame.first, stored) << "a frame that is stored in part";
        next = frame.end;
      }
    }
    EXPECT_EQ(next, account.committed()) << "writer " << writer;
    EXPECT_EQ(account.produced(), account.committed() + Total(account));
  }
}

}  // namespace
}  // namespace ranktap::agent_test
