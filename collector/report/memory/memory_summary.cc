#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "collector/facts/framework/memory_blocks.h"
#include "collector/facts/framework/python_stacks.h"
#include "collector/facts/framework/timed_steps.h"
#include "collector/report/capture/origin_advice.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/memory/memory_tables.h"
#include "collector/report/reports.h"
#include "collector/trace/device_label.h"
#include "collector/trace/file_notes.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

constexpr uint32_t kDeviceMemory = 3;              // CUpti_ActivityMemoryKind
constexpr uint32_t kAllocated = 1, kReleased = 2;  // CUpti_ActivityMemoryOperationType
constexpr uint32_t kCpu = kNone;

struct Curve {
  int64_t now = 0, peak = 0, peak_time = 0, peak_reserved = 0;
  size_t peak_row = 0;
  int64_t allocations = 0, allocated = 0, largest = 0;
  bool has_reserved = false;

  void Count(int64_t bytes) {
    if (bytes <= 0) return;
    ++allocations;
    allocated += bytes;
    largest = std::max(largest, bytes);
  }
  void Reach(int64_t level, int64_t time, size_t row) {
    now = level;
    if (level <= peak) return;
    peak = level;
    peak_time = time;
    peak_row = row;
  }
};

std::map<uint32_t, Curve> FrameworkCurves(const Trace& trace) {
  const Allocations& all = trace.allocations;
  std::map<uint32_t, Curve> curves;
  for (size_t i = 0; i < all.size(); ++i) {
    Curve& curve = curves[MemoryDeviceOf(all, i)];
    if (all.relabelled.At(i) == 0) curve.Count(all.bytes[i]);
    const int64_t level = all.allocated.empty() ? curve.now + all.bytes[i]
                                                : static_cast<int64_t>(all.allocated.At(i));
    curve.Reach(level, all.start[i], i);
    if (all.reserved.empty()) continue;
    curve.has_reserved = true;
    curve.peak_reserved = std::max(curve.peak_reserved, static_cast<int64_t>(all.reserved.At(i)));
  }
  return curves;
}

std::map<uint32_t, Curve> CudaCurves(const Trace& trace) {
  std::map<uint32_t, Curve> curves;
  for (size_t i = 0; i < trace.memory.size(); ++i) {
    const proto::MemoryEvent& event = trace.memory[i];
    if (event.memory_kind != kDeviceMemory) continue;
    const auto bytes = static_cast<int64_t>(event.bytes);
    Curve& curve = curves[event.device];
    if (event.operation == kAllocated) curve.Count(bytes);
    const int64_t change = event.operation == kAllocated  ? bytes
                           : event.operation == kReleased ? -bytes
                                                          : 0;
    curve.Reach(curve.now + change, static_cast<int64_t>(event.time_ns), i);
  }
  return curves;
}

Cell DeviceCell(const Trace& trace, uint32_t device) {
  if (device != kCpu) return DeviceLabel(trace, device);
  // A memory timeline is of one device, which it does not name.
  const bool named = trace.allocations.category.empty() || trace.is_ours();
  return std::string(named ? "CPU" : "not named");
}

bool HasMemoryTimes(const Trace& trace) {
  return std::ranges::find(trace.info.notes, kMemoryWithoutTimes) == trace.info.notes.end();
}

// Memory that one allocator gave out on one device.
struct GivenOut {
  const Trace* trace;
  uint32_t device;
  std::string allocator;
  Curve curve;
  bool is_process = false;  // all that it has in RAM; its blocks are not known

  Cell OfBlocks(int64_t number) const { return is_process ? Cell() : Cell(number); }
  Cell peak_reserved() const { return curve.has_reserved ? Cell(curve.peak_reserved) : Cell(); }
};

