#include "collector/trace/operator_values.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "collector/trace/framework_ranges.h"
#include "proto/framework_marks.h"
#include "proto/operator_values.h"

namespace ranktap::collector {
namespace {

using Kind = TraceValue::Kind;
using proto::ValueCode;
using proto::ValuesHead;

struct ElementType {
  std::string_view name;
  uint8_t bytes;
};

// c10::ScalarType's numbers, named as caffe2::TypeMeta does.
ElementType ElementTypeOf(uint16_t number) {
  static constexpr auto kTypes = std::to_array<ElementType>({
      {"unsigned char", 1},
      {"signed char", 1},
      {"short int", 2},
      {"int", 4},
      {"long int", 8},
      {"c10::Half", 2},
      {"float", 4},
      {"double", 8},
      {"c10::complex<c10::Half>", 4},
      {"c10::complex<float>", 8},
      {"c10::complex<double>", 16},
      {"bool", 1},
      {"c10::qint8", 1},
      {"c10::quint8", 1},
      {"c10::qint32", 4},
      {"c10::BFloat16", 2},
  });
  if (number < kTypes.size()) return kTypes[number];
  switch (number) {
    case 23:
      return {"c10::Float8_e5m2", 1};
    case 24:
      return {"c10::Float8_e4m3fn", 1};
    case 27:
      return {"short unsigned int", 2};
    case 28:
      return {"unsigned int", 4};
    case 29:
      return {"long unsigned int", 8};
    default:
      return {"", 0};
  }
}

// c10::Device::str().
std::string DeviceName(int8_t type, int8_t index) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
       "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
       "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone"});
  if (type < 0 || static_cast<size_t>(type) >= kNames.size()) return {};
  std::string name(kNames[static_cast<size_t>(type)]);
  if (index >= 0) name += ":" + std::to_string(index);
  return name;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename Value>
  Value Take() {
    Value value{};
    if (bytes_.size() < sizeof(value)) {
      is_cut_ = true;
      bytes_ = {};
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_.remove_prefix(sizeof(value));
    return value;
  }
  std::string_view TakeBytes(size_t count) {
    is_cut_ |= count > bytes_.size();
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  bool is_cut() const { return is_cut_; }

  TraceValue TakeValue(size_t depth) {
    constexpr size_t kMostNesting = 8;
    TraceValue value;
    const auto code = Take<ValueCode>();
    switch (code) {
      case ValueCode::kNone:
        value.type = "None";
        break;
      case ValueCode::kTensor:
        TakeTensor(&value);
        break;
      case ValueCode::kUndefined:
        value.kind = Kind::kTensor;
        value.type = "nullptr (uninitialized)";
        value.tensor = Take<uint64_t>();
        break;
      case ValueCode::kInteger:
        value = {.kind = Kind::kInteger, .type = "Int", .integer = Take<int64_t>()};
        break;
      case ValueCode::kReal:
        value = {.kind = Kind::kReal, .type = "Double", .real = Take<double>()};
        break;
      case ValueCode::kFlag:
        value = {.kind = Kind::kFlag, .type = "Bool", .integer = Take<uint8_t>()};
        break;
      case ValueCode::kText:
        value.kind = Kind::kText;
        value.type = "String";
        value.text = TakeBytes(std::min(Take<uint32_t>(), proto::kMostTextBytes));
        break;
      case ValueCode::kDevice: {
        const auto type = Take<int8_t>(), index = Take<int8_t>();
        value.kind = Kind::kDevice;
        value.type = "Device";
        value.text = DeviceName(type, index);
        break;
      }
      case ValueCode::kList:
      case ValueCode::kTuple: {
        value.kind = Kind::kList;
        value.type = code == ValueCode::kTuple ? "Tuple" : "GenericList";
        const auto count = Take<uint32_t>();
        if (depth >= kMostNesting) is_cut_ = true;
        for (uint32_t i = 0; i < count && !is_cut_; ++i) {
          value.elements.push_back(TakeValue(depth + 1));
        }
        break;
      }
      case ValueCode::kOther:
        value = {.kind = Kind::kOther, .type = {}, .integer = Take<uint32_t>()};
        break;
      default:
        is_cut_ = true;
    }
    return value;
  }

 private:
  void TakeTensor(TraceValue* value) {
    value->kind = Kind::kTensor;
    const ElementType type = ElementTypeOf(Take<uint16_t>());
    const auto dims = Take<uint8_t>();
    const auto device = Take<int8_t>(), index = Take<int8_t>();
    const bool has_storage = Take<uint8_t>() != 0;
    value->type = type.name;
    value->tensor = Take<uint64_t>();
    value->storage = Take<uint64_t>();
    value->offset = Take<int64_t>();
    uint64_t count = 1;
    for (size_t i = 0; i < dims && !is_cut_; ++i) {
      value->sizes.push_back(Take<int64_t>());
      count *= static_cast<uint64_t>(value->sizes.back());
    }
    for (size_t i = 0; i < dims && !is_cut_; ++i) value->strides.push_back(Take<int64_t>());
    value->integer = has_storage ? 1 : 0;
    if (!has_storage) {
      value->offset = 0;
      return;
    }
    value->elements_count = count;
    value->element_bytes = type.bytes;
    value->text = DeviceName(device, index);
  }

  std::string_view bytes_;
  bool is_cut_ = false;
};

// The bytes of a mark's blob after its own head; empty: it is none of ours.
std::string_view BytesOf(const Trace& trace, uint32_t row) {
  const uint32_t payload = trace.marks.inline_payload.At(row);
  if (payload == 0 || payload > trace.payloads.size()) return {};
  const std::string_view blob = trace.payloads[payload - 1];
  uint64_t head[2] = {};  // schema, bytes
  if (blob.size() < sizeof(head)) return {};
  std::memcpy(head, blob.data(), sizeof(head));
  return blob.substr(sizeof(head), head[1]);
}

// What goes on over several marks of one thread.
struct Unfinished {
  ValuesHead head{};
  uint32_t parts = 0;  // that came
  std::string bytes;
};

std::optional<RecordedValues> Decode(const Unfinished& whole) {
  RecordedValues found;
  Reader reader(whole.bytes);
  found.are_outputs = (whole.head.flags & proto::kValuesAreOutputs) != 0;
  found.thread = whole.head.thread;
  found.record_function = whole.head.record;
  found.knows_overload = whole.head.overload_bytes != proto::kNoOverload;
  if (found.knows_overload) found.overload = reader.TakeBytes(whole.head.overload_bytes);
  for (uint32_t i = 0; i < whole.head.count && !reader.is_cut(); ++i) {
    found.values.push_back(reader.TakeValue(0));
  }
  if (reader.is_cut()) return std::nullopt;
  return found;
}

}  // namespace

