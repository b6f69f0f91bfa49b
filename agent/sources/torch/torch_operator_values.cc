// Marks of an operator's values.
// Runs on: threads that run operators.  May not: allocate but at an operator's first time, lock,
// wait.
#include "agent/sources/torch/torch_operator_values.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <new>

#include "agent/core/agent_state.h"
#include "agent/core/contain.h"
#include "proto/events.h"
#include "proto/framework_marks.h"
#include "proto/operator_values.h"

namespace ranktap::agent {
namespace {

using proto::ValueCode;
using proto::ValuesHead;

constexpr size_t kMostDims = 64, kMostNesting = 4, kNames = 1 << 12, kMostProbes = 16;

// Written while no operator is observed.
struct Source {
  proto::ArenaRef domain = 0, mark = 0;
  size_t handle = 0;
  const char* (*overload)(const void* function) = nullptr;
  size_t (*inputs)(const void* function) = nullptr;
  size_t (*outputs)(const void* function) = nullptr;
  uint64_t (*thread)() = nullptr;
  uint64_t undefined = 0;  // the c10::TensorImpl of all undefined tensors
};
constinit Source g_source{};

// The parts that were not found, each once; lives for good: threads run on at exit.
std::string& NotFound() {
  static std::string& names = *new std::string;
  return names;
}

// Names that were seen, each once.
struct SeenName {
  std::atomic<uint64_t> hash{0};
  std::atomic<const std::string*> text{nullptr};
};
constinit std::array<SeenName, kNames> g_seen{};

void Remember(std::string_view name, const char* overload) {
  const std::string_view suffix = overload == nullptr ? std::string_view() : overload;
  uint64_t hash = std::hash<std::string_view>{}(name)*31 + std::hash<std::string_view>{}(suffix);
  hash += overload == nullptr ? 2 : 1;
  if (hash == 0) hash = 1;
  for (size_t probe = 0; probe < kMostProbes; ++probe) {
    SeenName& slot = g_seen[(hash + probe) % kNames];
    uint64_t known = slot.hash.load(std::memory_order_relaxed);
    if (known == hash) [[likely]]
      return;
    if (known != 0) continue;
    if (!slot.hash.compare_exchange_strong(known, hash, std::memory_order_relaxed)) continue;
    (void)HadMemory([&] {
      auto text = std::make_unique<std::string>(name);
      if (overload != nullptr) text->append("\n").append(suffix);
      slot.text.store(text.release(), std::memory_order_release);
    });
    return;
  }
}

// The bytes of one side of one operator, part by part.
class Parts {
 public:
  Parts(ThreadState& thread, const OperatorValues& what, const ValuesHead& head)
      : thread_(thread), what_(what), head_(head) {
    Begin();
  }

  template <typename Value>
  void Add(const Value& value) {
    AddBytes(&value, sizeof(value));
  }
  void AddBytes(const void* data, size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    while (bytes != 0) {
      if (size_ == buffer_.size()) Flush(true);
      const size_t now = std::min(bytes, buffer_.size() - size_);
      std::memcpy(buffer_.data() + size_, from, now);
      size_ += now;
      from += now;
      bytes -= now;
    }
  }
  void End() { Flush(false); }

 private:
  static constexpr size_t kBlobHead = 2 * sizeof(uint64_t);

  void Begin() { size_ = kBlobHead + sizeof(ValuesHead); }

  void Flush(bool goes_on) {
    ValuesHead head = head_;
    if (goes_on) head.flags |= proto::kValuesGoOn;
    head_.part++;
    const uint64_t blob[2] = {proto::kBytesSchema, size_ - kBlobHead};
    std::memcpy(buffer_.data(), blob, sizeof(blob));
    std::memcpy(buffer_.data() + kBlobHead, &head, sizeof(head));
    const size_t padded = (size_ + 7) & ~size_t{7};  // the buffer's size is a multiple of 8
    std::memset(buffer_.data() + size_, 0, padded - size_);
    thread_.EmitWith(proto::MarkEvent{.time_ticks = what_.ticks,
                                      .nvtx = {.domain = g_source.domain,
                                               .name = g_source.mark,
                                               .payload_type = proto::kNvtxSchemaPayload}},
                     {}, std::span(buffer_).first(padded));
    Begin();
  }

