#include "collector/trace/load/trace_loader.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "collector/file/read_run_info.h"
#include "collector/file/trace_state.h"
#include "collector/trace/device_counters.h"
#include "collector/trace/framework/framework_allocations.h"
#include "collector/trace/framework/framework_groups.h"
#include "collector/trace/framework/framework_operators.h"
#include "collector/trace/framework/framework_tensors.h"
#include "collector/trace/launch_join.h"
#include "collector/trace/load/event_tables.h"
#include "collector/trace/load/time_mapping.h"
#include "collector/trace/operator_join.h"
#include "collector/trace/pages_ahead.h"
#include "collector/trace/table_columns.h"

namespace ranktap::collector {
namespace {

template <typename Message>
bool Parse(std::span<const std::byte> payload, Message* message) {
  return message->ParseFromArray(payload.data(), static_cast<int>(payload.size()));
}

// What a table that may hold all events needs, at once: columns do not move while they grow.
// Untouched, it costs address space alone, and Finish() gives it back.
constexpr uint64_t kFewEvents = 1 << 18, kMostReserved = 1 << 26;

void ForEachReserved(Trace& trace, auto&& visit) {
  Kernels& kernels = trace.kernels;
  visit(kernels.start), visit(kernels.end), visit(kernels.correlation), visit(kernels.lane);
  visit(kernels.name), visit(kernels.shape);
  ApiCalls& calls = trace.api_calls;
  visit(calls.start), visit(calls.end), visit(calls.correlation), visit(calls.api);
  visit(calls.writer);
}
constexpr size_t kReserved = 11;

// A frame of 200 bytes may stand for 32,768 equal events, and compressed for more. An event of a
// real program takes a byte or more.
constexpr uint64_t kEventsAllowed = 1 << 20, kEventsAByte = 64;

class Loader {
 public:
  // `events`: that the file says it holds; 0: not known. `file_bytes` bounds how many are taken.
  Loader(Trace* trace, uint64_t events, uint64_t file_bytes)
      : trace_(trace), tables_(trace), most_events_(kEventsAllowed + file_bytes * kEventsAByte) {
    if (events < kFewEvents) return;
    const size_t rows = std::min(events, kMostReserved);
    ForEachReserved(*trace, [rows](auto& column) {
      column.Grow(rows);
      column.Truncate(0);
    });
    reserved_ = true;
  }

  void AddBlock(const Block& block) {
    if (reserved_) TakePages();
    switch (block.header.type) {
      case BlockType::kFrames:
        return AddFrames(block);
      case BlockType::kCheckpoint:
        if (!AddCheckpoint(block.raw)) Damaged(block.offset, "checkpoint does not parse");
        return;
      default:
        return;  // the index is for those who jump; other types are of a newer version
    }
  }

  void Finish() {
    // Ranges go on if only CUPTI was given up.
    for (const auto& [key, gap] : gaps_) {
      if (gap.source().empty() || gap.source() == "nvtx") {
        tables_.matcher().AddGap(gap.start_ticks());
      }
    }
    MapTimes({.readings = readings_, .gaps = gaps_, .open_calls = open_calls_}, &tables_.matcher(),
             trace_);
    AddDeviceCounters(device_samples_, trace_);
    SortTables(trace_);
    TakeFrameworkOperators(trace_);
    SortNested(trace_->operators);
    JoinLaunches(trace_);
    NestOperators(trace_);
    TakeFrameworkTensors(trace_);
    TakeFrameworkAllocations(trace_);
    TakeFrameworkGroups(trace_);
    JoinOperators(trace_);
    ShrinkTables(trace_);
  }

 private:
  void TakePages() {
    size_t i = 0;
    ForEachReserved(*trace_, [&](auto& column) {
      pages_[i++].Prepare(column.data(), column.size() * sizeof(column[0]), column.bytes());
    });
  }
  void Damaged(uint64_t offset, std::string what) {
    trace_->damage.push_back({offset, 0, std::move(what)});
  }

  void AddFrames(const Block& block) {
    for (auto rest = block.raw; !rest.empty();) {
      const proto::FrameView frame = proto::DecodeFrame(rest);
      if (frame.status != proto::FrameStatus::kComplete) {
        Damaged(block.offset, "a frame in this block is malformed");
        return;
      }
      rest = rest.subspan(frame.consumed);
      if (!AddFrame(frame)) Damaged(block.offset, "a frame's payload does not parse");
    }
  }

