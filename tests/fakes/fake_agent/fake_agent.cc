#include "tests/fakes/fake_agent/fake_agent.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <protozero/pbf_writer.hpp>
#include <stdexcept>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "proto/encode_entry.h"
#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::fakes {
namespace {

using proto::EntryKind;

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error("fake agent: " + what + ": " + std::strerror(errno));
}

uint64_t ClockNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

// Arena references -> ids, collecting the definitions that are not told yet.
class FakeAgent::Ids {
 public:
  Ids(FakeAgent* agent, std::string* definitions) : agent_(agent), definitions_(definitions) {}

  uint32_t IdOf(EntryKind kind, proto::ArenaRef ref) {
    if (ref == 0) return 0;
    const auto* entry = reinterpret_cast<const proto::ArenaEntry*>(
        agent_->memory_ + agent_->layout_.arena_offset + uint64_t{ref} * proto::kArenaAlign);
    const auto* content = reinterpret_cast<const std::byte*>(entry + 1);
    Define(kind, entry->id, {content, entry->bytes});
    return entry->id;
  }
  uint32_t IdOfText(std::span<const std::byte> text) {
    const std::string key(reinterpret_cast<const char*>(text.data()), text.size());
    auto [at, is_new] = agent_->texts_.try_emplace(key, 0);
    if (is_new) at->second = ++agent_->header_->next_id[static_cast<size_t>(EntryKind::kString)];
    Define(EntryKind::kString, at->second, text);
    return at->second;
  }

 private:
  void Define(EntryKind kind, uint32_t id, std::span<const std::byte> content) {
    if (std::exchange(agent_->told_[{static_cast<uint32_t>(kind), id}], true)) return;
    protozero::pbf_writer writer(*definitions_);
    (void)proto::EncodeEntry(kind, id, content, writer);
  }
  FakeAgent* agent_;
  std::string* definitions_;
};

FakeAgent::FakeAgent(FakeAgentOptions options) : options_(options) {
  constexpr uint32_t kSlots = 64;
  bytes_ = proto::LayOutSegment(0, kSlots, options.chunks).arena_offset + (1u << 20);
  layout_ = proto::LayOutSegment(bytes_, kSlots, options.chunks);
  memfd_ = ::memfd_create("fake-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memfd_ < 0 || ::ftruncate(memfd_, static_cast<off_t>(bytes_)) != 0) Fail("memfd");
  (void)::fcntl(memfd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_, 0);
  if (memory == MAP_FAILED) Fail("mmap");
  memory_ = static_cast<std::byte*>(memory);
  header_ = new (memory_) proto::SegmentHeader{};
  header_->magic = proto::kSegmentMagic;
  header_->version = proto::kSegmentVersion;
  header_->header_bytes = sizeof(proto::SegmentHeader);
  header_->segment_bytes = bytes_;
  header_->writer_slots = kSlots;
  header_->chunk_groups = options.chunks;
  header_->block_bytes = proto::kBlockBytes;
  header_->pid = static_cast<uint32_t>(::getpid());
  header_->slots_offset = layout_.slots_offset;
  header_->chunks_offset = layout_.chunks_offset;
  header_->arena_offset = layout_.arena_offset;
  header_->arena_bytes = layout_.arena_bytes;
  header_->arena_used = proto::kArenaAlign;
  header_->next_writer = 1;
  (void)!::getrandom(header_->session, sizeof(header_->session), 0);

  hello.set_protocol_min(1);
  hello.set_protocol_max(1);
  hello.set_session(header_->session, sizeof(header_->session));
  hello.set_agent_version("fake");
  hello.mutable_process()->set_pid(static_cast<uint32_t>(::getpid()));
  hello.mutable_process()->set_executable("/usr/bin/fake");
  hello.mutable_process()->set_host("testhost");
  hello.set_loaded_by(v1::LOADED_BY_ENVIRONMENT);
  hello.set_level(v1::LEVEL_KERNELS);
  hello.set_simulated(options.simulated);
  hello.mutable_host_clock()->set_kind(v1::HostClock::KIND_MONOTONIC_RAW);
  hello.mutable_segment()->set_version(proto::kSegmentVersion);
  hello.mutable_segment()->set_bytes(bytes_);
  if (options.rank) {
    hello.mutable_rank()->set_rank(*options.rank);
    hello.mutable_rank()->set_origin("RANK");
  }
}

FakeAgent::~FakeAgent() {
  Disconnect();
  ::munmap(memory_, bytes_);
  ::close(memfd_);
}

void FakeAgent::Connect(const std::string& path) {
  Disconnect();
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    Fail("connect to " + path);
  }
  frames_sent_ = 0;
  input_.clear();
}