  ThreadState& thread_;
  const OperatorValues& what_;
  ValuesHead head_;
  size_t size_ = 0;
  std::array<std::byte, proto::kMostValuePartBytes> buffer_;  // written before it is read
};

void AddTensor(const TorchLayout& layout, uint64_t tensor, Parts& parts) {
  if (tensor == g_source.undefined && tensor != 0) {
    parts.Add(ValueCode::kUndefined);
    return parts.Add(tensor);
  }
  const ValueLayout& values = layout.values;
  const auto* const impl = reinterpret_cast<const std::byte*>(tensor);
  auto dims = ReadTorch<size_t>(impl, layout.sizes);
  if (dims > kMostDims) dims = 0;
  const auto storage = ReadTorch<uint64_t>(impl, layout.storage);
  parts.Add(ValueCode::kTensor);
  parts.Add(ReadTorch<uint16_t>(impl, layout.dtype));
  parts.Add(static_cast<uint8_t>(dims));
  parts.Add(values.device == 0 ? int8_t{-1} : ReadTorch<int8_t>(impl, values.device));
  parts.Add(values.device == 0 ? int8_t{-1} : ReadTorch<int8_t>(impl, values.device + 1));
  parts.Add(static_cast<uint8_t>(storage != 0));
  parts.Add(tensor);
  parts.Add(storage == 0
                ? uint64_t{0}
                : ReadTorch<uint64_t>(reinterpret_cast<const std::byte*>(storage), layout.data));
  parts.Add(values.offset == 0 ? int64_t{0} : ReadTorch<int64_t>(impl, values.offset));
  const std::byte* const place = impl + layout.sizes + sizeof(size_t);
  const bool is_far = dims > kInlineSizes;
  const std::byte* const sizes = is_far ? ReadTorch<const std::byte*>(place) : place;
  const size_t bytes = dims * sizeof(int64_t);
  parts.AddBytes(sizes, bytes);
  parts.AddBytes(sizes + (is_far ? bytes : kInlineSizes * sizeof(int64_t)), bytes);
}

void AddText(const TorchLayout& layout, uint64_t payload, Parts& parts) {
  const auto* const object = reinterpret_cast<const std::byte*>(payload);
  const auto bytes =
      static_cast<uint32_t>(ReadTorch<uint64_t>(object, layout.values.characters + sizeof(void*)));
  parts.Add(ValueCode::kText);
  parts.Add(bytes);
  parts.AddBytes(ReadTorch<const char*>(object, layout.values.characters),
                 std::min(bytes, proto::kMostTextBytes));
}

void AddValue(const TorchLayout& layout, const TorchValue& value, size_t depth, Parts& parts);

void AddElements(const TorchLayout& layout, ValueCode code, std::span<const std::byte> elements,
                 size_t depth, Parts& parts) {
  static_assert(kMostListElements == proto::kMostListValues);
  parts.Add(code);
  parts.Add(static_cast<uint32_t>(elements.size() / kIValueBytes));
  for (size_t at = 0; at < elements.size(); at += kIValueBytes) {
    AddValue(layout, {elements.data() + at}, depth + 1, parts);
  }
}

void AddValue(const TorchLayout& layout, const TorchValue& value, size_t depth, Parts& parts) {
  const uint32_t tag = value.tag();
  if (tag == layout.tensor) return AddTensor(layout, value.payload(), parts);
  if (tag == layout.generic_list && depth < kMostNesting) {
    return AddElements(layout, ValueCode::kList, ElementsOf(layout, value.payload()), depth, parts);
  }
  if (tag == layout.values.tuple && tag != 0 && depth < kMostNesting) {
    const auto elements = ElementsOfTuple(layout, value.payload());
    return AddElements(layout, ValueCode::kTuple, elements, depth, parts);
  }
  if (tag == layout.none) return parts.Add(ValueCode::kNone);
  if (tag == layout.number || tag == layout.real) {
    parts.Add(tag == layout.number ? ValueCode::kInteger : ValueCode::kReal);
    return parts.Add(value.payload());
  }
  if (tag == layout.flag) {
    parts.Add(ValueCode::kFlag);
    return parts.Add(static_cast<uint8_t>(value.payload() & 1));
  }
  if (tag == layout.values.text && tag != 0) return AddText(layout, value.payload(), parts);
  if (tag == layout.values.device_tag && tag != 0) {
    parts.Add(ValueCode::kDevice);
    return parts.Add(static_cast<uint16_t>(value.payload()));  // type, index
  }
  parts.Add(ValueCode::kOther);
  parts.Add(tag);
}

template <typename Function>
void Find(void* library, const char* symbol, Function& function) {
  function = library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, symbol));
}

}  // namespace

