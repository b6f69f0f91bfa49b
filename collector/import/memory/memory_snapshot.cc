#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/import/byte_source.h"
#include "collector/import/finish_trace.h"
#include "collector/import/importers.h"
#include "collector/import/largest_allocation.h"
#include "collector/import/optional_values.h"
#include "collector/import/pickle_reader.h"
#include "collector/trace/file_notes.h"

namespace ranktap::collector {
namespace {

// Numbers of values have 32 bits.
constexpr size_t kLargestSnapshot = size_t{2} << 30;
constexpr size_t kMostSnapshotFrames = 64, kMostDevices = 254;
constexpr uint8_t kCuda = 1;  // c10::DeviceType

// torch.cuda._memory_viz leaves these frames out: the interpreter's, the unwinder's.
bool IsNoise(std::string_view function, std::string_view file) {
  static constexpr std::array<std::string_view, 8> kFunctions = {
      "unwind::unwind",    "CapturedTraceback::gather",
      "gather_with_cpp",   "_start",
      "__libc_start_main", "PyEval_",
      "PyObject_",         "PyFunction_"};
  static constexpr std::array<std::string_view, 10> kFiles = {"core/boxing",
                                                              "/Register",
                                                              "/Redispatch",
                                                              "pythonrun.c",
                                                              "Modules/main.c",
                                                              "Objects/call.c",
                                                              "Objects/methodobject.c",
                                                              "pycore_ceval.h",
                                                              "ceval.c",
                                                              "cpython/abstract.h"};
  const auto in = [](std::string_view text) {
    return [text](std::string_view part) { return text.find(part) != text.npos; };
  };
  return std::any_of(kFunctions.begin(), kFunctions.end(), in(function)) ||
         std::any_of(kFiles.begin(), kFiles.end(), in(file));
}

class Snapshot {
 public:
  Snapshot(const Pickle& pickle, size_t file_bytes, Trace* trace)
      : pickle_(pickle),
        trace_(trace),
        budget_(file_bytes),
        text_budget_(kLeastStackText + file_bytes * kStackTextPerByte) {}

  void Read() {
    const Pickle::Id root = pickle_.root();
    // Until torch 1.13 the list of segments was all there was.
    const bool old = pickle_.KindOf(root) == Pickle::Kind::kList;
    ReadSegments(old ? root : pickle_.Find(root, "segments"));
    const auto histories = pickle_.Items(pickle_.Find(root, "device_traces"));
    for (size_t device = 0; device < std::min(histories.size(), kMostDevices); ++device) {
      ReadHistory(histories[device], &devices_[static_cast<uint8_t>(device)]);
    }
    Emit();
  }

 private:
  struct Block {
    int64_t bytes = 0;
    uint32_t stack = 0;
  };
  struct Change {
    int64_t time_ns = 0, bytes = 0, reserved = 0;
    uint64_t address = 0;
    uint32_t stack = 0;
  };
  struct Device {
    int64_t reserved = 0;                             // by the segments, at the end
    std::unordered_map<uint64_t, Block> active;       // blocks of the segments, at the end
    std::vector<std::pair<uint64_t, Block>> earlier;  // allocated before the history
    std::vector<Change> changes;
    int64_t reserved_change = 0;
    int64_t disputed = 0;  // alive at the history's end, and in no segment
  };

  // A pickle may name one list a million times: what is walked is bounded by what was read.
  bool Spend() {
    if (budget_ > 0) return --budget_, true;
    if (!overspent_)
      trace_->damage.push_back({0, 0, "lists that repeat themselves; not read to the end"});
    overspent_ = true;
    return false;
  }
  int64_t Int(Pickle::Id dict, std::string_view key) const {
    return pickle_.Int(pickle_.Find(dict, key));
  }
  int64_t Bytes(Pickle::Id dict, std::string_view key) const {
    return std::clamp<int64_t>(Int(dict, key), 0, kLargestAllocation);
  }
  std::string_view Text(Pickle::Id dict, std::string_view key) const {
    return pickle_.Text(pickle_.Find(dict, key));
  }

