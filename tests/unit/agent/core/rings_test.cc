// The segment, its writers and the reader that the sender uses, in this very process.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <latch>

#include "tests/unit/agent/core/rings.h"

namespace ranktap::agent {
namespace {

using proto::EntryKind;

std::vector<uint64_t> Sequence(uint64_t first, uint64_t count) {
  std::vector<uint64_t> numbers(count);
  for (uint64_t i = 0; i < count; ++i) numbers[i] = first + i;
  return numbers;
}

TEST_F(Rings, TheMemfdCannotBeResizedAndIsNotInherited) {
  EXPECT_EQ(fcntl(segment_->fd(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_NE(ftruncate(segment_->fd(), 4096), 0);
  EXPECT_NE(fcntl(segment_->fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(Rings, EventsComeOutInOrderOverManyChunks) {
  constexpr uint64_t kCount = 50'000;  // 1.2 MB in chunks of 4 to 256 KiB
  const uint32_t writer = OnNewThread([](ThreadState& thread) { EmitRanges(thread, 0, kCount); });
  EXPECT_EQ(TakeAll(/*ack=*/true)[writer], Sequence(0, kCount));
}

TEST_F(Rings, WhatIsNotAcknowledgedIsSentAgainAfterAReconnect) {
  const uint32_t writer = OnNewThread([](ThreadState& thread) { EmitRanges(thread, 10, 20'000); });
  EXPECT_EQ(TakeAll(/*ack=*/false)[writer], Sequence(10, 20'000));
  EXPECT_TRUE(TakeAll(false).empty());

  reader_->Rewind();
  EXPECT_EQ(TakeAll(false)[writer], Sequence(10, 20'000));

  reader_->Rewind();
  reader_->SkipTo(writer, 15'000);  // the collector has these already
  first_[writer] = 15'000;
  EXPECT_EQ(TakeAll(true)[writer], Sequence(15'010, 5'000));
}

TEST_F(Rings, AThreadThatEmitsAndEndsBetweenTwoLooksIsNotForgotten) {
  std::latch attached(1), looked(1);
  uint32_t writer = 0;
  std::thread thread([&] {
    ThreadState* state = ThreadState::Current();
    ASSERT_NE(state, nullptr);
    writer = state->writer();
    attached.count_down();
    looked.wait();
    EmitRanges(*state, 0, 7);
  });
  attached.wait();
  reader_->Discover();  // a writer without a chunk
  looked.count_down();
  thread.join();
  for (const uint32_t slot : reader_->FinishedSlots()) {
    EXPECT_NE(segment_->slot(slot).id.load(), writer) << "its 7 events are not read yet";
  }
  EXPECT_EQ(TakeAll(/*ack=*/true)[writer].size(), 7u);
}

TEST_F(Rings, ABatchThatWasSentKeepsItsEndWhenItIsSentAgain) {
  OnNewThread([&](ThreadState& thread) {
    proto::EventEncoder encoder;
    Dictionary ids(*segment_, *arena_);
    const auto take = [&]() -> uint64_t {
      std::string payload;
      reader_->Discover();
      const auto batch = reader_->TakeBatch(1, encoder);
      if (!batch) return 0;
      encoder.Encode(ids, payload);
      reader_->KeepBound(batch->slot, batch->first_event + batch->events);
      return batch->events;
    };
    EmitRanges(thread, 0, 10);
    ASSERT_EQ(take(), 10u);
    EmitRanges(thread, 10, 5);
    reader_->Rewind();
    EXPECT_EQ(take(), 10u);
    EXPECT_EQ(take(), 5u);
  });
  (void)TakeAll(/*ack=*/true);
}

TEST_F(Rings, ChunksComeBackWhenEverythingIsAcknowledged) {
  // Many times what the segment holds: it only fits if acknowledged chunks are lent again.
#if defined(RANKTAP_UNDER_TSAN) || defined(RANKTAP_UNDER_QEMU)
  constexpr int kRounds = 3;  // each takes it three seconds, and one thread races with nobody
#else
  constexpr int kRounds = 20;
#endif
  (void)TakeAll(true);
  for (int round = 0; round < kRounds; ++round) {
    constexpr uint64_t kCount = 900'000;  // 21.6 of 22.8 MB
    const uint32_t writer = OnNewThread([](ThreadState& thread) { EmitRanges(thread, 0, kCount); });
    EXPECT_EQ(TakeAll(true)[writer].size(), kCount) << "round " << round;
  }
}

TEST_F(Rings, AFullRingDropsTheNewestAndCountsThem) {
  (void)TakeAll(true);
  constexpr uint64_t kCount = 2'000'000;  // 48 MB into 22 MiB
  uint64_t produced = 0;
  uint64_t lost = 0;
  const uint32_t writer = OnNewThread([&](ThreadState& thread) {
    EmitRanges(thread, 0, kCount);
    const proto::WriterSlot& slot = SlotOf(thread.writer());
    produced = slot.produced;
    lost = slot.lost[static_cast<size_t>(Loss::kRingFull)];
  });
  const auto stored = TakeAll(true)[writer];
  EXPECT_EQ(produced, kCount);
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(stored.size() + lost, produced);
  EXPECT_EQ(stored, Sequence(0, stored.size())) << "the newest are dropped, not the oldest";
}

TEST_F(Rings, EqualNamesAreOneEntryWhicheverThreadsBringThem) {
  constexpr int kThreads = 8;
  constexpr int kNames = 2000;
  std::vector<std::vector<proto::ArenaRef>> refs(kThreads);
  {
    std::latch start(kThreads);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        for (int i = 0; i < kNames; ++i) {
          refs[static_cast<size_t>(t)].push_back(arena_->InternText("kernel_" + std::to_string(i)));
        }
      });
    }
  }
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(refs[static_cast<size_t>(t)], refs[0]);
  const auto* entry = arena_->Find(refs[0][42]);
  ASSERT_NE(entry, nullptr);
  EXPECT_STREQ(reinterpret_cast<const char*>(entry + 1), "kernel_42") << "followed by a NUL";
}

TEST_F(Rings, EntriesOfDifferentKindsDoNotMix) {
  const auto name = std::as_bytes(std::span("NCCL", 4));
  const auto as_string = arena_->Intern(EntryKind::kString, name);
  const auto as_domain = arena_->Intern(EntryKind::kNvtxDomain, name);
  EXPECT_NE(as_string, as_domain);
  Dictionary dictionary(*segment_, *arena_);
  EXPECT_EQ(dictionary.IdOf(EntryKind::kNvtxDomain, as_string), 0u);
  EXPECT_NE(dictionary.IdOf(EntryKind::kNvtxDomain, as_domain), 0u);
  EXPECT_EQ(dictionary.IdOf(EntryKind::kString, 0xffffff), 0u) << "outside";
  EXPECT_EQ(dictionary.IdOf(EntryKind::kString, 1), 0u) << "the ref that stands for no name";
}

TEST_F(Rings, ANameIsDefinedOnceToACollectorAndAgainToTheNext) {
  const auto ref = arena_->InternText("defined once");
  Dictionary dictionary(*segment_, *arena_);
  EXPECT_NE(dictionary.IdOf(EntryKind::kString, ref), 0u);
  EXPECT_EQ(dictionary.TakeDefinitions().size(), 1u);
  EXPECT_NE(dictionary.IdOf(EntryKind::kString, ref), 0u);
  EXPECT_TRUE(dictionary.TakeDefinitions().empty());
  dictionary.Forget();
  EXPECT_NE(dictionary.IdOf(EntryKind::kString, ref), 0u);
  EXPECT_EQ(dictionary.TakeDefinitions().size(), 1u);
}

// glibc's fork runs atfork handlers, the raw system call does not; neither may leave a child that
// records.
TEST_F(Rings, AForkChildCapturesNothingHoweverItWasForked) {
  SetCapture(kCaptureRanges);
  ASSERT_TRUE(Capturing(kCaptureRanges));
  for (const bool raw : {false, true}) {
    const pid_t child =
        raw ? static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr))
            : fork();
    if (child == 0) _exit(CaptureMask() == 0 ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << (raw ? "raw fork" : "fork");
  }
  ClearCapture(kCaptureRanges);
}

}  // namespace
}  // namespace ranktap::agent
