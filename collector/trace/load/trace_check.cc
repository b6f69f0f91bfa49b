#include "collector/trace/load/trace_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "collector/file/run_info.h"
#include "collector/file/trace_state.h"
#include "collector/trace/load/run_reader.h"
#include "collector/trace/sort_rows.h"
#include "proto/decode.h"

namespace ranktap::collector {
namespace {

template <typename Message>
bool Parse(std::span<const std::byte> payload, Message* message) {
  return message->ParseFromArray(payload.data(), static_cast<int>(payload.size()));
}

std::string Writer(uint32_t writer) { return fmt::format("writer {}", writer); }

uint64_t TotalLost(const v1::Account& account) {
  uint64_t total = 0;
  for (const uint64_t count : account.lost()) total += count;
  return total;
}

// The most problems that are kept of one file; the others are counted.
constexpr uint64_t kMostProblems = 1000;

class Checker {
 public:
  explicit Checker(TraceCheck* check) : check_(check) {}

  void CheckBlock(const Block& block) {
    offset_ = block.offset;
    ++check_->blocks;
    ends_with_index_ = block.header.type == BlockType::kIndex;
    v1::BlockEntry& entry = blocks_.emplace_back();
    entry.set_offset(block.offset);
    entry.set_type(static_cast<uint32_t>(block.header.type));
    entry.set_events(block.header.events);
    switch (block.header.type) {
      case BlockType::kFrames:
        return CheckFrames(block);
      case BlockType::kCheckpoint:
        return CheckCheckpoint(block);
      case BlockType::kIndex:
        return CheckIndex(block);
    }
    check_->notes.push_back(fmt::format("a block of a newer version at offset {}", offset_));
  }

  // After the last block.
  void CheckEnd() {
    // A writer that had its last event before is where it was.
    for (const auto& [id, next] : base_) {
      if (!check_->dropped_before || started_.contains(id) || !HasRoomFor(id)) continue;
      check_->writers[id].first_event = check_->writers[id].next_event = next;
    }
    for (size_t kind = 0; kind < needed_.size(); ++kind) {
      for (size_t id = 1; id < needed_[kind].size(); ++id) {
        if (!needed_[kind][id] || names_.Contains(static_cast<uint32_t>(kind), id)) continue;
        Problem(fmt::format(
            "an event names dictionary entry {} of kind {}, which is not in the file", id, kind));
        break;  // one a kind says it
      }
    }
    if (check_->closed && !ends_with_index_) Problem("the file is closed and has no index");
    if (problems_ > kMostProblems) {
      check_->problems.push_back(
          {offset_, 0, "and " + std::to_string(problems_ - kMostProblems) + " more"});
    }
  }

 private:
  void Problem(std::string what) {
    ++problems_;
    if (problems_ <= kMostProblems) check_->problems.push_back({offset_, 0, std::move(what)});
  }

  void CheckFrames(const Block& block) {
    uint64_t events = 0;
    uint32_t frames = 0;
    for (auto rest = block.raw; !rest.empty();) {
      const proto::FrameView frame = proto::DecodeFrame(rest);
      if (frame.status != proto::FrameStatus::kComplete) return Problem("a malformed frame");
      rest = rest.subspan(frame.consumed);
      ++frames;
      events += frame.header.events;
      CheckFrame(frame);
    }
    if (frames != block.header.frames || events != block.header.events) {
      Problem(fmt::format("the block says {} frames and {} events, it has {} and {}",
                          block.header.frames, block.header.events, frames, events));
    }
    check_->frames += frames;
    check_->events += events;
  }