void PrepareValues(proto::ArenaRef domain, const TorchLayout& layout) {
  Source& source = g_source;
  void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  void* const core = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  source.domain = domain;
  source.mark = Names().InternText(proto::kValuesMark);
  source.handle = layout.handle;
  Find(library, "_ZNK2at14RecordFunction13overload_nameEv", source.overload);
  Find(library, "_ZNK2at14RecordFunction10num_inputsEv", source.inputs);
  Find(library, "_ZNK2at14RecordFunction11num_outputsEv", source.outputs);
  Find(library, "_ZN2at14RecordFunction15currentThreadIdEv", source.thread);
  source.undefined =
      core == nullptr
          ? 0
          : reinterpret_cast<uint64_t>(dlsym(core, "_ZN3c1019UndefinedTensorImpl10_singletonE"));
  std::string& not_found = NotFound();
  not_found = NotFoundOf(layout.values);
  const auto add = [&not_found](bool found, const char* what) {
    if (!found) not_found.append(not_found.empty() ? "" : ", ").append(what);
  };
  add(source.handle != 0, "numbers of record functions");
  add(source.overload != nullptr, "overloads");
  add(source.thread != nullptr, "numbers of threads");
}

void EmitValues(ThreadState& thread, const OperatorValues& what) {
  const Source& source = g_source;
  const bool is_input = what.side == TensorSide::kInput;
  const char* const overload =
      source.overload == nullptr || !is_input ? nullptr : source.overload(what.function);
  if (is_input && what.name != nullptr) Remember(what.name, overload);
  const auto told = is_input ? source.inputs : source.outputs;
  // In the interpreter of TorchScript they are the last of a stack.
  const size_t count =
      told == nullptr ? what.values.count : std::min(what.values.count, told(what.function));
  const size_t overload_bytes =
      overload == nullptr ? 0 : std::min<size_t>(std::strlen(overload), proto::kNoOverload - 1);
  const ValuesHead head = {
      .version = proto::kValuesVersion,
      .flags = is_input ? uint8_t{0} : proto::kValuesAreOutputs,
      .overload_bytes =
          overload == nullptr ? proto::kNoOverload : static_cast<uint8_t>(overload_bytes),
      .backward = 0,
      .thread = source.thread == nullptr ? 0 : static_cast<uint32_t>(source.thread()),
      .record = source.handle == 0 ? 0 : ReadTorch<uint64_t>(what.function, source.handle),
      .count = static_cast<uint32_t>(count),
      .part = 0};
  Parts parts(thread, what, head);
  if (overload_bytes != 0) parts.AddBytes(overload, overload_bytes);
  const std::byte* at = what.values.values + (what.values.count - count) * kIValueBytes;
  for (size_t i = 0; i < count; ++i, at += kIValueBytes) {
    AddValue(*what.values.layout, {at}, 0, parts);
  }
  parts.End();
}

std::string TakeOperatorNames() {
  std::string names;
  for (SeenName& slot : g_seen) {
    const std::string* const text = slot.text.exchange(nullptr);
    slot.hash.store(0, std::memory_order_relaxed);
    if (text != nullptr) names.append(*text).push_back('\0');
    delete text;
  }
  return names;
}

std::string ValuesNotFound() {
  if (NotFound().empty()) return {};
  return "the values of operators lack " + NotFound() +
         ": the agent does not find them in this PyTorch";
}

}  // namespace ranktap::agent