const ColumnsOf<GivenOut> kColumns = {
    {"rank", Unit::kCount, kRankMeaning, [](const GivenOut& row) { return RankCell(*row.trace); }},
    {"device", Unit::kText, kDeviceMeaning,
     [](const GivenOut& row) { return DeviceCell(*row.trace, row.device); }},
    {"allocator", Unit::kText, "The allocator that gave the memory out.",
     [](const GivenOut& row) { return row.allocator; }},
    {"peak_bytes", Unit::kBytes, "The most that the program held at once.",
     [](const GivenOut& row) { return row.curve.peak; }},
    {"peak_at_ns", Unit::kNs, "When it held the most, counted from the rank's first event.",
     [](const GivenOut& row) {
       return HasMemoryTimes(*row.trace) ? row.OfBlocks(row.curve.peak_time - row.trace->first_ns)
                                         : Cell();
     }},
    {"peak_reserved_bytes", Unit::kBytes, "The most that the allocator took from the device.",
     [](const GivenOut& row) { return row.peak_reserved(); }},
    {"at_end_bytes", Unit::kBytes, "The bytes that the program held at the end.",
     [](const GivenOut& row) { return row.curve.now; }},
    {"allocations", Unit::kCount, "The allocations that the program made.",
     [](const GivenOut& row) { return row.OfBlocks(row.curve.allocations); }},
    {"allocated_bytes", Unit::kBytes, "The bytes of all allocations, freed ones too.",
     [](const GivenOut& row) { return row.OfBlocks(row.curve.allocated); }, Shown::kDetail},
    {"largest_bytes", Unit::kBytes, "The largest single allocation.",
     [](const GivenOut& row) { return row.OfBlocks(row.curve.largest); }, Shown::kDetail},
};

MemoryCategory CategoryOf(uint8_t told) {
  return told == 0 ? MemoryCategory::kUnknown : static_cast<MemoryCategory>(told - 1);
}

struct Held {
  int64_t bytes = 0, blocks = 0;
};

std::map<std::string, Held> ByCategory(const Allocations& all, uint32_t device, size_t last) {
  std::map<std::string, Held> held;
  for (size_t i = 0; i <= last; ++i) {
    if (MemoryDeviceOf(all, i) != device) continue;
    Held& of = held[CategoryName(CategoryOf(all.category.At(i)))];
    of.bytes += all.bytes[i];
    of.blocks += all.bytes[i] > 0 ? 1 : all.bytes[i] < 0 ? -1 : 0;
  }
  return held;
}

// The innermost operator that is open on each allocation's thread.
class AllocatingOperators {
 public:
  explicit AllocatingOperators(const Trace& trace)
      : ops_(trace.operators), open_(trace.writers.size() + 1) {}

  // Called with allocations in the order of time.
  uint32_t At(int64_t time, uint16_t writer) {
    for (; next_ < ops_.size() && ops_.start[next_] <= time; ++next_) {
      open_[std::min<size_t>(ops_.writer[next_], open_.size() - 1)].push_back(
          static_cast<uint32_t>(next_));
    }
    std::vector<uint32_t>& open = open_[std::min<size_t>(writer, open_.size() - 1)];
    while (!open.empty() && ops_.end[open.back()] < time) open.pop_back();
    return open.empty() ? kNone : open.back();
  }

 private:
  const Operators& ops_;
  std::vector<std::vector<uint32_t>> open_;
  size_t next_ = 0;
};

// frames: of a stack, 0 for all.
std::map<std::string, Held> ByOrigin(const Trace& trace, uint32_t device, size_t last, int frames) {
  const Allocations& all = trace.allocations;
  struct Block {
    int64_t bytes;
    uint32_t name;
  };
  std::unordered_map<uint64_t, Block> live;
  AllocatingOperators operators(trace);
  for (size_t i = 0; i <= last; ++i) {
    const uint32_t op = operators.At(all.start[i], all.writer[i]);
    if (MemoryDeviceOf(all, i) != device || all.bytes[i] == 0) continue;
    if (all.bytes[i] < 0) {
      live.erase(all.address.At(i));
    } else {
      const uint32_t stack =
          all.stack.At(i) != 0 || op == kNone ? all.stack.At(i) : trace.operators.stack.At(op);
      const uint32_t name = stack != 0 || op == kNone ? stack : trace.operators.name[op];
      live[all.address.At(i)] = {all.bytes[i], name};
    }
  }
  std::map<std::string, Held> held;
  for (const auto& [address, block] : live) {
    std::string name(trace.dictionary.String(block.name));
    if (frames > 0) name = Joined(InnermostFrames(name, static_cast<size_t>(frames)));
    Held& of = held[name.empty() ? "(neither a stack nor an operator is known)" : name];
    of.bytes += block.bytes;
    ++of.blocks;
  }
  return held;
}

