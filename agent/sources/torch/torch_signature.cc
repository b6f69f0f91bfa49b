// Numbers and words of signatures.
// Runs on: threads that run operators.  May not: allocate but when a signature is new.
#include "agent/sources/torch/torch_signature.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <span>
#include <string>

#include "agent/core/contain.h"
#include "agent/sources/torch/text_mark.h"
#include "proto/events.h"
#include "proto/framework_marks.h"
#include "proto/operator_payload.h"

namespace ranktap::agent {
namespace {

constexpr size_t kMostInputs = 64, kMostDims = 64, kMostBytes = 56'000;
constexpr size_t kSlots = proto::kSignaturesOfWindow, kMostProbes = 32;

// Hashes; a signature's number is its slot's. The epoch keeps those of several windows apart.
constinit std::array<std::atomic<uint64_t>, kSlots> g_signatures{};
constinit uint64_t g_epoch = 0;
// In this window: operators without a signature, signatures without a text.
constinit std::atomic<uint64_t> g_unsigned_operators{0}, g_untold_signatures{0};

using Input = TorchValue;

struct Tensor {
  const int64_t* sizes = nullptr;
  size_t dims = 0;
  uint16_t dtype = 0;
};

// c10::ScalarType's numbers, as PyTorch's observers write them.
std::string_view TypeName(uint16_t dtype) {
  constexpr std::array<std::string_view, 16> kNames = {"unsigned char",
                                                       "signed char",
                                                       "short int",
                                                       "int",
                                                       "long int",
                                                       "c10::Half",
                                                       "float",
                                                       "double",
                                                       "c10::complex<c10::Half>",
                                                       "c10::complex<float>",
                                                       "c10::complex<double>",
                                                       "bool",
                                                       "c10::qint8",
                                                       "c10::quint8",
                                                       "c10::qint32",
                                                       "c10::BFloat16"};
  if (dtype < kNames.size()) return kNames[dtype];
  if (dtype == 23) return "c10::Float8_e5m2";
  if (dtype == 24) return "c10::Float8_e4m3fn";
  return {};  // an undefined tensor, or a type of later versions
}

[[gnu::always_inline]] inline Tensor TensorOf(const TorchLayout& layout, uint64_t payload) {
  const auto* const impl = reinterpret_cast<const std::byte*>(payload);
  Tensor tensor{.sizes = nullptr,
                .dims = ReadTorch<size_t>(impl, layout.sizes),
                .dtype = ReadTorch<uint16_t>(impl, layout.dtype)};
  // An undefined tensor has a size, but it is none.
  if (tensor.dims > kMostDims || TypeName(tensor.dtype).empty()) tensor.dims = 0;
  const std::byte* const sizes = impl + layout.sizes + sizeof(size_t);
  tensor.sizes = tensor.dims > kInlineSizes ? ReadTorch<const int64_t*>(sizes)
                                            : reinterpret_cast<const int64_t*>(sizes);
  return tensor;
}

// Only formulas of FLOPs look at values, and who asks for the peer of a message: of other operators
// they would make signatures without end.
bool HasValues(const char* text) {
  // Most operators end here, before their names' lengths are asked for.
  if (text[0] != 'c' && text[0] != 'a') return false;
  if (text[0] == 'a' && text[1] == 't' && text[2] == 'e' && text[3] == 'n' && text[4] == ':' &&
      text[5] == ':' && text[6] != 'c' && text[6] != '_' && text[6] != 'b' && text[6] != 'u') {
    return false;
  }
  const std::string_view name = text;
  return name.starts_with("aten::conv") || name.starts_with("aten::_conv") ||
         name.starts_with("aten::batch_norm") || name.starts_with("aten::upsample") ||
         name.starts_with("aten::_upsample") || name == "c10d::send" || name == "c10d::recv_";
}

class Hash {
 public:
  [[gnu::always_inline]] void Add(uint64_t value) {
    state_ = (state_ ^ value) * 0x9e37'79b9'7f4a'7c15;
    state_ ^= state_ >> 29;
  }
  uint64_t value() const { return state_ == 0 ? 1 : state_; }

