// What the sampler reads of /proc: texts as the kernel writes them, and this process's own.
#include "agent/sources/samples/thread_readings.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "agent/sources/samples/host_readings.h"
#include "agent/sources/samples/read_files.h"

namespace ranktap::agent::samples {
namespace {

TEST(ThreadReadings, AFieldOfStatIsFoundBehindANameWithBracketsAndBlanks) {
  std::string stat = "77 (a) R 2 (b) S";
  for (int field = 4; field <= 52; ++field) stat += " " + std::to_string(1000 + field);
  ThreadCounts counts;
  ParseStat(stat, &counts);
  EXPECT_EQ(counts.major_faults, 1012u);
  EXPECT_EQ(counts.cpu, 1039u);
}

TEST(ThreadReadings, AStatThatIsCutTellsNoMoreThanItHas) {
  ThreadCounts counts;
  for (const char* text : {"", "77 (a", "77 (a) ", "77 (a) S 1 2"}) ParseStat(text, &counts);
  EXPECT_EQ(counts.major_faults, 0u);
  EXPECT_EQ(counts.cpu, proto::kUnknownCpu);
}

TEST(ThreadReadings, BytesAreThoseOfStorageAndSwitchesAreToldApart) {
  ThreadCounts counts;
  ParseIo("rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\n", &counts);
  EXPECT_EQ(counts.read_bytes, 4096u);
  EXPECT_EQ(counts.written_bytes, 8192u);
  ParseStatus("Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n", &counts);
  EXPECT_EQ(counts.voluntary, 5u);
  EXPECT_EQ(counts.forced, 7u);
}

TEST(ReadFiles, OfACallThatReadsTheDescriptorIsKnown) {
  const std::string read = std::to_string(SYS_read), write = std::to_string(SYS_write);
  EXPECT_EQ(ReadDescriptorIn(read + " 0xb 0x7ffd1 0x1000 0x0 0x0 0x0 0x7ffd 0x7f01\n"), 11);
  EXPECT_EQ(ReadDescriptorIn(write + " 0xb 0x7ffd1 0x1000 0x0 0x0 0x0 0x7ffd 0x7f01\n"), -1);
  for (const std::string text : {"running\n", "-1 0x7ffd 0x7f01\n", "", read.c_str(), "0x", " "}) {
    EXPECT_EQ(ReadDescriptorIn(text), -1) << text;
  }
}

// The reader of a pipe is in such a call for certain; that has no path.
TEST(ReadFiles, AThreadThatReadsAPipeReadsNoFile) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<pid_t> reader = 0;
  std::thread thread([&] {
    reader = gettid();
    char byte;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
  });
  while (reader == 0) std::this_thread::yield();
  PathBuffer buffer;
  EXPECT_EQ(FileReadBy(0, reader, &buffer), "");
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  thread.join();
  close(ends[0]);
  close(ends[1]);
}

TEST(ReadFiles, AChildThatReadsAFifoReadsAFileWithAPath) {
  const std::string path = testing::TempDir() + "read_files_fifo_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int writer = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    const int reader = open(path.c_str(), O_RDONLY);
    _exit(read(reader, &byte, 1) == 1 ? 0 : 1);
  }
  PathBuffer buffer;
  // The child comes to its read some time, or the test hangs until its limit.
  while (FileReadBy(child, child, &buffer).empty()) std::this_thread::yield();
  EXPECT_EQ(FileReadBy(child, child, &buffer), path);
  ASSERT_EQ(write(writer, "x", 1), 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(FileReadBy(child, child, &buffer), "");  // it is gone
  close(writer);
  unlink(path.c_str());
}

int OpenDescriptors() {
  int open = 0;
  for (int fd = 0; fd < 1024; ++fd) open += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return open;
}

TEST(ThreadReadings, ItReadsOwnThreadsAndGivesTheDescriptorsOfEndedOnesBack) {
  ThreadReadings readings;
  ThreadCounts counts;
  const int before = OpenDescriptors();
  std::thread([&readings, &counts] {
    readings.BeginRound();
    EXPECT_TRUE(readings.Read(gettid(), &counts));
    readings.EndRound();
  }).join();
  EXPECT_NE(counts.cpu, proto::kUnknownCpu);
  EXPECT_GT(OpenDescriptors(), before);
  readings.BeginRound();
  readings.EndRound();
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(ThreadReadings, NoLowDescriptorIsTakenWhereTheLimitAllowsNoHighOne) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit low = {.rlim_cur = 256, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const int before = OpenDescriptors();
  ThreadReadings readings;
  ThreadCounts counts;
  readings.BeginRound();
  (void)readings.Read(getpid(), &counts);
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_NE(readings.lacks() & proto::kLacksQueue, 0u);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(ThreadReadings, ThreadsThatPythonDoesNotKnowAreCountedTogether) {
  ThreadReadings readings;
  ThreadCounts counts;
  readings.BeginRound();
  ASSERT_TRUE(readings.Read(getpid(), &counts));
  std::thread([&readings] {
    const ThreadReadings::Others others = readings.ReadOthers();
    EXPECT_GE(others.threads, 2u);  // the main thread is known, this one asks
    EXPECT_EQ(others.read, others.threads - 2);
  }).join();
}

TEST(HostReadings, TheCpusOfAThreadAreThoseThatItIsAllowed) {
  const CpuList list = CpusOf(getpid());
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  EXPECT_EQ(list.count, static_cast<uint64_t>(CPU_COUNT(&set)));
  EXPECT_NE(list.text[0], '\0');
}

}  // namespace
}  // namespace ranktap::agent::samples