void FakeAgent::Disconnect() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

void FakeAgent::SendRaw(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) Fail("send");
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
}

void FakeAgent::Send(const proto::FrameFields& fields, const std::string& payload) {
  const proto::FrameHeader header = proto::MakeFrameHeader(fields, Bytes(payload));
  std::string frame(reinterpret_cast<const char*>(&header), sizeof(header));
  frame += payload;
  SendRaw(Bytes(frame));
  ++frames_sent_;
}

void FakeAgent::SendHello(bool pass_segment) {
  const std::string payload = hello.SerializeAsString();
  const auto header = proto::MakeFrameHeader({.type = proto::FrameType::kHello}, Bytes(payload));
  std::string frame(reinterpret_cast<const char*>(&header), sizeof(header));
  frame += payload;
  iovec part{frame.data(), frame.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  if (pass_segment) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &memfd_, sizeof(int));
  }
  if (::sendmsg(socket_, &message, MSG_NOSIGNAL) != static_cast<ssize_t>(frame.size())) {
    Fail("send hello");
  }
  ++frames_sent_;
}

v1::Welcome FakeAgent::Join(const std::string& path) {
  Connect(path);
  SendHello();
  const auto frame = Receive();
  v1::Welcome welcome;
  if (!frame || frame->header.type != proto::FrameType::kWelcome ||
      !welcome.ParseFromString(frame->payload)) {
    throw std::runtime_error("fake agent: no welcome");
  }
  return welcome;
}

std::optional<FakeAgent::Received> FakeAgent::Receive(int timeout_ms) {
  for (;;) {
    const proto::FrameView view = proto::DecodeFrame(Bytes(input_));
    if (view.status == proto::FrameStatus::kComplete) {
      Received received{view.header, std::string(reinterpret_cast<const char*>(view.payload.data()),
                                                 view.payload.size())};
      input_.erase(0, view.consumed);
      return received;
    }
    if (view.status != proto::FrameStatus::kNeedMore) Fail("the collector sent no frame");
    pollfd poller{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&poller, 1, timeout_ms) == 0) throw std::runtime_error("fake agent: no answer");
    char buffer[4096];
    const ssize_t size = ::recv(socket_, buffer, sizeof(buffer), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return std::nullopt;
    input_.append(buffer, static_cast<size_t>(size));
  }
}

void FakeAgent::AwaitAcks() {
  for (uint64_t acked = 0; acked < frames_sent_;) {
    const auto frame = Receive();
    if (!frame) throw std::runtime_error("fake agent: closed before the ack");
    v1::Ack ack;
    if (frame->header.type != proto::FrameType::kAck || !ack.ParseFromString(frame->payload)) {
      continue;
    }
    acked = ack.frames();
  }
}

proto::ArenaRef FakeAgent::Intern(EntryKind kind, std::span<const std::byte> content) {
  const std::string key(reinterpret_cast<const char*>(content.data()), content.size());
  auto [at, is_new] = interned_.try_emplace({static_cast<uint32_t>(kind), key}, 0);
  if (!is_new) return at->second;
  const uint64_t offset = header_->arena_used.load();
  const uint64_t bytes = (sizeof(proto::ArenaEntry) + content.size() + proto::kArenaAlign - 1) /
                         proto::kArenaAlign * proto::kArenaAlign;
  if (offset + bytes > layout_.arena_bytes) throw std::runtime_error("fake agent: arena full");
  auto* const entry = reinterpret_cast<proto::ArenaEntry*>(memory_ + layout_.arena_offset + offset);
  *entry = {.magic = proto::kArenaMagic,
            .kind = static_cast<uint16_t>(kind),
            .id = ++header_->next_id[static_cast<size_t>(kind)],
            .bytes = static_cast<uint32_t>(content.size()),
            .hash = 0};
  if (!content.empty()) std::memcpy(entry + 1, content.data(), content.size());
  header_->arena_used = offset + bytes;
  return at->second = static_cast<proto::ArenaRef>(offset / proto::kArenaAlign);
}