 private:
  uint64_t state_ = 0x243f'6a88'85a3'08d3;
};

// Inline, with Add: the state stays in a register.
[[gnu::always_inline]] inline void AddTensor(const Tensor& tensor, Hash& hash) {
  hash.Add(uint64_t{tensor.dtype} << 32 | tensor.dims);
  for (size_t i = 0; i < tensor.dims; ++i) hash.Add(static_cast<uint64_t>(tensor.sizes[i]));
}

uint64_t HashOf(const TorchInputs& inputs, bool with_values) {
  const TorchLayout& layout = *inputs.layout;
  Hash hash;
  const auto add = [&](const Input& input) __attribute__((always_inline)) {
    const uint32_t tag = input.tag();
    hash.Add(tag);
    if (tag == layout.tensor) {
      AddTensor(TensorOf(layout, input.payload()), hash);
    } else if (with_values && (tag == layout.number || tag == layout.real || tag == layout.flag)) {
      hash.Add(tag == layout.flag ? input.payload() & 1 : input.payload());
    }
  };
  hash.Add(with_values ? inputs.count | uint64_t{1} << 32 : inputs.count);
  for (size_t i = 0; i < inputs.count; ++i) {
    const Input input{inputs.values + i * kIValueBytes};
    add(input);
    if (input.tag() != layout.generic_list) continue;
    const auto elements = ElementsOf(layout, input.payload());
    hash.Add(elements.size());
    for (size_t at = 0; at < elements.size(); at += kIValueBytes) add({elements.data() + at});
  }
  return hash.value();
}

void AddNumber(int64_t number, std::string& text) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), end);
}

// The texts of one signature, each with what JSON within JSON needs.
class Words {
 public:
  explicit Words(const TorchLayout& layout) : layout_(layout) {}

  void Add(const Input& input, bool with_values) {
    const uint32_t tag = input.tag();
    Separate();
    if (tag == layout_.tensor) {
      const Tensor tensor = TensorOf(layout_, input.payload());
      AddShape(tensor);
      AddType(TypeName(tensor.dtype));
      AddQuoted({});
    } else if (tag == layout_.generic_list) {
      AddList(ElementsOf(layout_, input.payload()), with_values);
    } else {
      shapes_ += "[]";
      AddType(tag == layout_.none ? "" : "Scalar");
      value_.clear();
      if (with_values) AddValue(input);
      AddQuoted(value_);
    }
  }

  std::string Line(uint64_t number, bool with_values) const {
    static_assert(proto::kSignaturesRow.names == "number shapes types values");
    std::string line = "[";
    AddNumber(static_cast<int64_t>(number), line);
    line.append(",\"[").append(shapes_).append("]\",\"[").append(types_).append("]\",\"");
    if (with_values) line.append("[").append(values_).append("]");
    return line.append("\"]");
  }

  // A list was longer than is looked at.
  bool is_cut() const { return is_cut_; }

 private:
  void Separate() {
    if (shapes_.empty()) return;
    for (std::string* text : {&shapes_, &types_, &values_}) *text += ", ";
  }
  void AddShape(const Tensor& tensor) {
    shapes_ += '[';
    for (size_t i = 0; i < tensor.dims; ++i) {
      if (i != 0) shapes_ += ", ";
      AddNumber(tensor.sizes[i], shapes_);
    }
    shapes_ += ']';
  }
  void AddType(std::string_view type) { types_.append("\\\"").append(type).append("\\\""); }
  void AddQuoted(std::string_view value) { values_.append("\\\"").append(value).append("\\\""); }

