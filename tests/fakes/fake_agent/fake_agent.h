// An agent's half of the contract, for tests of the collector: real rings in a real memfd, real
// frames, built on proto/ alone. It shares no code with agent/.
//
// Does not model: threads (one caller drives everything), back-pressure (a full ring throws),
// reconnecting by itself, CUPTI and NVTX.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/encode.h"
#include "proto/events.h"
#include "proto/frame.h"
#include "proto/ring.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/hello.pb.h"

namespace ranktap::fakes {

struct FakeAgentOptions {
  std::optional<uint32_t> rank;
  uint32_t chunks = 8;
  bool simulated = false;
};

class FakeAgent {
 public:
  explicit FakeAgent(FakeAgentOptions options = {});
  ~FakeAgent();
  FakeAgent(const FakeAgent&) = delete;
  FakeAgent& operator=(const FakeAgent&) = delete;

  // What the next Hello says; change it at will.
  v1::Hello hello;

  // Connection. All throw std::runtime_error when the socket fails.
  void Connect(const std::string& path);
  void SendHello(bool pass_segment = true);
  // Connect, hello, welcome.
  v1::Welcome Join(const std::string& path);
  void Disconnect();
  void SendRaw(std::span<const std::byte> bytes);
  void Send(const proto::FrameFields& fields, const std::string& payload);
  // The next frame within the limit; nullopt: the peer closed the connection.
  struct Received {
    proto::FrameHeader header;
    std::string payload;
  };
  std::optional<Received> Receive(int timeout_ms = 10'000);
  // Receives until all frames sent on this connection are acked.
  void AwaitAcks();
  uint64_t frames_sent() const { return frames_sent_; }
  int socket() const { return socket_; }
  int memfd() const { return memfd_; }

  // Names.
  proto::ArenaRef Intern(proto::EntryKind kind, std::span<const std::byte> content);
  proto::ArenaRef InternText(const std::string& text,
                             proto::EntryKind kind = proto::EntryKind::kString);
  proto::ArenaRef InternShape(const proto::LaunchShape& shape);
  proto::ArenaRef InternApi(const std::string& name, uint32_t cbid,
                            proto::ApiDomain domain = proto::ApiDomain::kRuntime);

  // Events. A writer is a number from AddWriter.
  uint32_t AddWriter(proto::WriterKind kind = proto::WriterKind::kThread, int32_t thread = 1);
  template <typename Event>
  void Emit(uint32_t writer, Event event, const std::string& text = {},
            const std::string& payload = {}) {
    event.header.kind = static_cast<uint16_t>(Event::kKind);
    event.header.text_bytes = static_cast<uint16_t>(text.size());
    event.header.payload_bytes = static_cast<uint16_t>(payload.size());
    Write(writer, {reinterpret_cast<const std::byte*>(&event), sizeof(event)}, text, payload);
  }
  void Lose(uint32_t writer, proto::Loss loss, uint64_t count);
  void OpenCall(uint32_t writer, proto::ArenaRef api, uint64_t since_ticks, uint32_t correlation);
  proto::WriterSlot& slot(uint32_t writer);
  uint64_t committed(uint32_t writer) const { return writers_.at(writer).committed; }

  // Sends what has been emitted and not yet sent, names first; at most `max_events` a frame.
  void Flush(uint32_t max_events = 10'000);
  // The same for one writer from position `from` on.
  void FlushWriter(uint32_t writer, uint64_t from, uint32_t max_events = 10'000);
  // Treats the dictionary and everything from the positions on as unsent (absent: 0).
  void Rewind(const v1::Welcome& welcome);
  // From here on names are told again, as an agent does for --keep.
  void TellAgain();
  void SendClock();
  void SayGoodbye();
  // As a process that ends in good order: no goodbye frame, a mark in the rings.
  void LeaveLastWords();

  proto::SegmentHeader& segment() { return *header_; }
  std::byte* memory() { return memory_; }
  uint64_t memory_bytes() const { return bytes_; }
  proto::Chunk& chunk(uint32_t index);
  // Which chunks a writer has, in order; each is as large as they get.
  const std::vector<uint32_t>& chunks_of(uint32_t writer) const {
    return writers_.at(writer).chunks;
  }

 private:
  struct WriterState {
    uint32_t slot = 0;
    std::vector<uint32_t> chunks;
    uint64_t committed = 0;
    uint64_t sent = 0;
    bool introduced = false;
  };
  class Ids;
  void Write(uint32_t writer, std::span<const std::byte> event, const std::string& text,
             const std::string& payload);

  FakeAgentOptions options_;
  int memfd_ = -1;
  int socket_ = -1;
  uint64_t bytes_ = 0;
  std::byte* memory_ = nullptr;
  proto::SegmentHeader* header_ = nullptr;
  proto::SegmentLayout layout_{};
  uint32_t next_chunk_ = 0;
  uint32_t next_slot_ = 1;
  std::map<uint32_t, WriterState> writers_;
  std::map<std::pair<uint32_t, std::string>, proto::ArenaRef> interned_;
  std::map<std::pair<uint32_t, uint32_t>, bool> told_;  // kind and id
  std::map<std::string, uint32_t> texts_;
  uint64_t frames_sent_ = 0;
  std::string input_;
};

}  // namespace ranktap::fakes
