// The frame decoder and the columns behind it, over any bytes.
#include <protozero/pbf_reader.hpp>

#include "proto/decode.h"
#include "tests/fuzz/edits.h"
#include "tests/fuzz/sample_frames.h"

using namespace ranktap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string base = fuzz::EventFrame(0);
  fuzz::Input input(data, size);
  const auto mode = input.Take<uint8_t>();
  std::string text = base;
  if (mode % 4 == 0) {
    text = input.TakeText(size);
  } else {
    fuzz::Edit(&input, std::as_writable_bytes(std::span(text)));
    if (mode % 4 != 1) fuzz::RepairFrame(std::as_writable_bytes(std::span(text)));
  }
  const auto bytes = std::as_bytes(std::span(text));
  const proto::FrameView frame = proto::DecodeFrame(bytes);
  fuzz::Require(frame.consumed <= bytes.size());
  fuzz::Require(frame.header.payload_bytes <= proto::kMaxPayloadBytes ||
                frame.status != proto::FrameStatus::kComplete);
  if (frame.status != proto::FrameStatus::kComplete) return 0;
  uint64_t rows = 0;
  (void)proto::DecodeEvents(
      frame.payload, frame.header.events,
      [&]<typename Event>(const proto::Section<Event>& section) {
        bool ok = true;
        size_t index = 0;
        proto::ForEachColumn<Event>([&]<typename C>() {
          const auto column = section.columns[index++];
          ok = ok &&
               proto::DecodeColumn<C>(column, section.count, [&](uint32_t, uint64_t) { ++rows; });
        });
        return ok && proto::DecodePayloads(section, [](uint32_t, std::span<const std::byte>) {});
      });
  return 0;
}
