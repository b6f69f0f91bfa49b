// Rings that the program wrote over, and rings with few slots: each in a child of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <latch>
#include <random>
#include <set>

#include "tests/unit/agent/core/rings.h"

namespace ranktap::agent {
namespace {

// In a child: the program's stray writes are to spoil nothing here.
template <typename Body>
void InChildWithRings(uint64_t bytes, Body body) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    static Segment segment;
    static Arena arena;
    const bool ready =
        segment.Create(bytes, kSession) && ThreadStates::Create(segment) && MapCapturePage();
    arena.Attach(segment, new std::atomic<uint64_t>[Arena::kTableSlots]());
    _exit(ready ? body(segment, arena) : 99);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

void EmitNamed(ThreadState& thread, Arena& arena, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const auto name = arena.InternText("name " + std::to_string(i % 100));
    thread.Emit(proto::RangePushEvent{.time_ticks = i, .nvtx = {.name = name}});
  }
}

uint64_t SendAll(RingReader& reader, Segment& segment, Arena& arena, std::set<uint32_t>* slots) {
  uint64_t sent = 0;
  proto::EventEncoder encoder;
  Dictionary ids(segment, arena);
  reader.Discover();
  while (const auto batch = reader.TakeBatch(1, encoder)) {
    std::string payload;
    encoder.Encode(ids, payload);
    sent += batch->events;
    if (slots != nullptr) slots->insert(batch->slot);
    reader.Acknowledge(batch->slot, batch->first_event + batch->events);
  }
  return sent;
}

TEST(DamagedRings, StrayWritesNeverCrashTheHostNorHangIt) {
  InChildWithRings(8 << 20, [](Segment& segment, Arena& arena) {
    std::mt19937_64 random(20261122);
    auto* memory = reinterpret_cast<std::byte*>(&segment.header());
    const uint64_t ready[] = {4096, 64 << 10, 4 << 20, 1 << 20};
    for (int round = 0; round < 300; ++round) {
      RingReader reader(segment);
      ThreadState* thread = nullptr;
      std::thread([&] {
        thread = ThreadState::Current();
        if (thread == nullptr) return;
        EmitNamed(*thread, arena, 500);
        for (int i = 0; i < 1 << (random() % 10); ++i) {
          const size_t part = random() % 4;
          std::byte* const starts[] = {memory, reinterpret_cast<std::byte*>(&segment.slot(0)),
                                       reinterpret_cast<std::byte*>(&segment.chunk(0)),
                                       segment.arena()};
          const uint64_t at = random() % (random() % 2 == 0 ? 256 : ready[part] - 8);
          const uint64_t value = random() % 3 == 0 ? random() : random() % 3 == 0 ? ~0ull : 1;
          std::memcpy(starts[part] + at, &value, 8);
        }
        EmitNamed(*thread, arena, 500);
      }).join();
      segment.Grow();
      (void)SendAll(reader, segment, arena, nullptr);
      reader.Rewind();
      (void)SendAll(reader, segment, arena, nullptr);
      (void)reader.Empty();
      for (const uint32_t slot : reader.FinishedSlots()) reader.Release(slot);
    }
    return 0;
  });
}

TEST(DamagedRings, AWriterWhoseChunkWasWrittenOverEndsWithWhatIsLostAndOthersGoOn) {
  InChildWithRings(8 << 20, [](Segment& segment, Arena& arena) {
    RingReader reader(segment);
    std::set<uint32_t> first, second;
    std::thread([&] {
      ThreadState& thread = *ThreadState::Current();
      EmitNamed(thread, arena, 40);
      if (SendAll(reader, segment, arena, &first) != 40) _exit(1);
      segment.chunk(segment.slot(*first.begin()).first_chunk - 1).next = 0x7fffffff;
      EmitNamed(thread, arena, 60);
    }).join();
    std::thread([&] { EmitNamed(*ThreadState::Current(), arena, 10); }).join();
    (void)SendAll(reader, segment, arena, &second);
    second.erase(*first.begin());
    if (second.size() != 1) return 2;
    return reader.FinishedSlots().size() == 2 ? 0 : 3;
  });
}

TEST(FewSlots, ThreadsBeyondTheSlotsAreCounted) {
  InChildWithRings(1 << 20, [](Segment& segment, Arena&) {
    constexpr int kThreads = 400;  // a slot for each 4 KiB: 256
    std::atomic<int> without{0};
    {
      std::latch started(kThreads);
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
          if (ThreadState::Current() == nullptr) {
            ++without;
            ThreadStates::LoseWithoutWriter();
          }
          started.arrive_and_wait();
        });
      }
    }
    const auto& lost = segment.shared_slot().lost[static_cast<size_t>(Loss::kNoWriter)];
    if (without.load() < kThreads - 256) return 1;
    return lost.load() == static_cast<uint64_t>(without.load()) ? 0 : 2;
  });
}

}  // namespace
}  // namespace ranktap::agent
