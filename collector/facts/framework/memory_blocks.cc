#include "collector/facts/framework/memory_blocks.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "collector/facts/framework/op_modules.h"

namespace ranktap::collector {
namespace {

// The innermost operator open on each allocation's thread, asked in the order of time.
class OperatorFinder {
 public:
  explicit OperatorFinder(const Trace& trace)
      : ops_(trace.operators), open_(trace.writers.size()) {}

  uint32_t At(int64_t time, uint16_t writer) {
    for (; next_ < ops_.size() && ops_.start[next_] <= time; ++next_) {
      if (ops_.writer[next_] < open_.size()) open_[ops_.writer[next_]].push_back(next_);
    }
    if (writer >= open_.size()) return kNone;
    std::vector<uint32_t>& open = open_[writer];
    while (!open.empty() && ops_.end[open.back()] < time) open.pop_back();
    return open.empty() ? kNone : open.back();
  }

 private:
  const Operators& ops_;
  std::vector<std::vector<uint32_t>> open_;
  uint32_t next_ = 0;
};

// "Net.stem" of "Net.stem.weight", or of "Net.stem.weight.exp_avg".
std::string WithoutLast(std::string name, int parts) {
  for (; parts > 0; --parts) name.resize(std::min(name.size(), name.rfind('.')));
  return name;
}

std::string ModuleOf(const Trace& trace, size_t row, MemoryCategory category,
                     uint32_t of_operator) {
  const std::string owner(trace.dictionary.String(trace.allocations.owner.At(row)));
  switch (category) {
    case MemoryCategory::kParameter:
    case MemoryCategory::kGradient:
      return WithoutLast(owner, 1);
    case MemoryCategory::kOptimizerState:
      return WithoutLast(owner, 2);
    default:
      break;
  }
  return owner.empty() ? std::string(trace.dictionary.String(of_operator)) : owner;
}

std::vector<DeviceMemory> Hold(const Trace& trace) {
  const Allocations& all = trace.allocations;
  if (all.address.empty()) return {};
  const std::vector<OpPlace> places = PlaceOperators(trace);
  OperatorFinder operators(trace);
  std::map<uint32_t, DeviceMemory> devices;
  std::map<uint32_t, std::unordered_map<uint64_t, size_t>> live;
  std::map<uint32_t, int64_t> level;
  for (uint32_t i = 0; i < all.size(); ++i) {
    const uint32_t op = operators.At(all.start[i], all.writer[i]);
    if (all.bytes[i] == 0 || all.relabelled.At(i) != 0) continue;
    const uint32_t device = MemoryDeviceOf(all, i);
    DeviceMemory& memory = devices[device];
    memory.device = device;
    int64_t& now = level[device];
    now += all.bytes[i];
    if (now > memory.peak) {
      memory.peak = now;
      memory.peak_time = all.start[i];
    }
    auto& of_device = live[device];
    const auto known = of_device.find(all.address.At(i));
    if (known != of_device.end()) {
      memory.blocks[known->second].end = all.start[i];
      memory.blocks[known->second].alive = false;
      of_device.erase(known);
    }
    if (all.bytes[i] < 0) continue;
    const uint8_t told = all.category.At(i);
    const auto category =
        told == 0 ? MemoryCategory::kUnknown : static_cast<MemoryCategory>(told - 1);
    of_device[all.address.At(i)] = memory.blocks.size();
    memory.blocks.push_back(
        {.start = all.start[i],
         .end = trace.last_ns,
         .alive = true,
         .bytes = all.bytes[i],
         .address = all.address.At(i),
         .row = i,
         .op = op,
         .category = category,
         .module = ModuleOf(trace, i, category, op == kNone ? 0 : places[op].module)});
  }
  std::vector<DeviceMemory> list;
  for (auto& [device, memory] : devices) list.push_back(std::move(memory));
  return list;
}

}  // namespace

const std::vector<DeviceMemory>& HeldMemory(const Trace& trace) {
  return trace.memo.Get<std::vector<DeviceMemory>>([&trace] { return Hold(trace); });
}

std::string CategoryName(MemoryCategory category) {
  static constexpr const char* kNames[] = {"parameter",       "optimizer state", "input",
                                           "temporary",       "activation",      "gradient",
                                           "autograd detail", "unknown"};
  return kNames[std::min(static_cast<size_t>(category), kMemoryCategories - 1)];
}

// A memory timeline is of one device, which it does not name.
uint32_t MemoryDeviceOf(const Allocations& all, size_t row) {
  if (all.device_type.At(row) != 0 && all.device.At(row) != 0) return all.device.At(row) - 1u;
  return kNone;
}

}  // namespace ranktap::collector
