#include "collector/trace/load/trace_loader.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "collector/file/read_run_info.h"
#include "collector/file/trace_state.h"
#include "collector/trace/device_counters.h"
#include "collector/trace/framework/framework_allocations.h"
#include "collector/trace/framework/framework_groups.h"
#include "collector/trace/framework/framework_operators.h"
#include "collector/trace/framework/framework_tensors.h"
#include "collector/trace/launch_join.h"
#include "collector/trace/load/block_pipeline.h"
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

void ForEachReserved(Kernels& kernels, auto&& visit) {
  visit(kernels.start.array()), visit(kernels.end.array()), visit(kernels.correlation);
  visit(kernels.lane.array()), visit(kernels.name.array()), visit(kernels.shape.array());
}
void ForEachReserved(ApiCalls& calls, auto&& visit) {
  visit(calls.start.array()), visit(calls.end.array()), visit(calls.correlation);
  visit(calls.api.array()), visit(calls.writer);
}
constexpr size_t kMostReservedColumns = 6;
using PagesOfTable = std::array<PagesAhead, kMostReservedColumns>;

// A frame of 200 bytes may stand for 32,768 equal events, and compressed for more. An event of a
// real program takes a byte or more.
constexpr uint64_t kEventsAllowed = 1 << 20, kEventsAByte = 64;

class Loader {
 public:
  // `events`: that the file says it holds; 0: not known. `file_bytes` bounds how many are taken.
  Loader(Trace* trace, uint64_t events, uint64_t file_bytes, SpareColumns* spare)
      : trace_(trace), tables_(trace), most_events_(kEventsAllowed + file_bytes * kEventsAByte) {
    if (events < kFewEvents) return;
    const size_t rows = std::min(events, kMostReserved);
    const auto reserve = [rows, spare](auto& column) {
      if (spare != nullptr) spare->Lend(&column);
      column.Grow(rows);
      column.Truncate(0);
    };
    ForEachReserved(trace->kernels, reserve);
    ForEachReserved(trace->api_calls, reserve);
    reserved_ = true;
  }

  void AddBlock(const Block& block) {
    TakePages(&trace_->kernels, &pages_of_kernels_);
    TakePages(&trace_->api_calls, &pages_of_calls_);
    Add(block);
  }

  // Of `blocks`, which follow each other in the file from `reader` on, those that can be read, on
  // all processors; `reader` goes on behind them. False: the file is to be loaded block by block,
  // because what a malformed frame leaves can be taken back only before the next is decoded.
  [[nodiscard]] bool AddBlocks(std::span<const Block> blocks, TraceReader* reader, bool* all) {
    BlockPipeline pipeline(
        reader->path(), blocks, [this](BlockAhead* ahead) { return AddOfHost(ahead); },
        [this](BlockAhead* ahead) { return AddOfDevice(ahead); });
    if (!pipeline.Run()) return false;
    *all = pipeline.taken() == blocks.size();
    if (pipeline.taken() == 0) return true;
    const Block& last = blocks[pipeline.taken() - 1];
    reader->Seek(last.end(), last.header.sequence + 1);
    return true;
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
  template <typename Table>
  void TakePages(Table* table, PagesOfTable* pages) {
    if (!reserved_) return;
    size_t i = 0;
    ForEachReserved(*table, [&](auto& column) {
      (*pages)[i++].Prepare(column.data(), column.size() * sizeof(column[0]), column.bytes());
    });
  }
  // All of the block, but the events of its frames stay with `ahead` for AddOfDevice.
  bool AddOfHost(BlockAhead* ahead) {
    TakePages(&trace_->api_calls, &pages_of_calls_);
    ahead->frames.clear();
    frames_ = &ahead->frames;
    Add(ahead->block);
    frames_ = nullptr;
    return !has_late_lasting_ && std::ranges::all_of(ahead->frames, [this](const auto& frame) {
      return tables_.AddOfHost(frame);
    });
  }
  bool AddOfDevice(BlockAhead* ahead) {
    TakePages(&trace_->kernels, &pages_of_kernels_);
    return std::ranges::all_of(ahead->frames,
                               [this](const auto& frame) { return tables_.AddOfDevice(frame); });
  }
  void Add(const Block& block) {
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
    // Its bytes are gone before the device's half comes to them.
    if (frames_ != nullptr) has_late_lasting_ = true;
    return has_late_lasting_ || tables_.AddFrame({.payload = frame.payload,
                                                  .events = frame.header.events,
                                                  .writer = WriterIndex(frame.header.writer)});
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
    const EventFrame events{.payload = frame.payload,
                            .events = header.events,
                            .writer = index,
                            .events_missing = events_missing};
    if (frames_ == nullptr) return tables_.AddFrame(events);
    frames_->push_back(events);
    return true;
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
  bool reserved_ = false, has_checkpoint_ = false, has_late_lasting_ = false;
  std::vector<EventFrame>* frames_ = nullptr;  // where frames of events wait for both halves
  PagesOfTable pages_of_kernels_, pages_of_calls_;
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

// Events in the blocks that follow each other undamaged. An event takes a byte or more.
uint64_t EventsIn(std::span<const Block> blocks, uint64_t file_bytes) {
  uint64_t events = 0;
  for (const Block& block : blocks) events += block.header.events;
  return std::min(events, file_bytes);
}

// `at_once`: blocks that are taken in halves on all processors. Empty: a frame is malformed, and
// they are to be taken one by one.
std::optional<Trace> Load(TraceReader* reader, uint64_t events, std::span<const Block> at_once,
                          SpareColumns* spare) {
  Trace trace;
  trace.path = reader->path();
  Loader loader(&trace, events, reader->file_bytes(), spare);
  for (Block block; reader->Next(&block);) {
    loader.AddBlock(block);
    bool all = true;
    if (const auto blocks = BlocksAfter(block, at_once); !blocks.empty()) {
      if (!loader.AddBlocks(blocks, reader, &all)) return std::nullopt;
    }
    if (!all) at_once = {};
  }
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

}  // namespace

uint64_t CountEvents(const std::string& path) {
  Result<TraceReader> reader = TraceReader::Open(path);
  return reader ? EventsIn(reader->ListBlocks(), reader->file_bytes()) : 0;
}

Result<Trace> LoadTrace(const std::string& path, SpareColumns* spare) {
  Result<TraceReader> reader = TraceReader::Open(path);
  if (!reader) return Failure{reader.message()};
  const std::vector<Block> blocks = reader->ListBlocks();
  const uint64_t events = EventsIn(blocks, reader->file_bytes());
  if (events >= kFewEvents) {
    if (auto trace = Load(&*reader, events, blocks, spare)) return std::move(*trace);
    reader = TraceReader::Open(path);
    if (!reader) return Failure{reader.message()};
  }
  return *Load(&*reader, events, {}, spare);
}

}  // namespace ranktap::collector