  void CheckFrame(const proto::FrameView& frame) {
    switch (frame.header.type) {
      case proto::FrameType::kEvents:
        return CheckEvents(frame);
      case proto::FrameType::kDictionary:
        if (!AddNames(frame.payload)) Problem("a dictionary does not parse");
        return;
      case proto::FrameType::kLoss: {
        v1::LostRange lost;
        if (!Parse(frame.payload, &lost)) return Problem("a lost range does not parse");
        return CheckLostRange(lost);
      }
      case proto::FrameType::kAccounts: {
        v1::Accounts accounts;
        if (!Parse(frame.payload, &accounts)) return Problem("accounts do not parse");
        return AddAccounts(accounts);
      }
      case proto::FrameType::kGoodbye: {
        v1::Goodbye goodbye;
        if (!Parse(frame.payload, &goodbye)) return Problem("a goodbye does not parse");
        return AddAccounts(goodbye.accounts());
      }
      default:
        return;
    }
  }

  bool AddNames(std::span<const std::byte> dictionary) {
    return ForEachEntry(dictionary, [this](uint32_t field, uint64_t id, std::string_view) {
      names_.Insert(field, id);
    });
  }

  void AddAccounts(const v1::Accounts& accounts) {
    if (!AreAccounts(accounts)) return Problem("accounts with losses that no writer has");
    for (const v1::Account& account : accounts.accounts()) AddAccount(account);
  }

  // Whether there is one, or may be: a damaged file can name any number of them.
  bool HasRoomFor(uint32_t id) {
    if (check_->writers.size() < kMaxWriters || check_->writers.contains(id)) return true;
    Problem("more writers than a process can have");
    return false;
  }

  void AddAccount(const v1::Account& account) {
    if (!HasRoomFor(account.writer())) return;
    CheckedWriter& writer = check_->writers[account.writer()];
    writer.has_account = true;
    writer.account = account;
  }

  // Positions go on where they ended; `first` of a writer's first frame is the file's base.
  CheckedWriter& Continue(uint32_t id, uint64_t first, uint64_t events) {
    CheckedWriter& writer = check_->writers[id];
    if (!started_.contains(id)) {
      started_.insert(id);
      writer.first_event = writer.next_event = base_.contains(id) ? base_.at(id) : 0;
    }
    if (first > writer.next_event) {
      Problem(
          fmt::format("{}: events {} to {} are missing", Writer(id), writer.next_event, first - 1));
    } else if (first < writer.next_event) {
      Problem(fmt::format("{}: events from {} on are there twice", Writer(id), first));
    }
    writer.next_event = std::max(writer.next_event, first + events);
    writer.offset = offset_;
    return writer;
  }

  void CheckLostRange(const v1::LostRange& lost) {
    if (!HasRoomFor(lost.writer())) return;
    Continue(lost.writer(), lost.first_event(), lost.events()).declared_lost += lost.events();
  }

  void CheckEvents(const proto::FrameView& frame) {
    const uint32_t id = frame.header.writer;
    if (!HasRoomFor(id)) return;
    Continue(id, frame.header.first_event, frame.header.events).stored += frame.header.events;
    for (size_t i = 0; i < proto::kFrameLossCount; ++i) {
      uint64_t& largest = losses_[id][i];
      if (frame.header.lost[i] < largest) {
        Problem(fmt::format("{}: its loss counter '{}' goes backwards", Writer(id),
                            proto::kLossInfo[i].name));
      }
      largest = std::max(largest, frame.header.lost[i]);
    }
    const bool ok =
        proto::DecodeEvents(frame.payload, frame.header.events,
                            [this]<typename Event>(const proto::Section<Event>& section) {
                              return CheckSection(section);
                            });
    if (!ok) {
      Problem(fmt::format("{}: the frame with events from {} on does not decode", Writer(id),
                          frame.header.first_event));
    }
  }

  void Need(size_t kind, uint64_t id) {
    std::vector<bool>& needed = needed_[kind];
    if (id < needed.size()) {
      needed[id] = true;
    } else {
      // Beyond what a dictionary may hold, any number stands for all.
      needed.resize(std::min<uint64_t>(id, kMaxEntryId) + 1024);
      needed[std::min<uint64_t>(id, kMaxEntryId + 1)] = true;
    }
  }

