#include "collector/file/trace_state.h"

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <set>

#include "proto/encode_entry.h"

namespace ranktap::collector {
namespace {

// Enough to map the events that may still be on their way, at one reading a second.
constexpr size_t kClocksKept = 64;

template <typename Message>
bool Parse(std::span<const std::byte> payload, Message* message) {
  return message->ParseFromArray(payload.data(), static_cast<int>(payload.size()));
}

template <typename List, typename Key>
void MergeByKey(const List& from, List* into, Key key) {
  for (const auto& item : from) {
    auto at = std::find_if(into->begin(), into->end(),
                           [&](const auto& known) { return key(known) == key(item); });
    if (at == into->end()) {
      if (into->size() < kMaxHelloItems) *into->Add() = item;
    } else {
      *at = item;
    }
  }
}

}  // namespace

void TraceState::Amend(const v1::Hello& amendment, v1::Hello* hello) {
  v1::Hello plain = amendment;
  MergeByKey(amendment.devices(), hello->mutable_devices(), [](const auto& d) { return d.id(); });
  MergeByKey(amendment.libraries(), hello->mutable_libraries(),
             [](const auto& library) -> const std::string& { return library.name(); });
  MergeByKey(amendment.notes(), hello->mutable_notes(),
             [](const std::string& note) -> const std::string& { return note; });
  plain.clear_devices();
  plain.clear_libraries();
  plain.clear_notes();
  plain.clear_session();
  if (plain.has_process()) {
    auto& process = *plain.mutable_process();
    if (process.ns_pids_size() > 0) hello->mutable_process()->clear_ns_pids();
    if (process.command_line_size() > 0) hello->mutable_process()->clear_command_line();
  }
  hello->MergeFrom(plain);
}

uint64_t TraceState::NextEvent(uint32_t writer) const {
  const auto found = writers_.find(writer);
  return found == writers_.end() ? 0 : found->second.next_event;
}

// What lasting events name stays. Not each time: its cost is of all entries, its cause two bytes.
void TraceState::ForgetToldAgain() {
  constexpr size_t kWorth = 16;
  const size_t grown = dictionary_.size() - retained_bytes_;
  if (grown < (retained_bytes_ + lasting_->bytes()) / kWorth) return;
  EntrySet named;
  lasting_->ForEachName([&named](proto::EntryKind kind, uint64_t id) {
    (void)named.Insert(static_cast<uint32_t>(kind), id);
  });
  const std::string all = dictionary_.Whole();
  std::string retained;
  EntrySet entries;
  (void)ForEachEntry(
      std::as_bytes(std::span(all)), [&](uint32_t field, uint64_t id, std::string_view bytes) {
        const bool is_told_again =
            std::ranges::find(proto::kToldAgain, static_cast<proto::EntryKind>(field)) !=
            std::end(proto::kToldAgain);
        if (is_told_again && !named.Contains(field, id)) return;
        (void)entries.Insert(field, id);
        retained += bytes;
      });
  dictionary_ = {};
  dictionary_.Append(retained);
  entries_ = std::move(entries);
  retained_bytes_ = retained.size();
}

bool TraceState::TakeNewEntries(std::span<const std::byte> dictionary, std::string* fresh) {
  if (lasting_ &&
      std::ranges::equal(dictionary, std::as_bytes(std::span(proto::kToldAgainMessage))))
    ForgetToldAgain();
  const size_t room = kMaxDictionaryBytes - std::min(kMaxDictionaryBytes, dictionary_.size());
  if (dictionary.size() > room) return false;
  if (!ForEachEntry(dictionary, [](uint32_t, uint64_t, std::string_view) {})) return false;
  const size_t before = fresh->size();
  (void)ForEachEntry(dictionary, [&](uint32_t field, uint64_t id, std::string_view bytes) {
    if (entries_.Insert(field, id)) fresh->append(bytes);
  });
  const std::string_view added = std::string_view(*fresh).substr(before);
  dictionary_.Append(added);
  if (lasting_) lasting_->AddNames(std::as_bytes(std::span(added)));
  return true;
}

bool TraceState::NoteAccounts(const v1::Accounts& accounts) {
  if (!AreAccounts(accounts)) return false;
  for (const v1::Account& account : accounts.accounts()) {
    if (!accounts_.contains(account.writer()) && accounts_.size() >= kMaxWriters) return false;
    accounts_[account.writer()] = account;
  }
  return true;
}

bool TraceState::NoteClock(std::span<const std::byte> payload) {
  v1::ClockReadings readings;
  if (!Parse(payload, &readings)) return false;
  for (const v1::ClockReading& reading : readings.readings()) clocks_.push_back(reading);
  while (clocks_.size() > kClocksKept) clocks_.pop_front();
  return true;
}

bool TraceState::Note(const proto::FrameView& frame) {
  switch (frame.header.type) {
    case proto::FrameType::kEvents: {
      if (!writers_.contains(frame.header.writer) && writers_.size() >= kMaxWriters) return false;
      WriterState& writer = writers_[frame.header.writer];
      writer.next_event = frame.header.first_event + frame.header.events;
      for (size_t i = 0; i < proto::kFrameLossCount; ++i) {
        writer.lost[i] = std::max(writer.lost[i], frame.header.lost[i]);
      }
      if (lasting_) lasting_->Take(frame);
      return true;
    }
    case proto::FrameType::kDictionary: {
      std::string fresh;
      return TakeNewEntries(frame.payload, &fresh);
    }
    case proto::FrameType::kAmend: {
      v1::Hello amendment;
      if (!Parse(frame.payload, &amendment)) return false;
      if (hello_.ByteSizeLong() + frame.payload.size() > kMaxHelloBytes) return false;
      Amend(amendment, &hello_);
      return true;
    }
    case proto::FrameType::kClock:
      return NoteClock(frame.payload);
    case proto::FrameType::kGoodbye: {
      v1::Goodbye goodbye;
      if (!Parse(frame.payload, &goodbye) || !NoteAccounts(goodbye.accounts())) return false;
      last_words_ = goodbye;
      goodbye_ = true;
      return true;
    }
    case proto::FrameType::kAccounts: {
      v1::Accounts accounts;
      return Parse(frame.payload, &accounts) && NoteAccounts(accounts);
    }
    case proto::FrameType::kLoss: {
      v1::LostRange lost;
      if (!Parse(frame.payload, &lost)) return false;
      if (!writers_.contains(lost.writer()) && writers_.size() >= kMaxWriters) return false;
      uint64_t& next = writers_[lost.writer()].next_event;
      next = std::max(next, lost.first_event() + lost.events());
      return true;
    }
    case proto::FrameType::kGap: {
      v1::Gap gap;
      return Parse(frame.payload, &gap);
    }
    case proto::FrameType::kCost: {
      v1::Cost cost;
      return Parse(frame.payload, &cost);
    }
    default:
      return true;
  }
}

void TraceState::KeepLasting() {
  if (lasting_) return;
  lasting_.emplace();
  const std::string names = dictionary();
  lasting_->AddNames(std::as_bytes(std::span(names)));
}

bool TraceState::Restore(std::span<const std::byte> bytes) {
  v1::Checkpoint checkpoint;
  std::string dictionary, fresh;
  if (!ParseCheckpoint(bytes, &checkpoint, &dictionary)) return false;
  TraceState restored;
  if (!restored.TakeNewEntries(std::as_bytes(std::span(dictionary)), &fresh)) return false;
  restored.hello_ = checkpoint.hello();
  for (const v1::Position& position : checkpoint.positions()) {
    restored.writers_[position.writer()].next_event = position.next_event();
  }
  for (const v1::Account& account : checkpoint.accounts()) {
    restored.accounts_[account.writer()] = account;
  }
  restored.clocks_.assign(checkpoint.clocks().begin(), checkpoint.clocks().end());
  const v1::CheckpointOfKept kept = KeptPartOf(checkpoint);
  if (kept.dropped_before()) restored.KeepLasting();
  for (const std::string& bytes : kept.lasting()) {
    const proto::FrameView frame = proto::DecodeFrame(std::as_bytes(std::span(bytes)));
    if (restored.lasting_ && frame.status == proto::FrameStatus::kComplete) {
      restored.lasting_->Take(frame);
    }
  }
  *this = std::move(restored);
  return true;
}

std::string TraceState::EncodeCheckpoint(v1::Checkpoint extra) const {
  *extra.mutable_hello() = hello_;
  std::set<uint32_t> given;
  for (const v1::Position& position : extra.positions()) given.insert(position.writer());
  for (const auto& [id, writer] : writers_) {
    if (given.contains(id)) continue;
    v1::Position& position = *extra.add_positions();
    position.set_writer(id);
    position.set_next_event(writer.next_event);
  }
  for (const auto& [id, account] : accounts_) *extra.add_accounts() = account;
  for (const v1::ClockReading& reading : clocks_) *extra.add_clocks() = reading;
  std::string bytes = extra.SerializeAsString();
  if (lasting_) {
    v1::CheckpointOfKept kept;
    kept.set_dropped_before(true);
    lasting_->ForEach([&](const std::string& frame) { kept.add_lasting(frame); });
    bytes += kept.SerializeAsString();
  }
  protozero::pbf_writer(bytes).add_message(v1::Checkpoint::kDictionaryFieldNumber,
                                           dictionary_.Whole());
  return bytes;
}

uint64_t TraceState::MemoryBytes() const {
  // Nodes of the maps, with their messages; a hello's lists cost more than their bytes.
  constexpr uint64_t kWriterBytes = 192, kAccountBytes = 320, kHelloTimes = 4;
  return sizeof(*this) + dictionary_.bytes() + entries_.bytes() + writers_.size() * kWriterBytes +
         accounts_.size() * kAccountBytes + hello_.ByteSizeLong() * kHelloTimes +
         last_words_.detail().size() + (lasting_ ? lasting_->bytes() : 0);
}

uint64_t TraceState::CheckpointBytes() const {
  constexpr uint64_t kFieldBytes = 6;      // a tag and a length
  constexpr uint64_t kPositionBytes = 24;  // of two numbers
  uint64_t bytes = hello_.ByteSizeLong() + kFieldBytes + dictionary_.size() + kFieldBytes;
  bytes += writers_.size() * kPositionBytes;
  for (const auto& [id, account] : accounts_) bytes += account.ByteSizeLong() + kFieldBytes;
  for (const v1::ClockReading& reading : clocks_) bytes += reading.ByteSizeLong() + kFieldBytes;
  if (lasting_)
    lasting_->ForEach([&](const std::string& frame) { bytes += frame.size() + kFieldBytes; });
  return bytes;
}

}  // namespace ranktap::collector