  void AddList(std::span<const std::byte> elements, bool with_values) {
    is_cut_ = is_cut_ || elements.size() >= kMostListElements * kIValueBytes;
    const bool of_tensors = !elements.empty() && Input{elements.data()}.tag() == layout_.tensor;
    AddType(of_tensors ? "TensorList" : "ScalarList");
    shapes_ += '[';
    value_ = "[";
    for (size_t at = 0; at < elements.size(); at += kIValueBytes) {
      const Input element{elements.data() + at};
      if (of_tensors && element.tag() == layout_.tensor) {
        if (at != 0) shapes_ += ", ";
        AddShape(TensorOf(layout_, element.payload()));
      } else if (with_values) {
        if (at != 0) value_ += ", ";
        AddValue(element);
      }
    }
    shapes_ += ']';
    AddQuoted(with_values && !of_tensors ? value_ + "]" : std::string());
  }

  void AddValue(const Input& input) {
    const uint32_t tag = input.tag();
    if (tag == layout_.number) AddNumber(static_cast<int64_t>(input.payload()), value_);
    if (tag == layout_.flag) value_ += (input.payload() & 1) != 0 ? "true" : "false";
    if (tag == layout_.real) {
      const uint64_t bits = input.payload();
      double real = 0;
      std::memcpy(&real, &bits, sizeof(real));
      value_ += std::to_string(real);
    }
  }

  const TorchLayout& layout_;
  bool is_cut_ = false;
  std::string shapes_, types_, values_, value_;
};

[[gnu::noinline]] void Tell(ThreadState& thread, const TorchInputs& inputs, bool with_values,
                            uint64_t number, proto::ArenaRef domain, proto::ArenaRef mark) {
  Words words(*inputs.layout);
  for (size_t i = 0; i < inputs.count; ++i) {
    words.Add({inputs.values + i * kIValueBytes}, with_values);
  }
  const std::string line = words.Line(number, with_values);
  if (words.is_cut() ||
      line.size() > kMostBytes) {  // of hundreds of tensors: the operators keep their times
    g_untold_signatures.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  EmitTextMark(thread, domain, mark, line);
}

}  // namespace

uint64_t SignatureOf(ThreadState& thread, const TorchInputs& inputs, const char* name,
                     proto::ArenaRef domain, proto::ArenaRef mark) {
  if (inputs.count == 0 || inputs.values == nullptr) return 0;
  if (inputs.count > kMostInputs) {
    g_unsigned_operators.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  if (g_epoch * kSlots + kSlots > proto::kMostOperatorStacks) {  // after 16,000 windows
    g_unsigned_operators.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  const bool with_values = HasValues(name);
  const uint64_t hash = HashOf(inputs, with_values);
  for (size_t probe = 0; probe < kMostProbes; ++probe) {
    const size_t slot = (hash + probe) % kSlots;
    const uint64_t number = g_epoch * kSlots + slot + 1;
    uint64_t known = g_signatures[slot].load(std::memory_order_relaxed);
    if (known == hash) [[likely]]
      return number;
    if (known != 0) continue;
    if (g_signatures[slot].compare_exchange_strong(known, hash, std::memory_order_relaxed)) {
      // An exception of ours would be torch's to report, on the program's stderr.
      const auto tell = [&] {
        return Tell(thread, inputs, with_values, number, domain, mark), true;
      };
      if (!Contain(false, tell)) g_untold_signatures.fetch_add(1, std::memory_order_relaxed);
      return number;
    }
    if (known == hash) return number;
  }
  g_unsigned_operators.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

std::string TakeWhatIsNotDescribed() {
  const uint64_t operators = g_unsigned_operators.exchange(0),
                 texts = g_untold_signatures.exchange(0);
  if (operators == 0 && texts == 0) return {};
  return "shapes are missing in a window: of " + std::to_string(operators) +
         " operator calls with more than " + std::to_string(kMostInputs) + " inputs or beyond " +
         std::to_string(kSlots) + " signatures, and of " + std::to_string(texts) +
         " signatures longer than " + std::to_string(kMostBytes) +
         " bytes; their times are complete";
}

void ForgetSignatures() {
  for (auto& slot : g_signatures) slot.store(0, std::memory_order_relaxed);
  ++g_epoch;
}

}  // namespace ranktap::agent
