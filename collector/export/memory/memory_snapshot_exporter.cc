#include "collector/export/exporters.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "collector/export/memory/pickle_text.h"
#include "collector/export/output_file.h"
#include "collector/export/run_clock.h"
#include "collector/facts/framework/memory_blocks.h"

namespace ranktap::collector {
namespace {

struct SnapshotFrame {
  std::string_view file, name;
  int64_t line = 0;
};

// "train.py(12): step"
SnapshotFrame ParseFrame(std::string_view text) {
  const size_t name = text.find("): "), line = text.rfind('(', name);
  if (name == std::string_view::npos || line == std::string_view::npos) {
    return {.file = "", .name = text};
  }
  SnapshotFrame frame{.file = text.substr(0, line), .name = text.substr(name + 3)};
  std::from_chars(text.data() + line + 1, text.data() + name, frame.line);
  return frame;
}

class Snapshot {
 public:
  Snapshot(const Trace& trace, int64_t shift, OutputFile* file)
      : trace_(trace), shift_(shift), file_(file) {}

  void Write() {
    std::map<uint32_t, const DeviceMemory*> devices;
    uint32_t gpus = 0;
    for (const DeviceMemory& memory : HeldMemory(trace_)) {
      if (memory.device != kNone) gpus = std::max(gpus, memory.device + 1);
    }
    for (const DeviceMemory& memory : HeldMemory(trace_)) {
      devices[memory.device == kNone ? gpus : memory.device] = &memory;
    }
    pickle_.BeginDict();
    pickle_.Text("segments");
    pickle_.BeginList();
    for (const auto& [device, memory] : devices) WriteSegments(device, *memory);
    pickle_.EndList();
    pickle_.Text("device_traces");
    pickle_.BeginList();
    for (uint32_t device = 0; device <= gpus; ++device) {
      pickle_.BeginList();
      if (const auto found = devices.find(device); found != devices.end()) {
        WriteHistory(*found->second);
      }
      pickle_.EndList();
    }
    pickle_.EndList();
    pickle_.Text("allocator_settings");
    pickle_.BeginDict();
    pickle_.EndDict();
    pickle_.EndDict();
    file_->Write(pickle_.Take());
  }

 private:
  void WriteSegments(uint32_t device, const DeviceMemory& memory) {
    std::vector<const HeldBlock*> alive;
    for (const HeldBlock& block : memory.blocks) {
      if (block.alive && block.bytes > 0) alive.push_back(&block);
    }
    std::sort(alive.begin(), alive.end(),
              [](const HeldBlock* a, const HeldBlock* b) { return a->address < b->address; });
    for (size_t first = 0; first < alive.size();) {
      uint64_t end = EndOf(*alive[first]);
      size_t after = first + 1;
      while (after < alive.size() && alive[after]->address >= end &&
             alive[after]->address - end < kNeighbour) {
        end = EndOf(*alive[after++]);
      }
      WriteSegment(device, {alive.begin() + static_cast<ptrdiff_t>(first),
                            alive.begin() + static_cast<ptrdiff_t>(after)});
      first = after;
    }
  }

  static uint64_t EndOf(const HeldBlock& block) {
    return block.address + static_cast<uint64_t>(block.bytes);
  }

  void WriteSegment(uint32_t device, const std::vector<const HeldBlock*>& blocks) {
    const uint64_t start = blocks.front()->address;
    int64_t active = 0;
    for (const HeldBlock* block : blocks) active += block->bytes;
    pickle_.BeginDict();
    pickle_.Item("device", int64_t{device});
    pickle_.Item("address", static_cast<int64_t>(start));
    pickle_.Item("total_size", static_cast<int64_t>(EndOf(*blocks.back()) - start));
    for (const char* const key : {"allocated_size", "active_size", "requested_size"}) {
      pickle_.Item(key, active);
    }
    pickle_.Item("stream", int64_t{0});
    pickle_.Item("segment_type", "large");
    pickle_.Text("frames");
    pickle_.BeginList();
    pickle_.EndList();
    pickle_.Text("blocks");
    pickle_.BeginList();
    uint64_t at = start;
    for (const HeldBlock* block : blocks) {
      if (block->address > at) WriteBlock(at, block->address - at, nullptr);
      WriteBlock(block->address, static_cast<uint64_t>(block->bytes), block);
      at = EndOf(*block);
    }
    pickle_.EndList();
    pickle_.EndDict();
  }

