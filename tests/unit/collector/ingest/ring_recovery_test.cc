// Rings that were damaged before they are read: nothing is trusted, and every event is stored or
// declared lost.
#include "collector/ingest/recovery/ring_recovery.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <random>

#include "proto/decode.h"
#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/unit/collector/test_collector.h"

namespace ranktap::collector {
namespace {

using fakes::FakeAgent;

struct Recovered {
  bool readable = false;
  uint64_t stored = 0, lost = 0;
  std::map<uint32_t, std::vector<std::pair<uint64_t, uint64_t>>> ranges;  // by writer: [first, end)
  std::map<uint32_t, v1::Account> accounts;
  v1::OpenCalls open_calls;
  std::string dictionary;
};

class RingRecoveryTest : public ::testing::Test {
 protected:
  // A second descriptor of the agent's memfd, as SCM_RIGHTS would give.
  Segment SegmentOf(FakeAgent* agent) {
    std::string why;
    Segment segment(FileDescriptor(::dup(agent->memfd())), &why);
    EXPECT_TRUE(segment.valid()) << why;
    return segment;
  }

  Recovered Recover(FakeAgent* agent, bool dead = true) {
    Recovered result;
    const Segment segment = SegmentOf(agent);
    RingRecovery recovery(
        segment, state_, [&](const proto::FrameFields& fields, std::span<const std::byte> payload) {
          const proto::FrameHeader header = proto::MakeFrameHeader(fields, payload);
          proto::FrameView view{
              .status = proto::FrameStatus::kComplete, .header = header, .payload = payload};
          EXPECT_LE(payload.size(), proto::kMaxPayloadBytes);
          EXPECT_TRUE(state_.Note(view));
          Take(view, &result);
        });
    result.readable = recovery.Run(dead);
    EXPECT_EQ(result.readable, recovery.problem().empty());
    return result;
  }

  static void Take(const proto::FrameView& view, Recovered* result) {
    const proto::FrameHeader& header = view.header;
    const auto parse = [&](auto* message) {
      EXPECT_TRUE(
          message->ParseFromArray(view.payload.data(), static_cast<int>(view.payload.size())));
    };
    switch (header.type) {
      case proto::FrameType::kEvents: {
        result->stored += header.events;
        result->ranges[header.writer].emplace_back(header.first_event,
                                                   header.first_event + header.events);
        EXPECT_TRUE(
            proto::DecodeEvents(view.payload, header.events, [](const auto&) { return true; }));
        break;
      }
      case proto::FrameType::kLoss: {
        v1::LostRange lost;
        parse(&lost);
        result->lost += lost.events();
        result->ranges[lost.writer()].emplace_back(lost.first_event(),
                                                   lost.first_event() + lost.events());
        break;
      }
      case proto::FrameType::kAccounts: {
        v1::Accounts accounts;
        parse(&accounts);
        for (const auto& account : accounts.accounts()) {
          result->accounts[account.writer()] = account;
        }
        break;
      }
      case proto::FrameType::kOpenCalls:
        parse(&result->open_calls);
        break;
      case proto::FrameType::kDictionary:
        result->dictionary.append(reinterpret_cast<const char*>(view.payload.data()),
                                  view.payload.size());
        break;
      default:
        break;
    }
  }

  void EmitRanges(FakeAgent* agent, uint32_t writer, int count) {
    const auto name = agent->InternText("step");
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<uint64_t>(1000 + i * 10);
      agent->Emit(writer, proto::RangePushEvent{.time_ticks = at, .nvtx = {.name = name}});
      agent->Emit(writer, proto::RangePopEvent{.time_ticks = at + 5});
    }
  }