  template <typename Event>
  bool CheckSection(const proto::Section<Event>& section) {
    bool ok = true;
    size_t index = 0;
    proto::ForEachColumn<Event>([&]<typename C>() {
      const auto bytes = section.columns[index++];
      ok = ok && proto::DecodeColumn<C>(bytes, section.count, [&](uint32_t, uint64_t value) {
             if constexpr (C::kEncoding == proto::Encoding::kRef) {
               Need(static_cast<size_t>(C::kEntryKind), value);
             }
           });
    });
    return ok && proto::DecodePayloads(section, [](uint32_t, std::span<const std::byte>) {});
  }

  void CheckCheckpoint(const Block& block) {
    v1::Checkpoint checkpoint;
    std::string dictionary;
    if (!ParseCheckpoint(block.raw, &checkpoint, &dictionary)) {
      return Problem("a checkpoint does not parse");
    }
    if (!AddNames(std::as_bytes(std::span(dictionary)))) Problem("a dictionary does not parse");
    check_->session = ToHex(checkpoint.hello().session());
    if (checkpoint.has_ending()) check_->ending = checkpoint.ending();
    check_->dropped_before |= KeptPartOf(checkpoint).dropped_before();
    for (const v1::Account& account : checkpoint.accounts()) AddAccount(account);
    for (const v1::Position& position : checkpoint.positions()) {
      const uint32_t id = position.writer();
      if (!has_checkpoint_) {
        base_[id] = position.next_event();
      } else if (started_.contains(id) && check_->writers[id].next_event != position.next_event()) {
        Problem(fmt::format("{}: the checkpoint says position {}, the frames before it {}",
                            Writer(id), position.next_event(), check_->writers[id].next_event));
      }
    }
    has_checkpoint_ = true;
  }

  // It lists the blocks since the index before.
  void CheckIndex(const Block& block) {
    const size_t before = blocks_.size() - 1;
    size_t listed = 0;
    bool same = true;
    // One by one: an index of two bytes an entry would be gigabytes of messages.
    const auto check = [&](std::string_view bytes) {
      v1::BlockEntry entry;
      same = same && listed < before &&
             entry.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) &&
             entry.offset() == blocks_[listed].offset() && entry.type() == blocks_[listed].type() &&
             entry.events() == blocks_[listed].events();
      ++listed;
    };
    const bool parses = ForEachBlockEntry(block.raw, check);
    blocks_.clear();
    if (!parses) return Problem("the index does not parse");
    same = same && listed == before;
    if (!same) Problem("the index does not list the blocks that are there");
  }