proto::ArenaRef FakeAgent::InternText(const std::string& text, EntryKind kind) {
  return Intern(kind, Bytes(text));
}

proto::ArenaRef FakeAgent::InternShape(const proto::LaunchShape& shape) {
  return Intern(EntryKind::kLaunchShape, std::as_bytes(std::span(&shape, 1)));
}

proto::ArenaRef FakeAgent::InternApi(const std::string& name, uint32_t cbid,
                                     proto::ApiDomain domain) {
  const proto::ApiFunctionEntry entry{domain, cbid};
  std::string content(reinterpret_cast<const char*>(&entry), sizeof(entry));
  content += name;
  return Intern(EntryKind::kApiFunction, Bytes(content));
}

proto::WriterSlot& FakeAgent::slot(uint32_t writer) {
  auto* const slots = reinterpret_cast<proto::WriterSlot*>(memory_ + layout_.slots_offset);
  return slots[writers_.at(writer).slot];
}

proto::Chunk& FakeAgent::chunk(uint32_t index) {
  return *reinterpret_cast<proto::Chunk*>(memory_ + layout_.chunks_offset +
                                          uint64_t{index} * proto::kChunkBytes);
}

uint32_t FakeAgent::AddWriter(proto::WriterKind kind, int32_t thread) {
  const uint32_t writer = header_->next_writer++;
  writers_[writer].slot = next_slot_++;
  proto::WriterSlot& made = slot(writer);
  made.state = static_cast<uint32_t>(proto::WriterState::kLive);
  made.kind = static_cast<uint32_t>(kind);
  made.thread = thread;
  made.id = writer;
  return writer;
}

void FakeAgent::Write(uint32_t writer, std::span<const std::byte> event, const std::string& text,
                      const std::string& payload) {
  const auto padded = [](size_t bytes) { return (bytes + 7) & ~size_t{7}; };
  const size_t bytes = event.size() + padded(text.size()) + padded(payload.size());
  WriterState& state = writers_.at(writer);
  proto::WriterSlot& counters = slot(writer);
  counters.produced.store(counters.produced.load() + 1);
  uint64_t committed = state.chunks.empty() ? 0 : chunk(state.chunks.back()).committed.load();
  if (state.chunks.empty() || proto::CommittedBytes(committed) + bytes > proto::kChunkCapacity) {
    if (next_chunk_ == options_.chunks) throw std::runtime_error("fake agent: ring full");
    const uint32_t index = next_chunk_++;
    proto::Chunk& fresh = chunk(index);
    fresh.magic = proto::kChunkMagic;
    fresh.first_event = state.committed;
    fresh.ordinal = static_cast<uint32_t>(state.chunks.size());
    fresh.blocks = proto::kGroupBlocks;
    fresh.writer = writer;
    if (!state.chunks.empty()) {
      chunk(state.chunks.back()).next = index * proto::kGroupBlocks + 1;
    }
    state.chunks.push_back(index);
    committed = 0;
  }
  proto::Chunk& place = chunk(state.chunks.back());
  std::byte* const at = place.data() + proto::CommittedBytes(committed);
  std::memcpy(at, event.data(), event.size());
  reinterpret_cast<proto::EventHeader*>(at)->bytes = static_cast<uint16_t>(bytes);
  std::memcpy(at + event.size(), text.data(), text.size());
  std::memcpy(at + event.size() + padded(text.size()), payload.data(), payload.size());
  place.committed = committed + proto::PackCommitted(1, static_cast<uint32_t>(bytes));
  ++state.committed;
}

void FakeAgent::Lose(uint32_t writer, proto::Loss loss, uint64_t count) {
  proto::WriterSlot& counters = slot(writer);
  counters.produced.store(counters.produced.load() + count);
  auto& lost = counters.lost[static_cast<size_t>(loss)];
  lost.store(lost.load() + count);
}

void FakeAgent::OpenCall(uint32_t writer, proto::ArenaRef api, uint64_t since_ticks,
                         uint32_t correlation) {
  slot(writer).open_since_ticks = since_ticks;
  slot(writer).open_correlation = correlation;
  slot(writer).open_api = api;
}