  TraceState state_;
};

TEST_F(RingRecoveryTest, EveryCommittedEventIsFoundInOrder) {
  FakeAgent agent;
  const uint32_t first = agent.AddWriter(), second = agent.AddWriter();
  EmitRanges(&agent, first, 5000);  // two chunks
  EmitRanges(&agent, second, 10);
  ASSERT_GT(agent.chunks_of(first).size(), 1u);
  const Recovered found = Recover(&agent);
  ASSERT_TRUE(found.readable);
  EXPECT_EQ(found.stored, 10'020u);
  EXPECT_EQ(found.lost, 0u);
  EXPECT_EQ(found.accounts.at(first).committed(), 10'000u);
  EXPECT_EQ(found.accounts.at(first).produced(), 10'000u);
  EXPECT_TRUE(found.accounts.at(first).ended());
}

TEST_F(RingRecoveryTest, ReadingBeginsAtTheStoredPosition) {
  FakeAgent agent;
  const uint32_t writer = agent.AddWriter();
  EmitRanges(&agent, writer, 5000);
  proto::FrameView stored{.status = proto::FrameStatus::kComplete};
  stored.header = proto::MakeFrameHeader(
      {.type = proto::FrameType::kEvents, .writer = writer, .first_event = 0, .events = 7777}, {});
  ASSERT_TRUE(state_.Note(stored));
  const Recovered found = Recover(&agent);
  EXPECT_EQ(found.stored, 10'000u - 7777u);
  EXPECT_EQ(found.ranges.at(writer).front().first, 7777u);
  // And a second reading finds nothing new.
  EXPECT_EQ(Recover(&agent).stored, 0u);
}

TEST_F(RingRecoveryTest, AnEventThatWasCountedAndNotCommittedIsTheDeathsLoss) {
  FakeAgent agent;
  const uint32_t writer = agent.AddWriter();
  EmitRanges(&agent, writer, 5);
  agent.Lose(writer, proto::Loss::kRingFull, 3);
  agent.slot(writer).produced = 14;
  const v1::Account account = Recover(&agent).accounts.at(writer);
  EXPECT_EQ(account.produced(), 14u);
  EXPECT_EQ(account.committed(), 10u);
  EXPECT_EQ(account.lost(static_cast<int>(proto::Loss::kRingFull)), 3u);
  EXPECT_EQ(account.lost(static_cast<int>(proto::Loss::kDeath)), 1u);
}

TEST_F(RingRecoveryTest, AMalformedEventLosesTheRestOfItsChunkAndNoMore) {
  FakeAgent agent;
  const uint32_t writer = agent.AddWriter();
  EmitRanges(&agent, writer, 5000);
  proto::Chunk& chunk = agent.chunk(agent.chunks_of(writer)[0]);
  const uint64_t in_chunk = proto::CommittedEvents(chunk.committed);
  auto* const victim = reinterpret_cast<proto::EventHeader*>(
      chunk.data() + 10 * (sizeof(proto::RangePushEvent) + sizeof(proto::RangePopEvent)));
  victim->kind = 999;
  const Recovered found = Recover(&agent);
  EXPECT_EQ(found.lost, in_chunk - 20);
  EXPECT_EQ(found.stored, 10'000 - found.lost);
  EXPECT_EQ(found.accounts.at(writer).committed(), 10'000u);
}

TEST_F(RingRecoveryTest, AHoleBetweenChunksIsDeclared) {
  FakeAgent agent;
  const uint32_t writer = agent.AddWriter();
  EmitRanges(&agent, writer, 9000);
  ASSERT_GE(agent.chunks_of(writer).size(), 3u);
  proto::Chunk& middle = agent.chunk(agent.chunks_of(writer)[1]);
  const uint64_t missing = proto::CommittedEvents(middle.committed);
  middle.writer = 0;
  const Recovered found = Recover(&agent);
  EXPECT_EQ(found.lost, missing);
  EXPECT_EQ(found.stored, 18'000 - missing);
}

TEST_F(RingRecoveryTest, AChunkThatClaimsMoreThanWasProducedIsNotBelieved) {
  FakeAgent agent;
  const uint32_t writer = agent.AddWriter();
  EmitRanges(&agent, writer, 9000);
  agent.chunk(agent.chunks_of(writer).back()).first_event = 10'000'000'000'000;
  const Recovered found = Recover(&agent);
  EXPECT_LE(found.stored + found.lost, 18'000u);
  const v1::Account account = found.accounts.at(writer);
  uint64_t lost = 0;
  for (const uint64_t count : account.lost()) lost += count;
  EXPECT_EQ(account.produced(), 18'000u);
  EXPECT_EQ(account.committed() + lost, account.produced());
}

TEST_F(RingRecoveryTest, SmallChunksOfOneGroupAreFoundByTheirSizes) {
  FakeAgent agent;
  const uint32_t writer = agent.AddWriter();
  EmitRanges(&agent, writer, 10);
  // Its chunk becomes one block; another one of four blocks follows where a multiple of four
  // begins.
  proto::Chunk& first = agent.chunk(agent.chunks_of(writer)[0]);
  first.blocks = 1;
  auto* const second = reinterpret_cast<proto::Chunk*>(reinterpret_cast<std::byte*>(&first) +
                                                       4 * proto::kBlockBytes);
  std::memcpy(second->data(), first.data(), proto::CommittedBytes(first.committed));
  second->magic = proto::kChunkMagic;
  second->blocks = 4;
  second->first_event = 20;
  second->ordinal = 1;
  second->committed = first.committed.load();
  second->writer = writer;
  agent.slot(writer).produced = 40;
  EXPECT_EQ(Recover(&agent).stored, 40u);
}

TEST_F(RingRecoveryTest, InlineTextsGetIdsThatNothingElseHas) {
  FakeAgent agent;
  const uint32_t writer = agent.AddWriter();
  const auto known = agent.InternText("in the arena");
  agent.Emit(writer, proto::RangePushEvent{.time_ticks = 1, .nvtx = {.name = known}});
  agent.Emit(writer, proto::RangePushEvent{.time_ticks = 2}, "inline");
  agent.Emit(writer, proto::RangePushEvent{.time_ticks = 3}, "inline");
  agent.Emit(writer, proto::RangePushEvent{.time_ticks = 4}, "in the arena");
  const Recovered found = Recover(&agent);
  EXPECT_EQ(found.stored, 4u);
  v1::Dictionary dictionary;
  ASSERT_TRUE(dictionary.ParseFromString(found.dictionary));
  ASSERT_EQ(dictionary.strings_size(), 2);
  EXPECT_NE(dictionary.strings(0).id(), dictionary.strings(1).id());
}

TEST_F(RingRecoveryTest, OfALivingProcessNoCallIsOpen) {
  FakeAgent agent;
  const uint32_t writer = agent.AddWriter();
  EmitRanges(&agent, writer, 1);
  agent.OpenCall(writer, agent.InternApi("cudaDeviceSynchronize", 165), 5, 1);
  EXPECT_EQ(Recover(&agent, /*dead=*/false).open_calls.calls_size(), 0);
  EXPECT_EQ(Recover(&agent, /*dead=*/true).open_calls.calls_size(), 1);
}

TEST_F(RingRecoveryTest, ARankThatWasLearntTooLateForAFrameIsInTheLastWords) {
  FakeAgent agent;
  EmitRanges(&agent, agent.AddWriter(), 1);
  EXPECT_TRUE(Recover(&agent).readable);
  EXPECT_FALSE(state_.hello().has_rank());
  v1::Hello told;
  told.mutable_rank()->set_rank(6);
  told.set_level(v1::LEVEL_FULL);  // not a rank's to say
  const std::string encoded = told.SerializeAsString();
  proto::LastWords& words = agent.segment().last_words;
  std::memcpy(words.rank, encoded.data(), encoded.size());
  words.rank_bytes = static_cast<uint32_t>(encoded.size());
  EXPECT_TRUE(Recover(&agent).readable);
  EXPECT_EQ(state_.hello().rank().rank(), 6u);
  EXPECT_EQ(state_.hello().level(), v1::Hello().level());
  words.rank_bytes = 0xffffffff;
  words.rank[0] = 0x7f;
  EXPECT_TRUE(Recover(&agent).readable);
  EXPECT_EQ(state_.hello().rank().rank(), 6u);
}

TEST_F(RingRecoveryTest, RingsOfAnotherVersionAreLeftAloneWithAReason) {
  FakeAgent agent;
  agent.segment().version = proto::kSegmentVersion + 1;
  EXPECT_FALSE(Recover(&agent).readable);
}

TEST_F(RingRecoveryTest, WritersWhoseRingsWereWrittenOverEndWithWhatIsStoredAndADeclaredLoss) {
  FakeAgent agent;
  const uint32_t writer = agent.AddWriter();
  EmitRanges(&agent, writer, 10);
  EXPECT_TRUE(Recover(&agent, /*dead=*/false).readable);
  agent.segment().magic = 0;
  const Recovered after = Recover(&agent);
  EXPECT_FALSE(after.readable);
  ASSERT_TRUE(after.accounts.contains(writer));
  const v1::Account& account = after.accounts.at(writer);
  EXPECT_EQ(account.committed(), 20u);
  EXPECT_EQ(account.produced(), 21u);
  EXPECT_EQ(account.lost(static_cast<int>(proto::Loss::kDamaged)), 1u);
  EXPECT_TRUE(account.ended());
}

TEST_F(RingRecoveryTest, LossesThatAWriterCannotHaveCountedAreNotBelieved) {
  FakeAgent agent;
  const uint32_t writer = agent.AddWriter();
  EmitRanges(&agent, writer, 10);
  EXPECT_TRUE(Recover(&agent, /*dead=*/false).readable);
  agent.slot(writer).lost[0] = 0x5a5a5a5a5a5a5a5a;
  const Recovered after = Recover(&agent);
  ASSERT_TRUE(after.accounts.contains(writer));
  const v1::Account& account = after.accounts.at(writer);
  EXPECT_EQ(account.committed(), 20u);
  EXPECT_EQ(account.produced(), 21u);
  EXPECT_EQ(account.lost(static_cast<int>(proto::Loss::kDamaged)), 1u);
}

// Writers keep their positions whatever lies in the segment: ranges follow each other without a
// hole or an overlap, and nothing is read out of bounds (asan).
TEST_F(RingRecoveryTest, NoBytesInTheSegmentBreakTheOrder) {
  std::mt19937_64 random(20260104);
  for (int round = 0; round < 150; ++round) {
    FakeAgent agent({.chunks = 4});
    const uint32_t first = agent.AddWriter(), second = agent.AddWriter();
    EmitRanges(&agent, first, 3000);
    EmitRanges(&agent, second, 500);
    const int changes = 1 << (random() % 12);
    for (int i = 0; i < changes; ++i) {
      // Mostly where it matters: headers, slots, chunk headers.
      uint64_t at = random() % agent.memory_bytes();
      if (i % 4 == 0) at = random() % sizeof(proto::SegmentHeader);
      if (i % 4 == 1) at = agent.segment().slots_offset % agent.memory_bytes() + random() % 1024;
      if (i % 4 == 2) {
        at = agent.segment().chunks_offset % agent.memory_bytes() +
             (random() % 4) * proto::kChunkBytes + random() % 128;
      }
      if (at < agent.memory_bytes()) agent.memory()[at] = static_cast<std::byte>(random());
    }
    state_ = TraceState();
    const Recovered found = Recover(&agent);
    for (const auto& [writer, ranges] : found.ranges) {
      uint64_t next = 0;
      for (const auto& [begin, end] : ranges) {
        ASSERT_EQ(begin, next) << "round " << round << ", writer " << writer;
        ASSERT_GE(end, begin);
        next = end;
      }
    }
  }
}

}  // namespace
}  // namespace ranktap::collector