std::vector<RecordedValues> ReadOperatorValues(const Trace& trace) {
  std::vector<RecordedValues> all;
  std::vector<Unfinished> of_writer(trace.writers.size());
  const Ranges& marks = trace.marks;
  for (uint32_t row = 0; row < marks.size(); ++row) {
    if (marks.inline_payload.At(row) == 0 ||
        trace.dictionary.String(marks.name[row]) != proto::kValuesMark ||
        trace.dictionary.Domain(marks.domain[row]) != kOperatorDomain ||
        marks.writer[row] >= of_writer.size()) {
      continue;
    }
    Reader reader(BytesOf(trace, row));
    const auto head = reader.Take<ValuesHead>();
    if (reader.is_cut() || head.version != proto::kValuesVersion) continue;
    Unfinished& part = of_writer[marks.writer[row]];
    if (head.part == 0) part = {};
    if (head.part != part.parts) continue;  // one before it is lost
    part.head = head;
    ++part.parts;
    part.bytes += BytesOf(trace, row).substr(sizeof(head));
    if ((head.flags & proto::kValuesGoOn) != 0) continue;
    auto values = Decode(part);
    part = {};
    part.parts = UINT32_MAX;
    if (!values) continue;
    values->time = marks.start[row];
    values->writer = marks.writer[row];
    all.push_back(std::move(*values));
  }
  return all;
}

}  // namespace ranktap::collector
