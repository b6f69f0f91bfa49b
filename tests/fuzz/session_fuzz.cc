// What a session accepts, the trace's state can note: the writer thread relies on it. What its rank
// does now is bounded, whatever the frames say. And a
// checkpoint of whatever was noted can be restored.
#include "collector/file/trace_state.h"
#include "collector/ingest/session/session.h"
#include "tests/fuzz/edits.h"
#include "tests/fuzz/sample_frames.h"

using namespace ranktap;
using namespace ranktap::collector;

namespace {

void Feed(Session* session, TraceState* state, std::span<const std::byte> bytes) {
  const proto::FrameView frame = proto::DecodeFrame(bytes);
  if (frame.status != proto::FrameStatus::kComplete) return;
  std::string why;
  static LiveColumns live;
  const auto verdict = session->Accept(frame, bytes.first(frame.consumed), 1, {}, &why, &live);
  v1::LiveStatus status;
  session->live().Describe(1, &status);
  fuzz::Require(status.step_ns_size() <= static_cast<int>(kLiveSteps));
  if (verdict == Session::Verdict::kTaken) fuzz::Require(state->Note(frame));
  if (verdict == Session::Verdict::kViolation) fuzz::Require(!why.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string samples[] = {fuzz::EventFrame(0), fuzz::EventFrame(120),
                                        fuzz::DictionaryFrame(), fuzz::ClockFrame()};
  fuzz::Input input(data, size);
  static const v1::Hello hello = [] {
    v1::Hello made;
    made.set_session("0123456789abcdef");
    return made;
  }();
  Session session(1, hello, {}, FileDescriptor());
  TraceState state;
  session.Attach(1, 1);
  for (int i = 0; i < 16 && !input.empty(); ++i) {
    const auto mode = input.Take<uint8_t>();
    std::string frame = samples[mode % 4];
    if ((mode & 4) != 0) {
      const auto type = static_cast<proto::FrameType>(input.Take<uint8_t>());
      const auto writer = input.Take<uint8_t>();
      const uint64_t first = (mode & 8) != 0 ? input.Take<uint64_t>() : input.Take<uint8_t>();
      const auto events = input.Take<uint8_t>();
      frame = fuzz::Frame({.type = type, .writer = writer, .first_event = first, .events = events},
                          input.TakeText(input.Take<uint8_t>()));
    } else if ((mode & 16) != 0) {
      const auto offset = input.Take<uint16_t>() % frame.size();
      frame[offset] = static_cast<char>(input.Take<uint8_t>());
      fuzz::RepairFrame(std::as_writable_bytes(std::span(frame)));
    }
    Feed(&session, &state, std::as_bytes(std::span(frame)));
  }
  const std::string checkpoint = state.EncodeCheckpoint({});
  TraceState restored;
  fuzz::Require(restored.Restore(std::as_bytes(std::span(checkpoint))));
  for (const auto& [id, writer] : state.writers()) {
    fuzz::Require(restored.NextEvent(id) == writer.next_event);
  }
  return 0;
}
