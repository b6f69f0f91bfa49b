// What it costs the collector to know what ranks do now (collector/live): decoding the sections of
// kernels, launches and ranges that it reads out of frames that it stores anyway. The floor is the
// frame's check, which storing needs. One thread.
// Usage: live_bench
#include <cstring>

#include "collector/live/live_rank.h"
#include "proto/encode.h"
#include "proto/framework_marks.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/dictionary.pb.h"
#include "tests/bench/figure.h"

namespace ranktap::bench {
namespace {

using namespace ranktap::collector;

constexpr uint32_t kEvents = 20'000, kFrames = 16;
constexpr int kRounds = 30;
constexpr uint64_t kNow = 1'700'000'000'000'000'000;

struct SameIds {
  uint32_t IdOf(proto::EntryKind, proto::ArenaRef ref) { return ref; }
  uint32_t IdOfText(std::span<const std::byte>) { return 0; }
};

class Random {
 public:
  uint64_t Below(uint64_t bound) {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_ % bound;
  }

 private:
  uint64_t state_ = 88172645463325252ull;
};

std::string FrameOf(proto::FrameFields fields, const std::string& payload) {
  const auto header = proto::MakeFrameHeader(fields, std::as_bytes(std::span(payload)));
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + payload;
}

template <typename Event>
std::string EventFrame(std::vector<Event>& events, uint64_t first) {
  proto::EventEncoder encoder;
  for (Event& event : events) {
    event.header = {static_cast<uint16_t>(Event::kKind), sizeof(Event), 0, 0};
    if (!encoder.Add(&event.header, sizeof(Event))) std::abort();
  }
  SameIds ids;
  std::string payload;
  encoder.Encode(ids, payload);
  return FrameOf({.type = proto::FrameType::kEvents,
                  .writer = 1,
                  .first_event = first,
                  .events = static_cast<uint32_t>(events.size())},
                 payload);
}

// A step's kernels, as long as those of ingest_bench, on two streams: one of ten is a collective
// that runs beside the others.
std::vector<std::string> KernelFrames() {
  Random random;
  std::vector<std::string> frames;
  uint64_t time = kNow, network = kNow;
  for (uint32_t frame = 0; frame < kFrames; ++frame) {
    std::vector<proto::KernelEvent> kernels(kEvents);
    for (uint32_t i = 0; i < kEvents; ++i) {
      proto::KernelEvent& kernel = kernels[i];
      const bool is_collective = i % 10 == 9;
      uint64_t& lane = is_collective ? network : time;
      kernel.start_ns = lane = std::max(lane, is_collective ? time : 0) + 500 + random.Below(8000);
      kernel.end_ns = lane += 2000 + random.Below(200'000);
      kernel.correlation = 3 * i;
      kernel.context = 1;
      kernel.stream = is_collective ? 20 : 7;
      kernel.name = is_collective ? 60 : 1 + static_cast<uint32_t>(random.Below(48));
      kernel.shape = 1 + static_cast<uint32_t>(random.Below(48));
    }
    frames.push_back(EventFrame(kernels, uint64_t{frame} * kEvents));
  }
  return frames;
}

std::vector<std::string> LaunchFrames() {
  Random random;
  std::vector<std::string> frames;
  uint64_t time = 1'000'000'000;
  for (uint32_t frame = 0; frame < kFrames; ++frame) {
    std::vector<proto::ApiCallEvent> calls(kEvents);
    for (uint32_t i = 0; i < kEvents; ++i) {
      calls[i].start_ticks = time += 500 + random.Below(3000);
      calls[i].end_ticks = time += 1500 + random.Below(3000);
      calls[i].correlation = 3 * i;
      calls[i].api = 1 + static_cast<uint32_t>(random.Below(3));
    }
    frames.push_back(EventFrame(calls, uint64_t{frame} * kEvents));
  }
  return frames;
}

// Operators of level full, in a domain that is passed over.
std::vector<std::string> RangeFrames() {
  Random random;
  std::vector<std::string> frames;
  uint64_t time = 1'000'000'000;
  for (uint32_t frame = 0; frame < kFrames; ++frame) {
    std::vector<proto::RangePushEvent> pushes(kEvents);
    for (uint32_t i = 0; i < kEvents; ++i) {
      pushes[i].time_ticks = time += 1500 + random.Below(3000);
      pushes[i].nvtx = {.domain = 2, .name = 1 + static_cast<uint32_t>(random.Below(48))};
      pushes[i].nvtx.payload = random.Below(1 << 20);
    }
    frames.push_back(EventFrame(pushes, uint64_t{frame} * kEvents));
  }
  return frames;
}

std::string NameFrame() {
  v1::Dictionary names;
  const auto add = [](v1::Text* text, uint32_t id, const std::string& what) {
    text->set_id(id);
    text->set_text(what);
  };
  add(names.add_nvtx_domains(), 1, std::string(proto::kStepDomain));
  add(names.add_nvtx_domains(), 2, std::string(proto::kOperatorDomain));
  for (uint32_t i = 1; i <= 48; ++i) {
    add(names.add_strings(), i, "void kernel_of_a_layer<float, " + std::to_string(i) + ">");
  }
  add(names.add_strings(), 60, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  return FrameOf({.type = proto::FrameType::kDictionary}, names.SerializeAsString());
}

void Measure(const std::string& what, const std::vector<std::string>& frames, double target) {
  LiveColumns columns;
  const std::string names = NameFrame();
  const auto pass = [&](bool checks, LiveColumns* wanted) {
    LiveRank live{v1::HostClock()};
    live.Take(proto::DecodeFrame(std::as_bytes(std::span(names))), wanted);
    for (const std::string& frame : frames) {
      const auto bytes = std::as_bytes(std::span(frame));
      const proto::FrameView view = proto::DecodeFrame(bytes);
      Keep(view);
      if (!checks) live.Take(view, wanted);
    }
    Keep(live);
  };
  const double events = double{kEvents} * kFrames;
  const double floor = LeastCpuSeconds(kRounds, [&] { pass(true, nullptr); });
  const double idle = LeastCpuSeconds(kRounds, [&] { pass(false, nullptr); });
  const double read = LeastCpuSeconds(kRounds, [&] { pass(false, &columns); });
  Print({.name = "live, " + what + ", somebody reads",
         .value = (read - floor) / events * 1e9,
         .unit = "ns",
         .floor_name = "the frame's check",
         .floor = floor / events * 1e9,
         .target = target,
         .note = ""});
  Print({.name = "live, " + what + ", nobody reads",
         .value = std::max(idle - floor, 0.0) / events * 1e9,
         .unit = "ns",
         .floor_name = "the frame's check",
         .floor = floor / events * 1e9,
         .target = 0.1,
         .note = ""});
}

void Run() {
  Measure("a kernel", KernelFrames(), 15);
  Measure("a launch", LaunchFrames(), 1);
  Measure("an operator's range", RangeFrames(), 15);
}

}  // namespace
}  // namespace ranktap::bench

int main() { ranktap::bench::Run(); }