// Not the allocator's, PyTorch's or Python's own: "CUDACachingAllocator.cpp(1): malloc",
// ".../torch/nn/functional.py(9): linear", "??(0): main".
bool IsTheProgramsFrame(std::string_view frame) {
  const std::string_view file = frame.substr(0, frame.find('('));
  if (!file.ends_with(".py")) return false;
  const auto has = [file](std::string_view part) { return file.find(part) != file.npos; };
  return !has("torch/") && !has("lib/python") && !has("site-packages/") && !file.starts_with("<");
}

// "alloc.cpp(3): f;a.py(9): g" -> "a.py(9): g"; where no frame is the program's: the innermost.
std::string Innermost(const std::string& stack) {
  for (std::string_view rest = stack; !rest.empty();) {
    const std::string_view frame = rest.substr(0, rest.find(';'));
    if (IsTheProgramsFrame(frame)) return std::string(frame);
    rest.remove_prefix(std::min(frame.size() + 1, rest.size()));
  }
  return stack.substr(0, stack.find(';'));
}

// The holder of a part of the memory at the peak of its device: a category, a stack or an operator.
struct Holder {
  const Trace* trace;
  uint32_t device;
  std::string name;
  int64_t bytes;
  int64_t peak;  // of all holders
  Cell blocks = {};
};

Cell StackCell(const Holder& row) {
  return row.name.find(';') == row.name.npos ? Cell() : Cell(row.name);
}

ColumnsOf<Holder> HolderColumns(Shown stack) {
  return {
      {"rank", Unit::kCount, kRankMeaning, [](const Holder& row) { return RankCell(*row.trace); }},
      {"device", Unit::kText, kDeviceMeaning,
       [](const Holder& row) { return DeviceCell(*row.trace, row.device); }},
      {"held_by", Unit::kText, "The category, stack or operator that held the memory.",
       [](const Holder& row) { return Innermost(row.name); }},
      {"bytes", Unit::kBytes, "The bytes that it held at the device's peak.",
       [](const Holder& row) { return row.bytes; }},
      {"share_percent", Unit::kPercent, "The share of the peak.",
       [](const Holder& row) { return Percent(row.bytes, row.peak); }},
      {"blocks", Unit::kCount, "The blocks of memory that it held.",
       [](const Holder& row) { return row.blocks; }},
      {"stack", Unit::kText, "The Python stack of the allocation, innermost frame first.",
       [](const Holder& row) { return StackCell(row); }, stack},
  };
}

