// A thread of ours, as it finds itself.
#include "agent/core/own_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <semaphore>
#include <string>
#include <vector>

#include "agent/core/host_clock.h"

namespace ranktap::agent {
namespace {

constexpr size_t kStackBytes = 512 << 10;
// glibc's own (cancellation, setuid) are never blocked, and the kernel blocks neither kill nor
// stop.
constexpr int kFirstOfGlibc = 32;
constexpr int kLastOfGlibc = 33;

std::vector<int> OpenSignals() {
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  std::vector<int> open;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    if (signal >= kFirstOfGlibc && signal <= kLastOfGlibc) continue;
    if (sigismember(&blocked, signal) == 0) open.push_back(signal);
  }
  return open;
}

struct Seen {
  std::string name;
  std::vector<int> open_signals;
  int detach_state = -1;
  size_t stack_bytes = 0;
  int nice = 0;
  std::binary_semaphore done{0};
};

void LookAround(void* seen_by_it) {
  auto& seen = *static_cast<Seen*>(seen_by_it);
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  seen.name = name.data();
  seen.open_signals = OpenSignals();
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getdetachstate(&attributes, &seen.detach_state);
  pthread_attr_getstacksize(&attributes, &seen.stack_bytes);
  pthread_attr_destroy(&attributes);
  seen.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)));
  seen.done.release();
}

struct Started {
  OwnThread thread;
  Seen seen;
};

// What a thread sees of itself. Kept for ever, as nobody can wait for the end of a detached thread.
const Seen& SeenByAThread(OwnThread::Setup setup) {
  static auto& kept = *new std::deque<Started>;
  Started& started = kept.emplace_back();
  setup.body = &LookAround;
  setup.owner = &started.seen;
  EXPECT_TRUE(started.thread.Start(setup));
  started.seen.done.acquire();
  return started.seen;
}

const OwnThread::Setup kSetup{.name = "ranktap-test",
                              .nice = 7,
                              .stack_bytes = kStackBytes,
                              .body = nullptr,
                              .owner = nullptr};

TEST(OwnThreadTest, BlocksEverySignal) {
  EXPECT_THAT(SeenByAThread(kSetup).open_signals, ::testing::IsEmpty());
}

TEST(OwnThreadTest, LeavesTheStartingThreadsSignalsAsTheyWere) {
  const std::vector<int> before = OpenSignals();
  ASSERT_THAT(before, ::testing::Contains(SIGUSR1));
  (void)SeenByAThread(kSetup);
  EXPECT_EQ(OpenSignals(), before);
}

TEST(OwnThreadTest, HasTheNameThatWasAskedFor) {
  EXPECT_EQ(SeenByAThread(kSetup).name, "ranktap-test");
}

TEST(OwnThreadTest, IsCountedUntilItReturnsAndItsEndCanBeWaitedFor) {
  static std::binary_semaphore may_end{0};
  static OwnThread thread;
  OwnThread::Setup setup = kSetup;
  setup.body = [](void*) { may_end.acquire(); };
  constexpr uint64_t kSecond = 1'000'000'000;
  ASSERT_TRUE(WaitForOwnThreadsEnd(ClockNs(CLOCK_MONOTONIC) + 10 * kSecond));
  ASSERT_TRUE(thread.Start(setup));
  EXPECT_EQ(OwnThreadsRunning(), 1u);
  EXPECT_FALSE(WaitForOwnThreadsEnd(ClockNs(CLOCK_MONOTONIC) + kSecond / 100));
  may_end.release();
  EXPECT_TRUE(WaitForOwnThreadsEnd(ClockNs(CLOCK_MONOTONIC) + 10 * kSecond));
  EXPECT_EQ(OwnThreadsRunning(), 0u);
  ASSERT_TRUE(thread.Start(setup)) << "again, after its end";
  may_end.release();
}

TEST(OwnThreadTest, OneThatALibraryMayKeepForGoodIsWaitedForOnce) {
  static std::binary_semaphore may_end{0};
  static OwnThread thread;
  OwnThread::Setup setup = kSetup;
  setup.body = [](void*) { may_end.acquire(); };
  setup.may_be_lost = true;
  constexpr uint64_t kSecond = 1'000'000'000, kNever = UINT64_MAX;
  ASSERT_TRUE(WaitForOwnThreadsEnd(ClockNs(CLOCK_MONOTONIC) + 10 * kSecond));
  ASSERT_TRUE(thread.Start(setup));
  EXPECT_TRUE(WaitForOwnThreadsEnd(ClockNs(CLOCK_MONOTONIC) + kSecond / 100));
  EXPECT_EQ(OwnThreadsRunning(), 1u);
  EXPECT_TRUE(WaitForOwnThreadsEnd(kNever)) << "it is known to be lost";
  may_end.release();
  while (OwnThreadsRunning() > 0) sched_yield();
  ASSERT_TRUE(thread.Start(setup)) << "it came back";
  may_end.release();
  EXPECT_TRUE(WaitForOwnThreadsEnd(kNever));
  EXPECT_EQ(OwnThreadsRunning(), 0u);
}

TEST(OwnThreadTest, IsDetached) {
  EXPECT_EQ(SeenByAThread(kSetup).detach_state, PTHREAD_CREATE_DETACHED);
}

TEST(OwnThreadTest, HasTheStackThatWasAskedFor) {
  // TSan adds 400 KB for itself; a thread that asks for nothing has 8 MiB.
  constexpr size_t kSanitizersBytes = 1 << 20;
  EXPECT_THAT(
      SeenByAThread(kSetup).stack_bytes,
      ::testing::AllOf(::testing::Ge(kStackBytes), ::testing::Le(kStackBytes + kSanitizersBytes)));
}

TEST(OwnThreadTest, IsNicerThanTheProgram) {
  const int program = getpriority(PRIO_PROCESS, 0);
  OwnThread::Setup nicer = kSetup;
  nicer.nice = std::min(program + 3, 19);
  EXPECT_EQ(SeenByAThread(nicer).nice, nicer.nice);
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), program);
}

TEST(OwnThreadTest, SaysSoWhenTheSystemGivesNoThread) {
  OwnThread::Setup endless = kSetup;
  endless.body = &LookAround;
  endless.stack_bytes = size_t{1} << 62;
  OwnThread thread;
  EXPECT_FALSE(thread.Start(endless));
}

}  // namespace
}  // namespace ranktap::agent
