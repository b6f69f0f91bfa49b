#include "collector/facts/operators/op_tensors.h"

#include <algorithm>

#include "collector/facts/flops/dtype_sizes.h"
#include "collector/facts/flops/op_flops.h"

namespace ranktap::collector {
namespace {

// 2 floats, 1 integers, 0 bool or unknown.
int CategoryOf(std::string_view type) {
  if (type == "bool" || type == "Bool" || BytesPerElement(type) == 0) return 0;
  for (const std::string_view integer : {"int", "char", "Long", "Int", "Short", "Byte", "Char"}) {
    if (type.find(integer) != type.npos) return 1;
  }
  return type == "long" ? 1 : 2;
}

int64_t NumelOf(const Dims& dims) { return dims.empty() ? 0 : Product(dims); }

// Kineto's older files shorten them: "long".
int64_t BytesOf(std::string_view type) { return type == "long" ? 8 : BytesPerElement(type); }

}  // namespace

int64_t TensorBytes(const Trace& trace, uint32_t shapes, uint32_t types) {
  constexpr int64_t kMost = int64_t{1} << 50;
  const OpInputs tensors(trace.dictionary.String(shapes), trace.dictionary.String(types));
  int64_t bytes = 0;
  for (size_t i = 0; i < std::min(tensors.shapes.size(), tensors.values.size()); ++i) {
    const int64_t element = BytesPerElement(tensors.values[i]);
    bytes =
        std::min(bytes + std::min(Product({NumelOf(tensors.shapes[i]), element}), kMost), kMost);
  }
  return bytes;
}

OpTensors::OpTensors(const OpSignature& op)
    : op_(op),
      in_(op.shapes, op.values),
      types_("", op.types),
      strides_(op.strides, ""),
      out_(op.output_shapes, ""),
      out_types_("", op.output_types) {}

std::string_view OpTensors::TypeOf(size_t index) const {
  return index < types_.values.size() ? types_.values[index] : std::string_view();
}

bool OpTensors::IsList(size_t index) const {
  return TypeOf(index) == "TensorList" || !in_.Tensors(index).empty();
}

int64_t OpTensors::Elements(size_t index) const {
  if (index >= in_.shapes.size()) return 0;
  if (!IsList(index)) return NumelOf(in_.shapes[index]);
  int64_t sum = 0;
  for (const Dims& tensor : in_.Tensors(index)) AddCapped(NumelOf(tensor), &sum);
  return sum;
}

int64_t OpTensors::ElementBytes(size_t index) const {
  if (!IsList(index)) return BytesOf(TypeOf(index));
  if (op_.list_element_bytes > 0 || out_types_.values.empty()) return op_.list_element_bytes;
  return BytesOf(out_types_.values[0]);  // cat returns what it joins
}

int64_t OpTensors::BroadcastElements(size_t arity) const {
  Dims out;
  int64_t of_lists = 0;
  for (size_t i = 0; i < std::min(arity, in_.shapes.size()); ++i) {
    if (IsList(i)) {
      of_lists = std::max(of_lists, Elements(i));
      continue;
    }
    const Dims& dims = in_.shapes[i];
    if (dims.size() > out.size()) out.insert(out.begin(), dims.size() - out.size(), 1);
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      int64_t& size = out[out.size() - dims.size() + axis];
      if (size == 1) size = dims[axis];
    }
  }
  return std::max(of_lists, NumelOf(out));
}

int64_t OpTensors::PromotedBytes(size_t first, size_t arity) const {
  int64_t bytes = 0;
  int category = -1;
  for (const bool with_dims : {true, false}) {
    for (size_t i = first; i < arity; ++i) {
      const int of_this = CategoryOf(TypeOf(i));
      if ((Elements(i) > 0) != with_dims || BytesOf(TypeOf(i)) == 0 || of_this < category) continue;
      // One without dimensions counts only where it is of a higher kind.
      if (of_this == category && (!with_dims && bytes > 0)) continue;
      bytes = of_this > category ? BytesOf(TypeOf(i)) : std::max(bytes, BytesOf(TypeOf(i)));
      category = of_this;
    }
  }
  if (bytes == 0 && IsList(first)) return op_.list_element_bytes;
  return bytes;
}

// An expanded tensor has stride 0 along each dimension that repeats.
int64_t OpTensors::Unique(size_t index) const {
  if (IsList(index) || index >= strides_.shapes.size()) return Elements(index);
  const Dims &dims = in_.shapes[index], &strides = strides_.shapes[index];
  if (strides.size() != dims.size()) return Elements(index);
  Dims there = dims;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (strides[axis] == 0) there[axis] = std::min<int64_t>(dims[axis], 1);
  }
  return NumelOf(there);
}

void OpTensors::ReadElements(size_t index, int64_t elements) {
  if (elements <= 0) return;
  const int64_t bytes = ElementBytes(index);
  if (bytes == 0) type_unknown_ = true;
  AddCapped(Product({elements, bytes}), &count_.read);
}

void OpTensors::Read(size_t index) {
  if (index >= in_.shapes.size()) return;
  // Older files say that it is a list, and not of what.
  if (IsList(index) && in_.Tensors(index).empty()) shapes_missing_ = true;
  ReadElements(index, Unique(index));
}

void OpTensors::WriteElements(int64_t elements, int64_t element_bytes) {
  if (elements <= 0) return;
  if (element_bytes == 0) output_type_unknown_ = true;
  AddCapped(Product({elements, element_bytes}), &count_.written);
}

void OpTensors::Write(size_t index) { WriteElements(Elements(index), ElementBytes(index)); }

std::optional<int64_t> OpTensors::RecordedOutputs() const {
  if (op_.output_shapes.empty() || out_.shapes.empty()) return std::nullopt;
  int64_t sum = 0;
  for (size_t i = 0; i < out_.shapes.size(); ++i) {
    const std::vector<Dims> list = out_.Tensors(i);
    int64_t elements = NumelOf(out_.shapes[i]);
    for (const Dims& tensor : list) AddCapped(NumelOf(tensor), &elements);
    if (elements == 0) continue;
    const std::string_view type =
        i < out_types_.values.size() ? out_types_.values[i] : std::string_view();
    const int64_t bytes = list.empty() ? BytesOf(type) : op_.list_element_bytes;
    if (bytes == 0) return std::nullopt;
    AddCapped(Product({elements, bytes}), &sum);
  }
  return sum;
}

ByteCount OpTensors::Counted(bool in_place) const {
  ByteCount count = count_;
  const std::optional<int64_t> recorded = in_place ? std::nullopt : RecordedOutputs();
  if (recorded) count.written = *recorded;
  if (outputs_wanted_ && !recorded) count.known = BytesKnown::kAtLeast;
  if (type_unknown_ || (output_type_unknown_ && !recorded)) count = {BytesKnown::kNoType};
  if (shapes_missing_) count = {BytesKnown::kNoShapes};
  return count;
}

}  // namespace ranktap::collector