  void ReadSegments(Pickle::Id list) {
    for (const Pickle::Id segment : pickle_.Items(list)) {
      if (!Spend()) return;
      const auto index = std::clamp<int64_t>(Int(segment, "device"), 0, kMostDevices - 1);
      Device& device = devices_[static_cast<uint8_t>(index)];
      device.reserved += Bytes(segment, "total_size");
      auto address = static_cast<uint64_t>(Int(segment, "address"));
      for (const Pickle::Id block : pickle_.Items(pickle_.Find(segment, "blocks"))) {
        if (!Spend()) return;
        const int64_t bytes = Bytes(block, "size");
        // The history has what was asked for, a block its size: rounded up.
        const bool is_told = pickle_.Find(block, "requested_size") != 0;
        const int64_t requested = is_told ? Bytes(block, "requested_size") : bytes;
        const Pickle::Id own = pickle_.Find(block, "address");
        if (own != 0) address = static_cast<uint64_t>(pickle_.Int(own));
        if (Text(block, "state").starts_with("active")) {
          device.active[address] = {requested, StackOf(FramesOf(block))};
        }
        address += static_cast<uint64_t>(bytes);
      }
    }
  }
  // Until torch 2.0 a block had a history, the latest first.
  Pickle::Id FramesOf(Pickle::Id block) const {
    if (const Pickle::Id frames = pickle_.Find(block, "frames")) return frames;
    const auto history = pickle_.Items(pickle_.Find(block, "history"));
    return history.empty() ? 0 : pickle_.Find(history[0], "frames");
  }

  uint32_t StackOf(Pickle::Id frames) {
    if (frames == 0) return 0;
    const auto [known, is_new] = stack_of_list_.try_emplace(frames, 0);
    if (!is_new) return known->second;
    std::string text;
    size_t count = 0;
    for (const Pickle::Id frame : pickle_.Items(frames)) {
      if (!Spend() || count == kMostSnapshotFrames) break;
      const std::string_view file = Text(frame, "filename"), function = Text(frame, "name");
      if (IsNoise(function, file)) continue;
      if (count++ > 0) text += ';';
      text.append(file.substr(0, 1024)).append("(").append(std::to_string(Int(frame, "line")));
      text.append("): ").append(function.substr(0, 1024));
    }
    if (text.empty()) return 0;
    const auto same = stacks_.find(text);
    return stack_of_list_[frames] = same == stacks_.end() ? AddStack(text) : same->second;
  }

  // Frames are shared: a file may ask for far more text of stacks than it has bytes.
  uint32_t AddStack(const std::string& stack) {
    if (stack.size() > text_budget_) {
      if (!std::exchange(out_of_text_, true)) {
        trace_->damage.push_back({0, 0, "stacks of far more text than the file has; left out"});
      }
      return 0;
    }
    text_budget_ -= stack.size();
    return stacks_[stack] = trace_->dictionary.AppendString(stack);
  }

  void ReadHistory(Pickle::Id history, Device* device) {
    std::unordered_map<uint64_t, Block> alive;
    int64_t time = 0;
    for (const Pickle::Id entry : pickle_.Items(history)) {
      if (!Spend()) break;
      const std::string_view action = Text(entry, "action");
      const int64_t bytes = Int(entry, "size");
      // Until torch 2.1 entries had no time: they count up.
      const int64_t told = Int(entry, "time_us");
      // Sums leave out bytes that were only asked for: they may be any number.
      const bool too_large = bytes > kLargestAllocation && action != "oom";
      if (told > INT64_MAX / 2000 || told < 0 || bytes < 0 || too_large) continue;
      has_times_ |= told > 0;
      time = told > 0 ? told * 1000 : time + 1;
      const auto address = static_cast<uint64_t>(Int(entry, "addr"));
      if (action == "alloc") {
        const Block block{bytes, StackOf(pickle_.Find(entry, "frames"))};
        alive[address] = block;
        device->changes.push_back({time, bytes, 0, address, block.stack});
      } else if (action == "free_completed") {
        if (alive.erase(address) == 0) device->earlier.push_back({address, {bytes, 0}});
        device->changes.push_back({time, -bytes, 0, address, 0});
      } else if (action == "segment_alloc" || action == "segment_map") {
        device->changes.push_back({time, 0, bytes, address, 0});
        device->reserved_change += bytes;
      } else if (action == "segment_free" || action == "segment_unmap") {
        device->changes.push_back({time, 0, -bytes, address, 0});
        device->reserved_change -= bytes;
      } else if (action == "oom") {
        trace_->info.notes.push_back(fmt::format("out of memory: {} bytes were asked for", bytes));
      }
    }
    for (const auto& [address, block] : alive) {
      if (!device->active.contains(address)) device->disputed += block.bytes;
    }
    for (const auto& [address, block] : device->active) {
      if (!alive.contains(address)) device->earlier.emplace_back(address, block);
    }
    device->active.clear();
  }