void AddHolders(const Trace& trace, uint32_t device, const Curve& curve, int frames,
                std::vector<Holder>* rows) {
  const bool by_origin = frames > 0 || trace.allocations.category.empty();
  const auto held = by_origin ? ByOrigin(trace, device, curve.peak_row, frames)
                              : ByCategory(trace.allocations, device, curve.peak_row);
  std::vector<std::pair<std::string, Held>> sorted(held.begin(), held.end());
  SortRows(&sorted, [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  int64_t told = 0;
  for (const auto& [name, of] : sorted) told += of.bytes;
  // Of a damaged file the blocks may be more than the curve.
  const int64_t whole = std::max(curve.peak, told);
  for (const auto& [name, of] : sorted) {
    if (of.bytes != 0) rows->push_back({&trace, device, name, of.bytes, whole, of.blocks});
  }
  if (told < whole) {
    rows->push_back({&trace, device, "(allocated before the trace)", whole - told, whole});
  }
}

// Beside what allocators told: all that the process has in RAM.
void AddProcess(const Trace& trace, std::vector<GivenOut>* rows) {
  const auto now = static_cast<int64_t>(trace.cost.resident_bytes());
  const auto peak = static_cast<int64_t>(trace.cost.peak_resident_bytes());
  if (peak == 0) return;
  rows->push_back(
      {&trace, kCpu, "the whole process (RSS)", {.now = now, .peak = peak}, /*is_process=*/true});
}

constexpr std::string_view kNotSeen =
    "framework: what PyTorch's allocators gave out in the steps that were recorded, and of what "
    "they "
    "held before: parameters, buffers, gradients and optimizer states, and all of a GPU's history. "
    "Not seen: other libraries' memory (NumPy, the CUDA context, workers), other tensors from "
    "before "
    "the first recorded step";

void NoteNothingRecorded(const Run& run, Table* table) {
  table->notes.push_back("no allocations were recorded: " + WhoRecordsMemory(run));
}

}  // namespace

void NoteStepsWithAllocations(const Run& run, Table* table) {
  int64_t least = INT64_MAX, most = 0, all = 0;
  for (const Trace& trace : run.traces) {
    const TimeColumn& starts = trace.allocations.start;
    if (!trace.is_ours() || starts.size() == 0) continue;
    const std::vector<bool> recorded =
        RecordedSteps(trace, std::vector(starts.begin(), starts.end()));
    const auto steps = static_cast<int64_t>(std::ranges::count(recorded, true));
    least = std::min(least, steps);
    most = std::max(most, steps);
    all = std::max(all, static_cast<int64_t>(recorded.size()));
  }
  if (most == 0 || least == all) return;
  const std::string some =
      least == most ? FormatCount(most) : FormatCount(least) + " to " + FormatCount(most);
  table->notes.push_back(fmt::format("allocations are recorded in {} of {} steps{}", some,
                                     FormatCount(all), least == most ? "" : ", by rank"));
}

Table TabulateMemory(const Run& run, const ReportOptions&) {
  std::vector<GivenOut> rows;
  std::vector<std::string> notes;
  for (const Trace& trace : run.traces) {
    for (const auto& [device, curve] : FrameworkCurves(trace)) {
      rows.push_back({&trace, device, "framework", curve});
    }
    for (const auto& [device, curve] : CudaCurves(trace)) {
      rows.push_back({&trace, device, "CUDA", curve});
    }
    AddProcess(trace, &rows);
    for (const Damage& damage : trace.damage) {
      notes.push_back(
          fmt::format("{}, offset {}: {}", trace.info.file, damage.offset, damage.what));
    }
  }
  Table table = TableOf("Memory that was given out, by device", kColumns, rows);
  table.notes = std::move(notes);
  const auto is_recorded = [](const Trace& trace) {
    return trace.is_ours() && trace.allocations.size() > 0;
  };
  if (std::any_of(run.traces.begin(), run.traces.end(), is_recorded)) {
    table.notes.emplace_back(kNotSeen);
  }
  NoteStepsWithAllocations(run, &table);
  const auto tells_blocks = [](const GivenOut& row) { return !row.is_process; };
  if (std::none_of(rows.begin(), rows.end(), tells_blocks)) NoteNothingRecorded(run, &table);
  return table;
}

std::string DescribePeakMemory(const Run& run) {
  std::vector<Holder> most;
  const Curve* highest = nullptr;
  std::vector<std::map<uint32_t, Curve>> curves;
  for (const Trace& trace : run.traces) curves.push_back(FrameworkCurves(trace));
  for (size_t t = 0; t < curves.size(); ++t) {
    for (const auto& [device, curve] : curves[t]) {
      if (curve.peak == 0 || (highest != nullptr && curve.peak <= highest->peak)) continue;
      highest = &curve;
      most.clear();
      AddHolders(run.traces[t], device, curve, 0, &most);
    }
  }
  if (most.empty()) return "";
  const Holder& first = most[0];
  const Cell device = DeviceCell(*first.trace, first.device);
  const auto* const name = std::get_if<std::string>(&device);
  std::string text =
      fmt::format("At most {} were held", FormatBytes(static_cast<uint64_t>(highest->peak)));
  if (name != nullptr && *name != "not named") text += " on " + *name;
  if (HasMemoryTimes(*first.trace)) {
    text += fmt::format(", {} into the file", FormatNs(highest->peak_time - first.trace->first_ns));
  }
  return fmt::format("{}: {} ({}) of it by {}. ", text,
                     FormatBytes(static_cast<uint64_t>(first.bytes)),
                     FormatShare(first.bytes, first.peak), Innermost(first.name));
}

Table TabulateMemoryPeak(const Run& run, const ReportOptions& options) {
  std::vector<Holder> rows;
  for (const Trace& trace : run.traces) {
    for (const auto& [device, curve] : FrameworkCurves(trace)) {
      if (curve.peak != 0) AddHolders(trace, device, curve, options.by_stack, &rows);
    }
  }
  const Shown stack = options.by_stack > 0 ? Shown::kProse : Shown::kDetail;
  Table table =
      TableOf("What held the memory at the peak of each device", HolderColumns(stack), rows);
  NoteStepsWithAllocations(run, &table);
  if (rows.empty()) NoteNothingRecorded(run, &table);
  return table;
}

}  // namespace ranktap::collector
