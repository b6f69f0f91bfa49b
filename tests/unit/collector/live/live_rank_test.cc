// What a rank does now, from its frames.
#include "collector/live/live_rank.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/encode.h"
#include "proto/framework_marks.h"
#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kRealtime = 1'700'000'000'000'000'000;

struct SameIds {
  uint32_t IdOf(proto::EntryKind, proto::ArenaRef ref) { return ref; }
  uint32_t IdOfText(std::span<const std::byte>) { return 0; }
};

// Frames of a process whose host clock is CLOCK_MONOTONIC_RAW, unless its ticks are said to be
// more.
class Frames {
 public:
  explicit Frames(v1::HostClock::Kind kind = v1::HostClock::KIND_MONOTONIC_RAW)
      : live_(Clock(kind)) {
    Name({"ranktap.step", "ranktap.phase", "ranktap.comm", "ranktap.op", "ranktap.memory"}, true);
    Name({"step", "data", "backward", "gloo:allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
          "void gemm<float>", "train_step 7", "epoch", "batch 7", "out of memory"},
         false);
    Reading(0, 0);
  }

  // Ticks at a moment of CLOCK_MONOTONIC_RAW.
  void Reading(uint64_t tsc, uint64_t ns) {
    v1::ClockReadings readings;
    v1::ClockReading& reading = *readings.add_readings();
    reading.set_tsc(tsc);
    reading.set_monotonic_raw_ns(ns == 0 ? 1 : ns);
    reading.set_realtime_ns(kRealtime + (ns == 0 ? 1 : ns));
    Take({.type = proto::FrameType::kClock}, readings.SerializeAsString());
  }
  void Push(uint32_t domain, uint32_t name, uint64_t at, uint64_t payload = 0) {
    Add(proto::RangePushEvent{.time_ticks = at,
                              .nvtx = {.domain = domain, .name = name, .payload = payload}});
  }
  void Mark(uint32_t domain, uint32_t name, uint64_t at) {
    Add(proto::MarkEvent{.time_ticks = at, .nvtx = {.domain = domain, .name = name}});
  }
  void Pop(uint32_t domain, uint64_t at) {
    Add(proto::RangePopEvent{.time_ticks = at, .domain = domain});
  }
  void Start(uint64_t id, uint32_t domain, uint32_t name, uint64_t at, uint64_t payload = 0) {
    Add(proto::RangeStartEvent{.time_ticks = at,
                               .range = id,
                               .nvtx = {.domain = domain, .name = name, .payload = payload}});
  }
  void End(uint64_t id, uint64_t at) { Add(proto::RangeEndEvent{.time_ticks = at, .range = id}); }
  void Kernel(uint32_t name, uint64_t begin, uint64_t end) {
    proto::KernelEvent kernel{};
    kernel.start_ns = kRealtime + begin;
    kernel.end_ns = kRealtime + end;
    kernel.name = name;
    Add(kernel);
  }
  // What was added, as one frame.
  void Send(uint32_t writer = 1) {
    SameIds ids;
    std::string payload;
    const auto count = static_cast<uint32_t>(encoder_.count());
    encoder_.Encode(ids, payload);
    Take({.type = proto::FrameType::kEvents,
          .writer = writer,
          .first_event = next_[writer],
          .events = count},
         payload);
    next_[writer] += count;
    events_.clear();
  }
  void Lose(uint32_t writer) { next_[writer] += 1; }
  void StopReading() { reads_ = false; }

  v1::LiveStatus At(uint64_t now_ns) const {
    v1::LiveStatus status;
    live_.Describe(now_ns, &status);
    return status;
  }
  size_t memory() const { return live_.MemoryBytes(); }

