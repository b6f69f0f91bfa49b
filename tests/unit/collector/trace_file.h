// Writes trace files for tests, frame by frame, without sockets; and changes their bytes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "collector/file/trace_reader.h"
#include "collector/file/trace_state.h"
#include "collector/file/trace_writer.h"
#include "proto/encode.h"

namespace ranktap::collector {

struct IdentityIds {
  uint32_t IdOf(proto::EntryKind, proto::ArenaRef ref) { return ref; }
  uint32_t IdOfText(std::span<const std::byte>) { return 1; }
};

class TraceFileBuilder {
 public:
  explicit TraceFileBuilder(const std::string& path)
      : writer_(FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600)),
                compressor_) {
    v1::Hello& hello = state_.hello();
    hello.set_session("0123456789abcdef");
    hello.mutable_rank()->set_rank(0);
    hello.mutable_host_clock()->set_kind(v1::HostClock::KIND_MONOTONIC_RAW);
    const std::vector<uint8_t> id(16, 7);
    EXPECT_TRUE(writer_.WriteHeader(id, id, 1));
    Checkpoint();
  }

  v1::Hello& hello() { return state_.hello(); }

  // A frame into the open block.
  void Add(const proto::FrameFields& fields, const std::string& payload) {
    const auto bytes = std::as_bytes(std::span(payload));
    const proto::FrameHeader header = proto::MakeFrameHeader(fields, bytes);
    const auto head = std::as_bytes(std::span(&header, 1));
    const size_t at = block_.size();
    block_.insert(block_.end(), head.begin(), head.end());
    block_.insert(block_.end(), bytes.begin(), bytes.end());
    EXPECT_TRUE(state_.Note(proto::DecodeFrame(std::span(block_).subspan(at))));
    ++summary_.frames;
    summary_.events += fields.events;
  }
  // Events of one writer, in a frame of their own; refs are dictionary ids.
  template <typename Event>
  void AddEvents(uint32_t writer, std::vector<Event> events) {
    proto::EventEncoder encoder;
    for (Event& event : events) {
      event.header = {static_cast<uint16_t>(Event::kKind), sizeof(Event), 0, 0};
      EXPECT_TRUE(encoder.Add(&event.header, sizeof(Event)));
    }
    AddEncoded(writer, &encoder);
  }
  void AddEncoded(uint32_t writer, proto::EventEncoder* encoder) {
    IdentityIds ids;
    std::string payload;
    const auto count = static_cast<uint32_t>(encoder->count());
    encoder->Encode(ids, payload);
    Add({.type = proto::FrameType::kEvents,
         .writer = writer,
         .first_event = next_[writer],
         .events = count},
        payload);
    next_[writer] += count;
  }
  void AddText(uint32_t id, const std::string& text) {
    v1::Dictionary dictionary;
    dictionary.add_strings()->set_id(id);
    dictionary.mutable_strings(0)->set_text(text);
    Add({.type = proto::FrameType::kDictionary}, dictionary.SerializeAsString());
  }
  // Skips positions, as if a frame had been taken out.
  void Skip(uint32_t writer, uint64_t events) { next_[writer] += events; }

  void EndBlock() {
    EXPECT_TRUE(writer_.WriteFrames(block_, summary_));
    block_.clear();
    summary_ = {};
  }
  void Checkpoint() { EXPECT_TRUE(writer_.WriteCheckpoint(state_.EncodeCheckpoint({}))); }
  // Accounts of all writers, and a clean end.
  void Close() {
    v1::Goodbye goodbye;
    for (const auto& [writer, next] : next_) {
      v1::Account& account = *goodbye.mutable_accounts()->add_accounts();
      account.set_writer(writer);
      account.set_produced(next);
      account.set_committed(next);
    }
    Add({.type = proto::FrameType::kGoodbye}, goodbye.SerializeAsString());
    EndBlock();
    v1::Checkpoint extra;
    extra.mutable_ending()->set_how(v1::Ending::HOW_GOODBYE);
    EXPECT_TRUE(writer_.WriteCheckpoint(state_.EncodeCheckpoint(extra)));
    EXPECT_TRUE(writer_.Finish());
  }
  TraceWriter& writer() { return writer_; }

 private:
  BlockCompressor compressor_;
  TraceWriter writer_;
  TraceState state_;
  std::vector<std::byte> block_;
  FramesSummary summary_;
  std::map<uint32_t, uint64_t> next_;
};

inline std::string ReadFile(const std::string& path) {
  std::ifstream input(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(input), {}};
}
inline void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Kernels of 100 ns, 1 us apart from `start` on, correlations counting up from `first`.
inline std::vector<proto::KernelEvent> MakeKernels(int count, uint64_t start, uint32_t first = 1) {
  std::vector<proto::KernelEvent> kernels;
  for (int i = 0; i < count; ++i) {
    const uint64_t at = start + static_cast<uint64_t>(i) * 1000;
    kernels.push_back({.start_ns = at,
                       .end_ns = at + 100,
                       .correlation = first + static_cast<uint32_t>(i),
                       .context = 1,
                       .stream = 7,
                       .name = 1});
  }
  return kernels;
}

}  // namespace ranktap::collector
