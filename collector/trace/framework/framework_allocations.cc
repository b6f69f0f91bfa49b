#include "collector/trace/framework/framework_allocations.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>

#include "collector/file/json.h"
#include "collector/trace/framework/memory_categories.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"
#include "collector/trace/table_columns.h"
#include "proto/framework_marks.h"
#include "proto/operator_payload.h"

namespace ranktap::collector {
namespace {

constexpr uint8_t kCuda = 1;  // c10::DeviceType
constexpr int64_t kLargest = int64_t{1} << 42;

// In the order in which they count where they have the same time.
enum class Change : uint8_t { kWindow, kReserve, kAllocate, kFree, kTold, kAlive };

struct Step {
  int64_t time = 0;
  Change change{};
  uint8_t device = 0;
  char told = 0;
  uint16_t writer = kAnyWriter;
  uint32_t name = 0;
  uint32_t stack = 0;
  uint64_t address = 0;
  int64_t bytes = 0;  // kReserve: the change
};

constexpr proto::RowFields kTensor = proto::kTensorsRow;
constexpr proto::RowFields kChange = proto::kHistoryRow;
constexpr proto::RowFields kFailure = proto::kOutOfMemoryRow;

class FrameworkAllocations {
 public:
  explicit FrameworkAllocations(Trace* trace) : trace_(trace) {}

  void Take() {
    ReadTensors();
    ReadHistory();
    ReadFailures();
    MoveMarks();
    if (steps_.empty()) return;
    std::stable_sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
      return a.time != b.time ? a.time < b.time : a.change < b.change;
    });
    for (const Step& step : steps_) Apply(step);
    std::stable_sort(blocks_.begin(), blocks_.end(),
                     [](const MemoryBlock& a, const MemoryBlock& b) { return a.start < b.start; });
    EmitRows();
  }

 private:
  static bool IsNumbers(const Json& row, size_t count) {
    if (!row.is_array() || row.size() < count) return false;
    return std::all_of(row.begin(), row.begin() + static_cast<ptrdiff_t>(count),
                       [](const Json& cell) { return cell.is_number_unsigned(); });
  }

  static bool IsTensor(const Json& row) {
    return IsNumbers(row, kTensor["kind"]) && row.size() == kTensor.size() &&
           row[kTensor["kind"]].is_string() && row[kTensor["kind"]].text().size() == 1 &&
           row[kTensor["device"]].is_number_unsigned() && row[kTensor["name"]].is_string();
  }

  void ReadTensors() {
    for (const MarkedLine& line :
         MarkedLinesWithRows(*trace_, kMemoryDomain, proto::kTensorsMark)) {
      const Json row = ParseJson(line.text);
      if (!IsTensor(row)) continue;
      steps_.push_back({.time = trace_->marks.start[line.row],
                        .change = Change::kTold,
                        .device = row[kTensor["device"]].get<uint8_t>(),
                        .told = row[kTensor["kind"]].text()[0],
                        .name = Intern(row[kTensor["name"]].text()),
                        .address = row[kTensor["address"]].get<uint64_t>(),
                        .bytes = Bounded(row[kTensor["bytes"]].get<int64_t>())});
    }
  }

  void ReadHistory() {
    for (const MarkedLine& line :
         MarkedLinesWithRows(*trace_, kMemoryDomain, proto::kHistoryMark)) {
      const Json row = ParseJson(line.text);
      if (!IsNumbers(row, kChange["stack"])) continue;
      const auto device = row[kChange["device"]].get<uint8_t>();
      const int64_t end = trace_->marks.start[line.row];
      const auto us = std::min<int64_t>(row[kChange["time_us"]].get<int64_t>(), INT64_MAX / 2000);
      const int64_t time = us == 0 ? end : us * 1000 - trace_->realtime_offset_ns;
      const int64_t bytes = Bounded(row[kChange["bytes"]].get<int64_t>());
      Step step{.time = std::min(time, end),
                .device = device,
                .address = row[kChange["address"]].get<uint64_t>(),
                .bytes = bytes};
      constexpr size_t kStack = kChange["stack"];
      if (row.size() > kStack && row[kStack].is_string()) {
        step.stack = Intern(row[kStack].text());
      }
      switch (row[kChange["action"]].get<int>()) {
        case proto::kBlockHeld:
          step.change = Change::kAlive;
          break;
        case proto::kBlockAllocated:
          step.change = Change::kAllocate;
          break;
        case proto::kBlockFreed:
          step.change = Change::kFree;
          break;
        case proto::kSegmentAllocated:
          if (us == 0) {
            reserved_[device] += bytes;
            continue;
          }
          reserved_[device] -= bytes;
          step.change = Change::kReserve;
          break;
        case proto::kSegmentFreed:
          reserved_[device] += bytes;
          step.change = Change::kReserve;
          step.bytes = -bytes;
          break;
        default:
          OutOfMemory(bytes, device);
          continue;
      }
      steps_.push_back(step);
    }
  }