  void Emit() {
    int64_t first = INT64_MAX;
    for (const auto& [index, device] : devices_) {
      for (const Change& change : device.changes) first = std::min(first, change.time_ns);
    }
    const int64_t base = first == INT64_MAX ? 0 : first;
    trace_->base_time_ns = trace_->realtime_offset_ns = base;
    trace_->writers.emplace_back().name = "allocator";
    if (!has_times_) trace_->info.notes.emplace_back(kMemoryWithoutTimes);
    for (auto& [index, device] : devices_) {
      if (device.disputed > 0) {
        trace_->info.notes.push_back(
            fmt::format("device {}: its history and its segments disagree about the end: {} bytes "
                        "that the history never gives back are in no segment",
                        index, device.disputed));
      }
      // No history: the blocks that the segments hold.
      for (const auto& [address, block] : device.active)
        device.earlier.emplace_back(address, block);
      std::sort(device.earlier.begin(), device.earlier.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      int64_t allocated = 0,
              reserved = std::max<int64_t>(0, device.reserved - device.reserved_change);
      const auto add = [&](int64_t time, int64_t bytes, uint64_t address, uint32_t stack) {
        allocated += bytes;
        AddRow(index, time, bytes, address, stack, allocated, reserved);
      };
      for (const auto& [address, block] : device.earlier) {
        add(0, block.bytes, address, block.stack);
      }
      for (const Change& change : device.changes) {
        reserved += change.reserved;
        add(change.time_ns - base, change.bytes, change.address, change.stack);
      }
    }
    FinishTrace(trace_);
  }

  void AddRow(uint8_t device, int64_t time, int64_t bytes, uint64_t address, uint32_t stack,
              int64_t allocated, int64_t reserved) {
    Allocations& all = trace_->allocations;
    const size_t at = all.size();
    all.start.push_back(time);
    all.end.push_back(time);
    all.writer.push_back(0);
    all.bytes.push_back(bytes);
    SetOptional(&all.address, at, address);
    SetOptional(&all.device_type, at, kCuda);
    SetOptional(&all.device, at, static_cast<uint8_t>(device + 1));
    SetOptional(&all.allocated, at, static_cast<uint64_t>(std::max<int64_t>(0, allocated)));
    SetOptional(&all.reserved, at, static_cast<uint64_t>(std::max<int64_t>(0, reserved)));
    SetOptional(&all.stack, at, stack);
    ++trace_->events;
  }

  const Pickle& pickle_;
  Trace* trace_;
  size_t budget_, text_budget_;
  bool overspent_ = false, out_of_text_ = false, has_times_ = false;
  std::map<uint8_t, Device> devices_;
  std::unordered_map<Pickle::Id, uint32_t> stack_of_list_;
  std::unordered_map<std::string, uint32_t> stacks_;
};

}  // namespace

Result<Trace> ImportMemorySnapshot(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  if (!source) return Failure{source.message()};
  std::string bytes;
  while (bytes.size() < kLargestSnapshot) {
    const size_t before = bytes.size();
    bytes.resize(before + std::clamp<size_t>(before, 64u << 10, 8u << 20));
    const size_t got = source->Read(bytes.data() + before, bytes.size() - before);
    bytes.resize(before + got);
    if (got == 0) break;
  }
  const bool too_large = bytes.size() >= kLargestSnapshot;
  Trace trace;
  trace.path = path;
  trace.origin = TraceOrigin::kMemory;
  const Pickle pickle(bytes);
  if (pickle.damage()) trace.damage.push_back(*pickle.damage());
  if (too_large) trace.damage.push_back({bytes.size(), 0, "more than 2 GiB; not read beyond"});
  if (!source->damage().empty()) trace.damage.push_back({bytes.size(), 0, source->damage()});
  Snapshot(pickle, bytes.size(), &trace).Read();
  if (trace.events == 0) {
    std::string message = fmt::format(
        "{}: a pickle, but no allocations in it: not what torch.cuda.memory._dump_snapshot writes, "
        "or nothing was allocated",
        path);
    for (const Damage& damage : trace.damage) {
      message += fmt::format("; offset {}: {}", damage.offset, damage.what);
    }
    return Failure{message};
  }
  CloseTrace("torch.cuda.memory", source->file_bytes(), &trace);
  return trace;
}

// A pickle of protocol 2 or later.
bool LooksLikeMemorySnapshot(std::string_view head) {
  return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

}  // namespace ranktap::collector
