#include "collector/facts/framework/tensor_arrows.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>

#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

class Producers {
 public:
  explicit Producers(const Trace& trace) : trace_(trace), uses_(trace.tensor_uses) {}

  std::vector<TensorArrow> Find() {
    std::vector<int64_t> windows = Windows();
    const Allocations& all = trace_.allocations;
    size_t window = 0, allocation = 0, first = 0;
    while (first < uses_.size()) {
      size_t end = first;  // of what one operator takes or returns
      while (end < uses_.size() && uses_[end].op == uses_[first].op &&
             uses_[end].time == uses_[first].time) {
        ++end;
      }
      const int64_t now = uses_[first].time;
      for (; window < windows.size() && windows[window] <= now; ++window) Forget();
      for (; allocation < all.size() && all.start[allocation] <= now; ++allocation) {
        if (all.relabelled.At(allocation) != 0 || all.bytes[allocation] >= 0) continue;
        Change(all.start[allocation]);
        memory_.erase(all.address.At(allocation));
      }
      Change(now);
      if (uses_[first].is_output) {
        Return(first, end);
      } else {
        Take(first, end);
      }
      first = end;
    }
    return std::move(arrows_);
  }

 private:
  struct Made {
    uint32_t by = kNone;
    int64_t time = 0;
    uint64_t generation = 0;  // of the memory
  };
  // The block that begins at an address, until it is given back.
  struct Memory {
    uint64_t generation = 0;
    Made made;
  };

  // An operator changes an input: as it ends, it has made it.
  struct Changing {
    int64_t time = 0;
    size_t use = 0;
    uint64_t memory = 0;  // generation
    bool operator>(const Changing& other) const {
      return time != other.time ? time > other.time : use > other.use;
    }
  };

  std::vector<int64_t> Windows() const {
    std::vector<int64_t> times;
    const Ranges& marks = trace_.marks;
    for (uint32_t row = 0; row < marks.size(); ++row) {
      if (trace_.dictionary.Domain(marks.domain[row]) == kMemoryDomain &&
          trace_.dictionary.String(marks.name[row]) == proto::kWindowMark) {
        times.push_back(marks.start[row]);
      }
    }
    return times;
  }

  void Forget() {
    changing_ = {};
    tensors_.clear();
    memory_.clear();
  }

  Memory& MemoryAt(uint64_t address) {
    const auto [at, is_new] = memory_.try_emplace(address);
    if (is_new) at->second.generation = ++generations_;
    return at->second;
  }

  // Operators that change what they take are called so by PyTorch's rule.
  bool ChangesInputs(uint32_t op) const {
    return trace_.dictionary.String(trace_.operators.name[op]).ends_with('_');
  }

  // Those of foreach return nothing; the fused ones change all that they take.
  bool ChangesInput(uint32_t op, uint8_t place) const {
    return place == 0 ||
           trace_.dictionary.String(trace_.operators.name[op]).starts_with("aten::_fused_");
  }

  void Take(size_t first, size_t end) {
    const uint32_t op = uses_[first].op;
    const bool changes = ChangesInputs(op);
    std::vector<Made>& taken = taken_[op];
    for (size_t i = first; i < end; ++i) {
      const TensorUse& use = uses_[i];
      const Memory& memory = MemoryAt(use.memory);
      Made made = memory.made;
      const auto tensor = tensors_.find(use.tensor);
      if (tensor != tensors_.end() && tensor->second.generation == memory.generation &&
          (made.by == kNone || tensor->second.time >= made.time)) {
        made = tensor->second;
      }
      made.generation = memory.generation;
      if (made.by != kNone && !IsTakenAround(op, made)) {
        arrows_.push_back({.from = made.by, .to = op, .place = use.place, .element = use.element});
      }
      taken.push_back(made);
      if (changes && ChangesInput(op, use.place)) {
        changing_.push({.time = trace_.operators.end[op], .use = i, .memory = memory.generation});
      }
    }
  }

  // Changes by operators that had ended by then.
  void Change(int64_t now) {
    for (; !changing_.empty() && changing_.top().time <= now; changing_.pop()) {
      const Changing& change = changing_.top();
      const TensorUse& use = uses_[change.use];
      const auto memory = memory_.find(use.memory);
      if (memory == memory_.end() || memory->second.generation != change.memory) continue;
      memory->second.made = {use.op, change.time, change.memory};
      tensors_[use.tensor] = memory->second.made;
    }
  }

  // An operator around this one took the same.
  bool IsTakenAround(uint32_t op, const Made& made) const {
    for (uint32_t around = trace_.operators.parent[op]; around != kNone;
         around = trace_.operators.parent[around]) {
      const auto found = taken_.find(around);
      if (found == taken_.end()) continue;
      for (const Made& other : found->second) {
        if (other.by == made.by && other.generation == made.generation) return true;
      }
    }
    return false;
  }

  void Return(size_t first, size_t end) {
    const uint32_t op = uses_[first].op;
    for (size_t i = first; i < end; ++i) {
      Memory& memory = MemoryAt(uses_[i].memory);
      const Made made{op, uses_[i].time, memory.generation};
      tensors_[uses_[i].tensor] = made;
      // A view of an input did not make the memory.
      const bool is_first = memory.made.by == kNone && !Took(op, memory.generation);
      if (is_first || (memory.made.by != kNone && IsInside(memory.made.by, op))) memory.made = made;
    }
  }

  bool Took(uint32_t op, uint64_t generation) const {
    const auto found = taken_.find(op);
    return found != taken_.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [generation](const Made& made) { return made.generation == generation; });
  }

  bool IsInside(uint32_t inner, uint32_t outer) const {
    const auto& ops = trace_.operators;
    return ops.writer[inner] == ops.writer[outer] && ops.start[outer] <= ops.start[inner] &&
           ops.end[inner] <= ops.end[outer];
  }

  const Trace& trace_;
  const std::vector<TensorUse>& uses_;
  std::unordered_map<uint64_t, Made> tensors_;   // by TensorImpl
  std::unordered_map<uint64_t, Memory> memory_;  // by address
  uint64_t generations_ = 0;
  std::unordered_map<uint32_t, std::vector<Made>> taken_;  // by operator: where its inputs are from
  std::priority_queue<Changing, std::vector<Changing>, std::greater<>> changing_;
  std::vector<TensorArrow> arrows_;
};

}  // namespace

const std::vector<TensorArrow>& TensorArrows(const Trace& trace) {
  return trace.memo.Get<std::vector<TensorArrow>>([&trace] { return Producers(trace).Find(); });
}

}  // namespace ranktap::collector