  bool AddCheckpoint(std::span<const std::byte> raw) {
    v1::Checkpoint checkpoint;
    std::string dictionary;
    if (!ParseCheckpoint(raw, &checkpoint, &dictionary)) return false;
    trace_->hello = checkpoint.hello();
    for (const v1::ClockReading& reading : checkpoint.clocks()) AddReading(reading);
    for (const v1::Account& account : checkpoint.accounts()) AddAccount(account);
    if (checkpoint.has_ending()) trace_->ending = checkpoint.ending();
    if (!trace_->dictionary.Add(std::as_bytes(std::span(dictionary)))) return false;
    // Later checkpoints repeat what is in the file.
    if (std::exchange(has_checkpoint_, true)) return true;
    const v1::CheckpointOfKept kept = KeptPartOf(checkpoint);
    trace_->dropped_before = kept.dropped_before();
    return std::ranges::all_of(kept.lasting(),
                               [this](const std::string& frame) { return AddLasting(frame); });
  }

  // Its positions were in an earlier file.
  bool AddLasting(const std::string& bytes) {
    const proto::FrameView frame = proto::DecodeFrame(std::as_bytes(std::span(bytes)));
    const uint64_t room = most_events_ - std::min(most_events_, lasting_events_);
    if (frame.status != proto::FrameStatus::kComplete || frame.header.events > room) return false;
    if (!writers_.contains(frame.header.writer) && writers_.size() >= kMaxWriters) return false;
    lasting_events_ += frame.header.events;
    return tables_.AddFrame(frame, WriterIndex(frame.header.writer), false);
  }

  // Checkpoints repeat readings that came in frames.
  void AddReading(const v1::ClockReading& reading) {
    if (known_readings_.insert(reading.monotonic_raw_ns()).second) readings_.push_back(reading);
  }

  uint16_t WriterIndex(uint32_t id) {
    const auto [at, is_new] = writers_.try_emplace(id, static_cast<uint16_t>(writers_.size()));
    if (is_new) {
      trace_->writers.emplace_back();
      trace_->writers.back().id = id;
    }
    return at->second;
  }

  void AddAccount(const v1::Account& account) {
    if (!writers_.contains(account.writer()) && writers_.size() >= kMaxWriters) return;
    Writer& writer = trace_->writers[WriterIndex(account.writer())];
    writer.has_account = true;
    writer.account = account;
    for (int i = 0; i < std::min<int>(account.lost_size(), proto::kLossCount); ++i) {
      writer.lost[i] = std::max(writer.lost[i], account.lost(i));
    }
  }

  void AddLostRange(const v1::LostRange& lost) {
    const uint16_t index = WriterIndex(lost.writer());
    Writer& writer = trace_->writers[index];
    const auto store = static_cast<uint32_t>(proto::Loss::kStore);
    writer.declared[lost.loss() < proto::kLossCount ? lost.loss() : store] += lost.events();
    writer.next_event = std::max(writer.next_event, lost.first_event() + lost.events());
    holes_.insert(index);
  }

  bool AddEvents(const proto::FrameView& frame) {
    const proto::FrameHeader& header = frame.header;
    if (header.events > most_events_ - std::min(most_events_, trace_->events)) return false;
    if (!writers_.contains(header.writer) && writers_.size() >= kMaxWriters) return false;
    const uint16_t index = WriterIndex(header.writer);
    Writer& writer = trace_->writers[index];
    const bool is_first = writer.events == 0;
    if (is_first) writer.first_event = header.first_event;
    if (!is_first && header.first_event < writer.next_event) return false;
    const bool events_missing =
        holes_.erase(index) > 0 || (!is_first && header.first_event > writer.next_event);
    for (size_t i = 0; i < proto::kFrameLossCount; ++i) {
      writer.lost[i] = std::max(writer.lost[i], header.lost[i]);
    }
    writer.next_event = header.first_event + header.events;
    writer.events += header.events;
    trace_->events += header.events;
    return tables_.AddFrame(frame, index, events_missing);
  }