  // The GPU's allocator told this as it failed.
  void ReadFailures() {
    for (const std::string_view line :
         MarkedLines(*trace_, kMemoryDomain, proto::kOutOfMemoryMark)) {
      const Json row = ParseJson(line);
      if (!IsNumbers(row, kFailure.size())) continue;
      OutOfMemory(
          row[kFailure["asked"]].get<uint64_t>(), row[kFailure["device"]].get<uint8_t>(),
          fmt::format("; PyTorch held {}, free were {}", row[kFailure["held"]].get<uint64_t>(),
                      row[kFailure["free"]].get<uint64_t>()));
    }
  }

  void MoveMarks() {
    Ranges& marks = trace_->marks;
    std::vector<uint32_t> kept;
    for (uint32_t row = 0; row < marks.size(); ++row) {
      const bool is_memory = trace_->dictionary.Domain(marks.domain[row]) == kMemoryDomain;
      if (marks.payload_type.At(row) == proto::kAllocationPayload) {
        AddMark(marks, row);
        continue;
      }
      if (is_memory && trace_->dictionary.String(marks.name[row]) == proto::kWindowMark) {
        steps_.push_back({.time = marks.start[row], .change = Change::kWindow});
      }
      kept.push_back(row);
    }
    const size_t rows = marks.size();
    if (kept.size() == rows) return;
    ForEachColumnOf(marks, [rows](auto& column) {
      if (!column.empty()) column.PadTo(rows);
    });
    PermuteTable(marks, kept);
  }

  void AddMark(const Ranges& marks, uint32_t row) {
    // Bytes that were not given out are not summed: they are said as the program asked for them.
    if (marks.name[row] != 0) return OutOfMemory(marks.payload.At(row), 0);
    const int64_t bytes = Bounded(static_cast<int64_t>(marks.payload.At(row)));
    steps_.push_back({.time = marks.start[row],
                      .change = bytes == 0 ? Change::kFree : Change::kAllocate,
                      .writer = marks.writer[row],
                      .address = uint64_t{marks.color.At(row)} << 32 | marks.category.At(row),
                      .bytes = bytes});
  }

  void OutOfMemory(uint64_t bytes, uint8_t device, const std::string& detail = {}) {
    // With what the process told of itself: the reader makes TraceInfo::notes of these.
    trace_->hello.add_notes(fmt::format("out of memory: {} bytes were asked for{}{}", bytes,
                                        device == 0 ? "" : fmt::format(" of GPU {}", device - 1),
                                        detail));
  }

  void Apply(const Step& step) {
    const auto key = std::pair(step.device, step.address);
    const auto live = live_.find(key);
    switch (step.change) {
      case Change::kWindow:
        OpenOrClose(step.time);
        return;
      case Change::kAllocate:
        if (live != live_.end()) blocks_[live->second].end = step.time;  // its release was lost
        live_[key] = Add(step, step.time, false);
        return;
      case Change::kFree:
        if (live != live_.end()) {
          blocks_[live->second].end = step.time;
          live_.erase(live);
        } else if (step.bytes > 0) {  // the history says how much
          blocks_[Add(step, window_, true)].end = step.time;
        }
        return;
      case Change::kTold:
      case Change::kAlive: {
        const size_t block =
            live != live_.end() ? live->second : live_[key] = Add(step, window_, true);
        if (step.told == 0) return;
        blocks_[block].told = step.told;
        blocks_[block].owner = step.name;
        return;
      }
      case Change::kReserve:
        return;
    }
  }