void FakeAgent::Flush(uint32_t max_events) {
  for (auto& [writer, state] : writers_) FlushWriter(writer, state.sent, max_events);
}

void FakeAgent::FlushWriter(uint32_t writer, uint64_t from, uint32_t max_events) {
  WriterState& state = writers_.at(writer);
  proto::EventEncoder encoder;
  uint64_t first = from;
  const auto send = [&] {
    if (encoder.count() == 0) return;
    const auto events = static_cast<uint32_t>(encoder.count());
    std::string definitions, payload;
    if (!std::exchange(state.introduced, true)) {
      v1::Dictionary dictionary;
      v1::Writer& entry = *dictionary.add_writers();
      entry.set_id(writer);
      entry.set_kind(slot(writer).kind);
      entry.set_thread(slot(writer).thread);
      entry.set_name("thread");
      definitions = dictionary.SerializeAsString();
    }
    Ids ids(this, &definitions);
    encoder.Encode(ids, payload);
    if (!definitions.empty()) Send({.type = proto::FrameType::kDictionary}, definitions);
    proto::FrameLossCounts lost;
    for (size_t i = 0; i < lost.size(); ++i) lost[i] = slot(writer).lost[i];
    Send({.type = proto::FrameType::kEvents,
          .writer = writer,
          .first_event = first,
          .events = events,
          .lost = lost},
         payload);
    first += events;
  };
  for (const uint32_t index : state.chunks) {
    proto::Chunk& source = chunk(index);
    const uint64_t committed = source.committed;
    uint64_t position = source.first_event;
    for (size_t at = 0; at < proto::CommittedBytes(committed); ++position) {
      const auto* event = reinterpret_cast<const proto::EventHeader*>(source.data() + at);
      if (position >= from && !encoder.Add(event, proto::CommittedBytes(committed) - at)) {
        throw std::runtime_error("fake agent: malformed event");
      }
      at += event->bytes;
      if (encoder.count() == max_events) send();
    }
  }
  send();
  state.sent = state.committed;
}

void FakeAgent::Rewind(const v1::Welcome& welcome) {
  told_.clear();
  for (auto& [writer, state] : writers_) {
    state.introduced = false;
    state.sent = 0;
    for (const v1::Position& position : welcome.positions()) {
      if (position.writer() == writer) state.sent = position.next_event();
    }
  }
}

void FakeAgent::TellAgain() {
  Send({.type = proto::FrameType::kDictionary}, std::string(proto::kToldAgainMessage));
  std::erase_if(told_, [](const auto& told) {
    const auto kind = static_cast<EntryKind>(told.first.first);
    return std::ranges::find(proto::kToldAgain, kind) != std::end(proto::kToldAgain);
  });
}

void FakeAgent::SendClock() {
  v1::ClockReadings readings;
  v1::ClockReading& reading = *readings.add_readings();
  reading.set_monotonic_raw_ns(ClockNs(CLOCK_MONOTONIC_RAW));
  reading.set_realtime_ns(ClockNs(CLOCK_REALTIME));
#if defined(__x86_64__)
  if (hello.host_clock().kind() == v1::HostClock::KIND_TSC) reading.set_tsc(__rdtsc());
#endif
  Send({.type = proto::FrameType::kClock}, readings.SerializeAsString());
}

void FakeAgent::SayGoodbye() {
  v1::Goodbye goodbye;
  goodbye.set_reason(v1::Goodbye::REASON_EXIT);
  for (const auto& [writer, state] : writers_) {
    v1::Account& account = *goodbye.mutable_accounts()->add_accounts();
    account.set_writer(writer);
    account.set_produced(slot(writer).produced);
    account.set_committed(state.committed);
    for (const auto& lost : slot(writer).lost) account.add_lost(lost);
    account.set_ended(true);
  }
  Send({.type = proto::FrameType::kGoodbye}, goodbye.SerializeAsString());
}

void FakeAgent::LeaveLastWords() {
  proto::LastWords& words = header_->last_words;
  words.monotonic_raw_ns = ClockNs(CLOCK_MONOTONIC_RAW);
  words.realtime_ns = ClockNs(CLOCK_REALTIME);
  words.clock_sequence = 2;
  words.ended = v1::Goodbye::REASON_EXIT;
}

}  // namespace ranktap::fakes
