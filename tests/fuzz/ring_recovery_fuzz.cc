// The rings of a process that died, or that means harm: any edit of good ones. What comes out are
// frames that a trace can hold, positions in order.
#include <sys/mman.h>
#include <unistd.h>

#include "collector/ingest/recovery/ring_recovery.h"
#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/fuzz/edits.h"
#include "tests/fuzz/sample_frames.h"

using namespace ranktap;
using namespace ranktap::collector;

namespace {

// Rings of two writers, with names and inline texts, of which nothing has been sent.
fakes::FakeAgent* MakeAgent() {
  auto* const agent = new fakes::FakeAgent({.rank = 0, .chunks = 2});
  const uint32_t one = agent->AddWriter(), two = agent->AddWriter();
  const proto::ArenaRef api = agent->InternApi("cudaLaunchKernel", 211);
  for (uint32_t i = 0; i < 30; ++i) {
    proto::KernelEvent kernel{};
    kernel.correlation = i;
    kernel.name = agent->InternText("kernel " + std::to_string(i % 5));
    agent->Emit(one, kernel);
    agent->Emit(two, proto::RangePushEvent{}, "text " + std::to_string(i));
  }
  agent->OpenCall(two, api, 5, 6);
  return agent;
}

// Where edits matter: the header, the first slots, the chunks' beginnings, the arena's.
size_t Place(uint32_t number, const proto::SegmentLayout& layout, size_t bytes) {
  const size_t within = (number >> 2) % 16384;
  const size_t places[] = {within % 4096, layout.slots_offset + within % 1024,
                           layout.chunks_offset + (number >> 31) * proto::kChunkBytes + within,
                           layout.arena_offset + within};
  return std::min(places[number % 4], bytes - 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fakes::FakeAgent* const agent = MakeAgent();
  static const size_t bytes = agent->memory_bytes();
  static const proto::SegmentLayout layout = proto::LayOutSegment(bytes, 64, 2);
  std::byte* const memory = agent->memory();
  fuzz::Input input(data, size);
  std::vector<std::pair<size_t, uint64_t>> before;
  while (!input.empty() && before.size() < 32) {
    const size_t at = Place(input.Take<uint32_t>(), layout, bytes);
    const size_t width = size_t{1} << (input.Take<uint8_t>() % 4);
    const auto value = input.Take<uint64_t>();
    uint64_t old;
    std::memcpy(&old, memory + at, sizeof(old));
    before.emplace_back(at, old);
    std::memcpy(memory + at, &value, width);
  }
  std::string why;
  const Segment segment(FileDescriptor(::dup(agent->memfd())), &why);
  TraceState state;
  RingRecovery recovery(
      segment, state, [&](const proto::FrameFields& fields, std::span<const std::byte> payload) {
        const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
        const std::string whole = fuzz::Frame(fields, text);
        const auto frame = proto::DecodeFrame(std::as_bytes(std::span(whole)));
        fuzz::Require(frame.status == proto::FrameStatus::kComplete);
        if (fields.type == proto::FrameType::kEvents) {
          fuzz::Require(state.NextEvent(fields.writer) == fields.first_event);
        }
        fuzz::Require(state.Note(frame));
      });
  (void)recovery.Run(true);
  for (auto at = before.rbegin(); at != before.rend(); ++at) {
    std::memcpy(memory + at->first, &at->second, sizeof(at->second));
  }
  return 0;
}