  // Nobody knows whether a block is still there that was not seen to go since the last window.
  void OpenOrClose(int64_t time) {
    is_open_ = !is_open_;
    if (!is_open_) return;
    window_ = time;
    for (const auto& [key, block] : live_) blocks_[block].end = time;
    live_.clear();
  }

  size_t Add(const Step& step, int64_t start, bool preexisting) {
    blocks_.push_back({.start = start,
                       .bytes = step.bytes,
                       .address = step.address,
                       .stack = step.stack,
                       .writer = step.writer,
                       .device = step.device,
                       .preexisting = preexisting});
    return blocks_.size() - 1;
  }

  // The table's rows: an allocation, a release or a change of what is reserved.
  struct Row {
    int64_t time, bytes, reserved;
    uint32_t block;
    uint8_t device;
  };

  void EmitRows() {
    const std::vector<MemoryCategory> categories = Categorize(*trace_, &blocks_);
    std::vector<Row> rows;
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      const MemoryBlock& block = blocks_[i];
      rows.push_back({block.start, block.bytes, 0, i, block.device});
      if (block.end != kNeverFreed) rows.push_back({block.end, -block.bytes, 0, i, block.device});
    }
    for (const Step& step : steps_) {
      if (step.change == Change::kReserve) {
        rows.push_back({step.time, 0, step.bytes, kNone, step.device});
      }
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      // At one moment what goes goes first: a window's start is not a peak.
      return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
    });
    std::map<uint8_t, int64_t> allocated;
    for (const Row& row : rows) {
      allocated[row.device] += row.bytes;
      reserved_[row.device] += row.reserved;
      AddRow(row, allocated[row.device],
             row.block == kNone ? MemoryCategory::kUnknown : categories[row.block]);
    }
  }

  void AddRow(const Row& row, int64_t allocated, MemoryCategory category) {
    Allocations& all = trace_->allocations;
    const MemoryBlock none;
    const MemoryBlock& block = row.block == kNone ? none : blocks_[row.block];
    const size_t at = all.size();
    all.start.push_back(row.time);
    all.end.push_back(row.time);
    all.writer.push_back(block.writer);
    all.bytes.push_back(row.bytes);
    Set(&all.address, at, block.address);
    Set(&all.device_type, at, row.device == 0 ? uint8_t{0} : kCuda);
    Set(&all.device, at, row.device);
    Set(&all.allocated, at, static_cast<uint64_t>(std::max<int64_t>(allocated, 0)));
    if (row.device != 0) {
      Set(&all.reserved, at, static_cast<uint64_t>(std::max<int64_t>(reserved_[row.device], 0)));
    }
    Set(&all.category, at, static_cast<uint8_t>(static_cast<uint8_t>(category) + 1));
    Set(&all.owner, at, block.owner);
    Set(&all.stack, at, block.stack);
  }

  template <typename T>
  static void Set(OptionalColumn<T>* column, size_t row, T value) {
    if (value == T{}) return;
    column->PadTo(row + 1);
    (*column)[row] = value;
  }

  static int64_t Bounded(int64_t bytes) { return std::clamp<int64_t>(bytes, 0, kLargest); }

  uint32_t Intern(const std::string& text) {
    if (text.empty()) return 0;
    const auto [at, is_new] = strings_.try_emplace(text, 0);
    if (is_new) at->second = trace_->dictionary.AppendString(text);
    return at->second;
  }

  Trace* trace_;
  std::vector<Step> steps_;
  std::vector<MemoryBlock> blocks_;
  std::map<std::pair<uint8_t, uint64_t>, size_t> live_;
  std::map<uint8_t, int64_t> reserved_;  // at first of the start, then of the row that is emitted
  std::unordered_map<std::string, uint32_t> strings_;
  int64_t window_ = 0;  // start of the last one
  bool is_open_ = false;
};

}  // namespace

void TakeFrameworkAllocations(Trace* trace) { FrameworkAllocations(trace).Take(); }

}  // namespace ranktap::collector
