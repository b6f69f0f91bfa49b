#include "collector/ingest/store/session_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "collector/ingest/host_clock.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/ingest/recovery/ring_recovery.h"

namespace ranktap::collector {
namespace {

// Frames from before the first event that a file will begin with. A process that never has one
// costs no more than this.
constexpr size_t kMaxHeldBytes = 64u << 10;

// Beside a checkpoint: the losses to be declared, the trailer, and what run.json takes to be
// written anew.
constexpr uint64_t kEndBytes = 32u << 10;

bool IsHeld(proto::FrameType type) {
  return type == proto::FrameType::kGap || type == proto::FrameType::kCost;
}

// Calls take(view, bytes) for each frame of a block.
template <typename Take>
void ForEachFrame(const FrameBlock& block, Take&& take) {
  for (std::span<const std::byte> bytes : block.parts) {
    while (!bytes.empty()) {
      const proto::FrameView view = proto::DecodeFrame(bytes);
      if (view.status != proto::FrameStatus::kComplete) return;
      take(view, bytes.first(view.consumed));
      bytes = bytes.subspan(view.consumed);
    }
  }
}

uint64_t HeldByCupti(const TraceState& state) {
  constexpr auto kReason = static_cast<int>(proto::Loss::kUnflushed);
  uint64_t held = 0;
  for (const auto& [writer, account] : state.accounts()) {
    if (account.lost_size() > kReason) held += account.lost(kReason);
  }
  return held;
}

}  // namespace

SessionStore::SessionStore(StoreContext* context, const v1::Hello& hello, uint32_t pid)
    : context_(context), pid_(pid) {
  state_.hello() = hello;
  if (context->keeps) state_.KeepLasting();
}

void SessionStore::GoOnFrom(const TraceTail& tail) {
  const v1::Hello hello = state_.hello();
  state_ = tail.state;
  TraceState::Amend(hello, &state_.hello());
  if (context_->keeps) state_.KeepLasting();
  incarnation_ = tail.incarnation + 1;
}

TraceName SessionStore::Name() const {
  TraceName name{.rank = std::nullopt, .pid = pid_};
  if (state_.hello().rank().has_rank()) name.rank = state_.hello().rank().rank();
  return name;
}

void SessionStore::Store(const FrameBlock& block) {
  if (writer_ && writer_->broken()) {
    // Its torn tail is left alone, as a .part; the trace goes on in another file.
    writer_.reset();
    stage_ = Stage::kNoFile;
    ++incarnation_;
  }
  const bool wants_file = block.summary.events > 0;
  const bool has_file = stage_ != Stage::kNoFile || (wants_file && CreateFile());
  if (has_file) writer_->KeepRoom(state_.CheckpointBytes() + kEndBytes);
  // The bytes before a block in the file say where it begins, so the block is noted after them.
  const bool written = has_file && WritePreamble() && WriteBlock(block);
  Note(block);
  if (!written && (has_file || wants_file)) {
    if (has_file) Failed(std::strerror(writer_->error()));
    DeferLosses(block);
  }
  if (written && writer_->bytes_since_checkpoint() >= kCheckpointEveryBytes) {
    lost_names_ = !WriteCheckpoint({});
  }
  UpdateInfo();
}

void SessionStore::Note(const FrameBlock& block) {
  ForEachFrame(block, [&](const proto::FrameView& frame, std::span<const std::byte> bytes) {
    if (!state_.Note(frame)) Failed("a frame that ingest had accepted");
    if (stage_ == Stage::kNoFile && frame.header.type == proto::FrameType::kLoss) DeferLoss(frame);
    if (stage_ != Stage::kNoFile || !IsHeld(frame.header.type)) return;
    if (held_.size + bytes.size() > kMaxHeldBytes) held_.Clear();
    held_.Append(bytes, 0, block.summary.last_received_ns);
  });
}

bool SessionStore::CreateFile() {
  Result<RunDirectory::Part> part = context_->directory->CreatePart(Name());
  if (!part) {
    Failed(part.message());
    return false;
  }
  part_ = std::move(*part);
  writer_ = std::make_unique<TraceWriter>(std::move(part_.file), *context_->compressor);
  stage_ = Stage::kHeader;
  file_events_ = 0;
  infos_.emplace_back();
  info_changed_ = true;
  return true;
}

bool SessionStore::WriteHeader() {
  const auto bytes_of = [](const std::string& text) {
    return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  return writer_->WriteHeader(bytes_of(state_.hello().session()), bytes_of(context_->collector_id),
                              RealtimeNs());
}

bool SessionStore::WritePreamble() {
  if (stage_ == Stage::kHeader) {
    if (!WriteHeader()) return false;
    stage_ = Stage::kFirstCheckpoint;
  }
  if (stage_ == Stage::kFirstCheckpoint) {
    // The position at which this file begins: deferred losses will be declared in it.
    v1::Checkpoint base;
    for (const auto& [writer, positions] : deferred_losses_) {
      base.add_positions()->set_writer(writer);
      base.mutable_positions(base.positions_size() - 1)->set_next_event(positions.first);
    }
    if (!WriteCheckpoint(std::move(base))) return false;
    stage_ = Stage::kReady;
    lost_names_ = false;
  }
  if (!WriteHeldFrames()) return false;
  if (lost_names_ && !WriteCheckpoint({})) return false;
  lost_names_ = false;
  return true;
}

bool SessionStore::WriteHeldFrames() {
  FrameBlock block = held_;
  for (const auto& [writer, positions] : deferred_losses_) {
    v1::LostRange lost;
    lost.set_writer(writer);
    lost.set_first_event(positions.first);
    lost.set_events(positions.events);
    lost.set_loss(static_cast<uint32_t>(proto::Loss::kStore));
    const std::string payload = lost.SerializeAsString();
    block.Append({.type = proto::FrameType::kLoss, .writer = writer},
                 std::as_bytes(std::span(payload)), MonotonicRawNs());
  }
  if (block.size == 0) return true;
  if (!WriteBlock(block)) return false;
  held_.Clear();
  deferred_losses_.clear();
  return true;
}

bool SessionStore::WriteCheckpoint(v1::Checkpoint extra) {
  extra.set_collector(context_->collector_id);
  extra.set_incarnation(incarnation_);
  *extra.add_clocks() = context_->first_clock;
  *extra.add_clocks() = ReadClocks();
  return writer_->WriteCheckpoint(state_.EncodeCheckpoint(std::move(extra)));
}

bool SessionStore::WriteBlock(const FrameBlock& block) {
  const std::span<const std::byte> frames = block.Bytes(&context_->compressor->frames());
  if (!writer_->WriteFrames(frames, block.summary)) return false;
  file_events_ += block.summary.events;
  return true;
}

void SessionStore::DeferLosses(const FrameBlock& block) {
  ForEachFrame(
      block, [&](const proto::FrameView& frame, std::span<const std::byte>) { DeferLoss(frame); });
  lost_names_ = true;
}

void SessionStore::DeferLoss(const proto::FrameView& frame) {
  uint32_t writer = frame.header.writer;
  uint64_t first = frame.header.first_event, events = frame.header.events;
  if (v1::LostRange lost; frame.header.type == proto::FrameType::kLoss) {
    (void)lost.ParseFromArray(frame.payload.data(), static_cast<int>(frame.payload.size()));
    writer = lost.writer();
    first = lost.first_event();
    events = lost.events();
  }
  if (events == 0) return;
  LostPositions& lost_here = deferred_losses_[writer];
  if (lost_here.events == 0) lost_here.first = first;
  lost_here.events = first + events - lost_here.first;
}

void SessionStore::Failed(const std::string& what) {
  problem_ = fmt::format("could not write: {}", what);
  info_changed_ = true;
}

bool SessionStore::Recover(const Segment& segment, bool process_is_dead) {
  // What a dead process was in is no event: after an EndSegment there is no file for it.
  if (context_->keeps && stage_ == Stage::kNoFile && !infos_.empty()) (void)CreateFile();
  FrameBlock block;
  const auto flush = [&] {
    if (block.summary.frames > 0) Store(block);
    block.Clear();
  };
  // Recovery asks the state for positions and names as it goes, so each frame is stored before the
  // next one is made.
  RingRecovery recovery(segment, state_,
                        [&](const proto::FrameFields& fields, std::span<const std::byte> payload) {
                          block.Append(fields, payload, MonotonicRawNs());
                          flush();
                        });
  if (!recovery.Run(process_is_dead) && !infos_.empty())
    Failed(fmt::format("what was left: {}", recovery.problem()));
  UpdateInfo();
  return recovery.said_last_words();
}

uint64_t SessionStore::MemoryBytes() const {
  constexpr uint64_t kLossBytes = 96;
  return state_.MemoryBytes() + held_.size + deferred_losses_.size() * kLossBytes +
         (writer_ ? writer_->MemoryBytes() : 0);
}

bool SessionStore::AccountsAgree() const {
  for (const auto& [id, writer] : state_.writers()) {
    const auto account = state_.accounts().find(id);
    if (account == state_.accounts().end()) return false;
    if (account->second.committed() != writer.next_event) return false;
  }
  return true;
}

void SessionStore::UpdateInfo() {
  if (infos_.empty()) return;
  TraceInfo& info = infos_.back();
  const std::string file = info.file;
  const bool is_new = info.events == 0;
  Describe(state_.hello(), &info);
  if (const uint64_t held = HeldByCupti(state_); held > 0) {
    info.notes.push_back(
        fmt::format("{} kernels were launched whose records CUPTI still held at the end", held));
  }
  if (writer_) {
    info.file = part_.file_name();
    info.bytes = writer_->file_bytes();
  }
  info.pid = pid_;
  info.detail = problem_;
  info.events = 0;
  for (const auto& [id, writer] : state_.writers()) info.events += writer.next_event;
  if (file != info.file || is_new) info_changed_ = true;
}

bool SessionStore::EndSegment() {
  if (stage_ != Stage::kReady || file_events_ == 0 || writer_->broken()) return false;
  v1::Ending ending;
  ending.set_how(v1::Ending::HOW_ABANDONED);
  ending.set_detail("the process went on; this is what --keep kept of it");
  Close(ending);
  return true;
}

void SessionStore::ForgetFiles(const std::vector<std::string>& files, const TraceInfo* instead) {
  const size_t open = has_open_file() ? 1 : 0;
  size_t kept = 0;
  for (size_t i = 0; i < infos_.size(); ++i) {
    const bool is_gone =
        i + open < infos_.size() && std::ranges::find(files, infos_[i].file) != files.end();
    if (is_gone) continue;
    if (kept != i) infos_[kept] = std::move(infos_[i]);
    ++kept;
  }
  infos_.resize(kept);
  if (instead != nullptr) infos_.push_back(*instead);
  info_changed_ = true;
}

void SessionStore::Close(const v1::Ending& ending) {
  // Its last words came after an EndSegment.
  if (context_->keeps && stage_ == Stage::kNoFile && !infos_.empty()) (void)CreateFile();
  if (stage_ == Stage::kNoFile) return;
  v1::Checkpoint last;
  *last.mutable_ending() = ending;
  lost_names_ = false;  // the last checkpoint has them
  writer_->KeepRoom(0);
  bool ok = !writer_->broken() && WritePreamble() && WriteCheckpoint(std::move(last)) &&
            writer_->Finish();
  UpdateInfo();
  if (!ok) Failed("the end");
  TraceInfo& info = infos_.back();
  info.status = TraceStatus::kClosed;
  if (ending.how() == v1::Ending::HOW_DIED) info.status = TraceStatus::kDied;
  if (ending.how() == v1::Ending::HOW_ABANDONED) info.status = TraceStatus::kAbandoned;
  info.bytes = writer_->file_bytes();
  writer_.reset();
  stage_ = Stage::kNoFile;
  if (ok) {
    const Result<std::string> name = context_->directory->Publish(part_, Name());
    ok = name.ok();
    if (ok) info.file = *name;
    if (!ok) Failed(name.message());
  }
  if (!ok) info.status = TraceStatus::kWriteFailed;
  info.detail = problem_.empty() ? ending.detail() : problem_;
  ++incarnation_;
  info_changed_ = true;
}

}  // namespace ranktap::collector