  void WriteBlock(uint64_t address, uint64_t bytes, const HeldBlock* block) {
    pickle_.BeginDict();
    pickle_.Item("address", static_cast<int64_t>(address));
    pickle_.Item("size", static_cast<int64_t>(bytes));
    pickle_.Item("requested_size", block == nullptr ? 0 : block->bytes);
    pickle_.Item("state", block == nullptr ? "inactive" : "active_allocated");
    pickle_.Text("frames");
    WriteFrames(block);
    pickle_.EndDict();
  }

  void WriteHistory(const DeviceMemory& memory) {
    struct Change {
      int64_t time;
      bool allocates;
      const HeldBlock* block;
    };
    std::vector<Change> changes;
    const int64_t first = memory.blocks.empty() ? 0 : memory.blocks.front().start;
    for (const HeldBlock& block : memory.blocks) {
      if (block.start != first) changes.push_back({block.start, true, &block});
      if (!block.alive) changes.push_back({block.end, false, &block});
    }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.allocates < b.allocates;
    });
    for (const Change& change : changes) {
      if (change.allocates) {
        WriteEntry("alloc", change.time, *change.block);
        continue;
      }
      WriteEntry("free_requested", change.time, *change.block);
      WriteEntry("free_completed", change.time, *change.block);
    }
  }

  void WriteEntry(const char* action, int64_t time, const HeldBlock& block) {
    pickle_.BeginDict();
    pickle_.Item("action", action);
    pickle_.Item("addr", static_cast<int64_t>(block.address));
    pickle_.Item("size", block.bytes);
    pickle_.Item("stream", int64_t{0});
    pickle_.Item("time_us", (time + shift_) / 1000);
    pickle_.Text("frames");
    WriteFrames(&block);
    pickle_.EndDict();
    file_->Write(pickle_.Flush());
  }

  void WriteFrames(const HeldBlock* block) {
    std::vector<SnapshotFrame> frames;
    std::string key;
    if (block != nullptr) {
      const Allocations& all = trace_.allocations;
      std::string_view stack = trace_.dictionary.String(all.stack.At(block->row));
      const std::string_view owner = trace_.dictionary.String(all.owner.At(block->row));
      while (!stack.empty()) {
        const size_t end = std::min(stack.find(';'), stack.size());
        frames.push_back(ParseFrame(stack.substr(0, end)));
        stack.remove_prefix(std::min(end + 1, stack.size()));
      }
      category_ = CategoryName(block->category);
      if (frames.empty() && block->op != kNone) {
        frames.push_back({.file = "operator",
                          .name = trace_.dictionary.String(trace_.operators.name[block->op])});
      }
      const std::string_view of = owner.empty() ? std::string_view(block->module) : owner;
      if (!of.empty()) frames.push_back({.file = "tensor or module", .name = of});
      frames.push_back({.file = "category", .name = category_});
    }
    for (const SnapshotFrame& frame : frames) {
      key.append(frame.file).append(1, '\n').append(frame.name).append(1, '\n');
      key.append(std::to_string(frame.line)).append(1, '\n');
    }
    if (const auto known = kept_.find(key); known != kept_.end())
      return pickle_.Again(known->second);
    pickle_.BeginList();
    for (const SnapshotFrame& frame : frames) {
      pickle_.BeginDict();
      pickle_.Item("filename", frame.file);
      pickle_.Item("line", frame.line);
      pickle_.Item("name", frame.name);
      pickle_.EndDict();
    }
    pickle_.EndList();
    kept_[key] = pickle_.Keep();
  }

  const Trace& trace_;
  int64_t shift_;
  OutputFile* file_;
  PickleText pickle_;
  std::map<std::string, uint32_t> kept_;
  std::string category_;
};

}  // namespace

std::optional<Failure> WriteMemorySnapshot(const Run& run, std::span<const Trace* const> traces,
                                           const ExportOptions&, const std::string& path) {
  const Trace& trace = *traces[0];
  if (HeldMemory(trace).empty()) {
    return Failure{
        fmt::format("{}: no blocks of memory in it: record with ranktap run --level full, or with "
                    "torch.profiler's profile_memory=True",
                    trace.path)};
  }
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  Snapshot(trace, RealtimeOffset(run, trace), &*file).Write();
  return file->Close();
}

}  // namespace ranktap::collector