 private:
  static v1::HostClock Clock(v1::HostClock::Kind kind) {
    v1::HostClock clock;
    clock.set_kind(kind);
    return clock;
  }
  void Name(const std::vector<std::string>& texts, bool domains) {
    v1::Dictionary dictionary;
    for (uint32_t i = 0; i < texts.size(); ++i) {
      v1::Text& text = domains ? *dictionary.add_nvtx_domains() : *dictionary.add_strings();
      text.set_id(i + 1);
      text.set_text(texts[i]);
    }
    Take({.type = proto::FrameType::kDictionary}, dictionary.SerializeAsString());
  }
  template <typename Event>
  void Add(Event event) {
    event.header = {static_cast<uint16_t>(Event::kKind), sizeof(Event), 0, 0};
    // The encoder keeps pointers until Send.
    const auto kept = std::make_shared<Event>(event);
    ASSERT_TRUE(encoder_.Add(&kept->header, sizeof(Event)));
    events_.push_back(kept);
  }
  void Take(const proto::FrameFields& fields, const std::string& payload) {
    const auto bytes = std::as_bytes(std::span(payload));
    const proto::FrameHeader header = proto::MakeFrameHeader(fields, bytes);
    std::string frame(reinterpret_cast<const char*>(&header), sizeof(header));
    frame += payload;
    const proto::FrameView view = proto::DecodeFrame(std::as_bytes(std::span(frame)));
    ASSERT_EQ(view.status, proto::FrameStatus::kComplete);
    live_.Take(view, reads_ ? &columns_ : nullptr);
  }

  LiveRank live_;
  LiveColumns columns_;
  proto::EventEncoder encoder_;
  std::vector<std::shared_ptr<void>> events_;
  std::map<uint32_t, uint64_t> next_;
  bool reads_ = true;
};
enum Domain : uint32_t { kProgram = 0, kSteps = 1, kPhases = 2, kComm = 3, kOps = 4 };
enum Name : uint32_t {
  kStep = 1,
  kData,
  kBackward,
  kAllReduce,
  kNccl,
  kGemm,
  kTrainStep,
  kEpoch,
  kBatch
};

TEST(LiveRankTest, TheLastSixtyFourStepsOfTheHookAreKept) {
  Frames frames;
  for (uint64_t i = 0; i < 100; ++i) {
    frames.Start(i, kSteps, kStep, i * 10 * kMs, i);
    frames.End(i, (i * 10 + 9) * kMs);
    frames.Send();
  }
  const v1::LiveStatus status = frames.At(1000 * kMs);
  EXPECT_EQ(status.steps(), 100u);
  ASSERT_EQ(status.step_ns_size(), 64);
  EXPECT_EQ(status.step_ns(63), 9 * kMs);
  EXPECT_EQ(status.step_number(), 99u);
  EXPECT_EQ(status.since_step_ns(), 1 * kMs);
}

TEST(LiveRankTest, WithoutTheHookThereAreTheProgramsOwnRangesThatAreCalledLikeAStep) {
  Frames frames;
  frames.Push(kProgram, kEpoch, 0);
  frames.Push(kProgram, kTrainStep, 1 * kMs);
  frames.Push(kProgram, kBatch, 2 * kMs);
  frames.Pop(kProgram, 3 * kMs);
  frames.Pop(kProgram, 6 * kMs);
  frames.Send();
  const v1::LiveStatus status = frames.At(7 * kMs);
  ASSERT_EQ(status.step_ns_size(), 1) << "a batch inside of a step is none of its own";
  EXPECT_EQ(status.step_ns(0), 5 * kMs);
  EXPECT_EQ(status.step_number(), 7u);
}

TEST(LiveRankTest, CollectivesCountAsExposedWhereNothingElseRuns) {
  Frames frames;
  frames.Kernel(kGemm, 10 * kMs, 20 * kMs);
  frames.Kernel(kNccl, 15 * kMs, 30 * kMs);
  frames.Kernel(kGemm, 40 * kMs, 45 * kMs);
  frames.Send();
  const v1::LiveStatus status = frames.At(50 * kMs);
  EXPECT_EQ(status.kernels(), 3u);
  EXPECT_EQ(status.busy_ns(), 25 * kMs);
  EXPECT_EQ(status.exposed_ns(), 10 * kMs);
  EXPECT_EQ(status.device_age_ns(), 5 * kMs);
}

TEST(LiveRankTest, PhasesAreSummedAndOneThatIsOpenGrows) {
  Frames frames;
  frames.Push(kPhases, kData, 10 * kMs);
  frames.Pop(kPhases, 12 * kMs);
  frames.Push(kPhases, kData, 20 * kMs);
  frames.Start(1, kPhases, kBackward, 13 * kMs);
  frames.End(1, 17 * kMs);
  frames.Send();
  EXPECT_EQ(frames.At(20 * kMs).data_ns(), 2 * kMs);
  EXPECT_EQ(frames.At(30 * kMs).data_ns(), 12 * kMs);
  EXPECT_EQ(frames.At(30 * kMs).backward_ns(), 4 * kMs);
}