  TraceCheck* check_;
  uint64_t offset_ = 0;
  EntrySet names_;
  std::array<std::vector<bool>, proto::kEntryKinds> needed_;  // by kind and id
  std::map<uint32_t, uint64_t> base_;                         // positions of the first checkpoint
  std::set<uint32_t> started_;
  std::map<uint32_t, proto::LossCounts> losses_;
  std::vector<v1::BlockEntry> blocks_;  // since the last index
  uint64_t problems_ = 0;
  bool has_checkpoint_ = false;
  bool ends_with_index_ = false;
};

// Adds up one writer of a process whose last file this is.
void CheckAccount(uint32_t id, const CheckedWriter& writer, TraceCheck* check) {
  const auto problem = [&](const std::string& what) {
    check->problems.push_back({writer.offset, 0, fmt::format("{}: {}", Writer(id), what)});
  };
  if (!writer.has_account) {
    if (check->ending.how() == v1::Ending::HOW_ABANDONED || !check->closed) {
      check->notes.push_back(fmt::format(
          "{}: no final counters; no collector saw the end of its process", Writer(id)));
    } else {
      problem("its final counters are missing");
    }
    return;
  }
  const uint64_t lost = TotalLost(writer.account);
  check->lost += lost + writer.declared_lost;
  if (check->ending.how() == v1::Ending::HOW_ABANDONED || !check->closed) return;
  if (writer.account.committed() != writer.next_event) {
    problem(fmt::format("events {} to {} are missing at the end", writer.next_event,
                        writer.account.committed()));
  }
  if (writer.account.produced() != writer.next_event + lost) {
    problem(fmt::format("produced {}, but {} stored or declared lost here and {} counted as lost",
                        writer.account.produced(), writer.next_event, lost));
  }
}

// The files of one process, in any order: each writer's parts must follow each other from 0.
void CheckProcess(const std::vector<TraceCheck*>& files) {
  std::map<uint32_t, std::vector<std::pair<CheckedWriter*, TraceCheck*>>> parts;
  for (TraceCheck* const file : files) {
    for (auto& [id, writer] : file->writers) parts[id].emplace_back(&writer, file);
  }
  for (auto& [id, list] : parts) {
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first->first_event, a.first->next_event) <
             std::pair(b.first->first_event, b.first->next_event);
    });
    const bool is_kept =
        std::ranges::any_of(list, [](const auto& part) { return part.second->dropped_before; });
    uint64_t next = is_kept ? list.front().first->first_event : 0;
    if (next > 0) list.front().second->dropped_events += next;
    for (const auto& [writer, file] : list) {
      const bool holds_any = writer->next_event > writer->first_event;
      if (holds_any && writer->first_event != next) {
        file->problems.push_back({writer->offset, 0,
                                  fmt::format("{}: events {} to {} are in no file of this run",
                                              Writer(id), next, writer->first_event - 1)});
      }
      // An account alone (of a writer without events) takes no part.
      if (holds_any) next = writer->next_event;
      if (!holds_any && next > 0) writer->next_event = next;
    }
    CheckAccount(id, *list.back().first, list.back().second);
  }
}

}  // namespace

Result<TraceCheck> CheckTrace(const std::string& path) {
  Result<TraceReader> reader = TraceReader::Open(path);
  if (!reader) return Failure{reader.message()};
  TraceCheck check;
  check.path = path;
  check.bytes = reader->file_bytes();
  check.closed = reader->closed();
  Checker checker(&check);
  Block block;
  while (reader->Next(&block)) checker.CheckBlock(block);
  checker.CheckEnd();
  for (const Damage& damage : reader->damage()) check.problems.push_back(damage);
  if (!check.closed) {
    check.problems.push_back({check.bytes, 0, "the file was not closed: it ends here"});
  }
  return check;
}

Result<RunCheck> CheckRun(const std::string& path) {
  Result<RunFiles> files = FindTraces(path);
  if (!files) return Failure{files.message()};
  RunCheck run;
  run.problems = files->problems;
  if (files->traces.empty() && !files->has_info) {
    run.problems.push_back(fmt::format("{}: no run: neither run.json nor traces in it", path));
  }
  for (const std::string& file : files->traces) {
    Result<TraceCheck> check = CheckTrace(file);
    if (check) {
      run.traces.push_back(std::move(*check));
    } else {
      run.problems.push_back(check.message());
    }
  }
  std::map<std::string, std::vector<TraceCheck*>> by_process;
  for (TraceCheck& check : run.traces) by_process[check.session].push_back(&check);
  for (auto& [session, checks] : by_process) CheckProcess(checks);
  for (TraceCheck& check : run.traces) {
    if (check.dropped_events > 0) {
      check.notes.push_back(fmt::format("--keep dropped {} earlier events", check.dropped_events));
    }
    SortRows(&check.problems, [](const Damage& a, const Damage& b) { return a.offset < b.offset; });
  }
  return run;
}

bool RunCheck::ok() const {
  return problems.empty() && std::all_of(traces.begin(), traces.end(),
                                         [](const TraceCheck& check) { return check.ok(); });
}

}  // namespace ranktap::collector