  bool AddFrame(const proto::FrameView& frame) {
    switch (frame.header.type) {
      case proto::FrameType::kEvents:
        return AddEvents(frame);
      case proto::FrameType::kDictionary:
        return trace_->dictionary.Add(frame.payload);
      case proto::FrameType::kAmend: {
        v1::Hello amendment;
        if (!Parse(frame.payload, &amendment)) return false;
        TraceState::Amend(amendment, &trace_->hello);
        return true;
      }
      case proto::FrameType::kClock: {
        v1::ClockReadings readings;
        if (!Parse(frame.payload, &readings)) return false;
        for (const v1::ClockReading& reading : readings.readings()) AddReading(reading);
        return true;
      }
      case proto::FrameType::kGap: {
        v1::Gap gap;
        if (!Parse(frame.payload, &gap)) return false;
        v1::Gap& known = gaps_[{gap.source(), gap.start_ticks()}];  // told again when it ends
        if (known.end_ticks() == 0) known = gap;
        return true;
      }
      default:
        return AddControl(frame);
    }
  }

  bool AddControl(const proto::FrameView& frame) {
    switch (frame.header.type) {
      case proto::FrameType::kCost:
        return Parse(frame.payload, &trace_->cost);
      case proto::FrameType::kGoodbye: {
        v1::Goodbye goodbye;
        if (!Parse(frame.payload, &goodbye)) return false;
        for (const v1::Account& account : goodbye.accounts().accounts()) AddAccount(account);
        return true;
      }
      case proto::FrameType::kAccounts: {
        v1::Accounts accounts;
        if (!Parse(frame.payload, &accounts)) return false;
        trace_->after_death |= accounts.after_death();
        for (const v1::Account& account : accounts.accounts()) AddAccount(account);
        return true;
      }
      case proto::FrameType::kLoss: {
        v1::LostRange lost;
        if (!Parse(frame.payload, &lost)) return false;
        if (!writers_.contains(lost.writer()) && writers_.size() >= kMaxWriters) return false;
        AddLostRange(lost);
        return true;
      }
      case proto::FrameType::kOpenCalls:
        return Parse(frame.payload, &open_calls_);
      case proto::FrameType::kDeviceSamples: {
        v1::DeviceSamples samples;
        if (!Parse(frame.payload, &samples)) return false;
        device_samples_.MergeFrom(samples);
        return true;
      }
      default:
        return true;
    }
  }

  Trace* trace_;
  EventTables tables_;
  uint64_t most_events_;
  uint64_t lasting_events_ = 0;
  bool reserved_ = false, has_checkpoint_ = false;
  std::array<PagesAhead, kReserved> pages_;
  std::map<uint32_t, uint16_t> writers_;
  std::vector<v1::ClockReading> readings_;
  std::set<uint64_t> known_readings_;
  std::set<uint16_t> holes_;  // writers with events declared lost right before their next frame
  v1::DeviceSamples device_samples_;
  GapsByStart gaps_;
  v1::OpenCalls open_calls_;
};

void DescribeWriters(Trace* trace) {
  for (Writer& writer : trace->writers) {
    const v1::Writer* const entry = trace->dictionary.Writer(writer.id);
    if (entry == nullptr) continue;
    writer.kind = entry->kind();
    writer.thread = entry->thread();
    writer.name = entry->name();
  }
}

}  // namespace

namespace {

// Events in the blocks that follow each other undamaged. An event takes a byte or more.
uint64_t EventsIn(TraceReader* reader) {
  uint64_t events = 0;
  for (const Block& block : reader->ListBlocks()) events += block.header.events;
  return std::min(events, reader->file_bytes());
}

}  // namespace

uint64_t CountEvents(const std::string& path) {
  Result<TraceReader> reader = TraceReader::Open(path);
  return reader ? EventsIn(&*reader) : 0;
}

Result<Trace> LoadTrace(const std::string& path) {
  Result<TraceReader> reader = TraceReader::Open(path);
  if (!reader) return Failure{reader.message()};
  Trace trace;
  trace.path = path;
  Loader loader(&trace, EventsIn(&*reader), reader->file_bytes());
  Block block;
  while (reader->Next(&block)) loader.AddBlock(block);
  loader.Finish();
  trace.closed = reader->closed();
  trace.damage.insert(trace.damage.begin(), reader->damage().begin(), reader->damage().end());
  DescribeWriters(&trace);
  Redact(&trace.hello);
  Describe(trace.hello, &trace.info);
  trace.info.events = trace.events;
  trace.info.bytes = reader->file_bytes();
  return trace;
}

}  // namespace ranktap::collector