TEST(LiveRankTest, TheCollectiveThatARankIsInsideOfIsNamedWithItsAge) {
  Frames frames;
  frames.Start(1, kComm, kAllReduce, 10 * kMs);
  frames.End(1, 14 * kMs);
  frames.Start(2, kComm, kAllReduce, 20 * kMs);
  frames.Send();
  const v1::LiveStatus status = frames.At(50 * kMs);
  EXPECT_EQ(status.collective(), "gloo:allreduce");
  EXPECT_EQ(status.collective_ns_open(), 30 * kMs);
  EXPECT_EQ(status.collective_ns(), 34 * kMs);
}

TEST(LiveRankTest, ACollectiveOfAThreadsStackIsOneAsWell) {
  Frames frames;
  frames.Push(kComm, kAllReduce, 10 * kMs);
  frames.Pop(kComm, 14 * kMs);
  frames.Push(kComm, kAllReduce, 20 * kMs);
  frames.Send();
  EXPECT_EQ(frames.At(50 * kMs).collective_ns_open(), 30 * kMs);
  EXPECT_EQ(frames.At(50 * kMs).collective_ns(), 34 * kMs);
}

TEST(LiveRankTest, EventsThatAreMissingLeaveNothingOpen) {
  Frames frames;
  frames.Start(1, kComm, kAllReduce, 10 * kMs);
  frames.Push(kPhases, kData, 10 * kMs);
  frames.Send();
  frames.Lose(1);
  frames.Push(kPhases, kData, 60 * kMs);
  frames.Pop(kPhases, 61 * kMs);
  frames.Send();
  EXPECT_EQ(frames.At(70 * kMs).collective_ns_open(), 0u);
  EXPECT_EQ(frames.At(70 * kMs).data_ns(), 1 * kMs);
}

TEST(LiveRankTest, ASumThatWasToldDoesNotFallWhereAnOpenRangeIsForgotten) {
  Frames frames;
  frames.Push(2, 2, kMs);
  frames.Send();
  EXPECT_EQ(frames.At(11 * kMs).data_ns(), 10 * kMs);
  frames.Lose(1);
  frames.Push(2, 2, 20 * kMs);
  frames.Send();
  EXPECT_EQ(frames.At(25 * kMs).data_ns(), 10 * kMs);
  EXPECT_EQ(frames.At(40 * kMs).data_ns(), 20 * kMs);
}

TEST(LiveRankTest, AllocationsThatFailAreCounted) {
  Frames frames;
  frames.Mark(5, 10, kMs);
  frames.Mark(5, 1, 2 * kMs);
  frames.Mark(5, 10, 3 * kMs);
  frames.Send();
  EXPECT_EQ(frames.At(4 * kMs).out_of_memory(), 2u);
}

TEST(LiveRankTest, TicksOfTheTscAreTimesOnceTwoReadingsHaveCome) {
  Frames frames(v1::HostClock::KIND_TSC);
  frames.Start(1, kSteps, kStep, 0, 1);
  frames.End(1, 3000 * kMs);
  frames.Send();
  EXPECT_EQ(frames.At(0).steps(), 0u) << "how long a tick is nobody knows yet";
  frames.Reading(3'000 * kMs, 1'000 * kMs);
  frames.Start(2, kSteps, kStep, 3'000 * kMs, 2);
  frames.End(2, 3'030 * kMs);
  frames.Send();
  ASSERT_EQ(frames.At(2'000 * kMs).step_ns_size(), 1);
  EXPECT_NEAR(static_cast<double>(frames.At(2'000 * kMs).step_ns(0)), 10e6, 10);
}

TEST(LiveRankTest, WithNobodyReadingNothingIsRemembered) {
  Frames frames;
  const size_t before = frames.memory();
  frames.StopReading();
  for (uint64_t i = 0; i < 100; ++i) {
    frames.Kernel(kGemm, 2 * i, 2 * i + 1);
    frames.Start(i, kSteps, kStep, i);
    frames.Send();
  }
  EXPECT_EQ(frames.memory(), before);
  EXPECT_EQ(frames.At(1).kernels(), 0u);
}

}  // namespace
}  // namespace ranktap::collector
