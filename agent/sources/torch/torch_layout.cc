// The search for PyTorch's offsets.
// Runs on: threads that hold the interpreter's lock.  May not: follow a pointer that is not
// checked.
#include "agent/sources/torch/torch_layout.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <optional>

namespace ranktap::agent {
namespace {

constexpr size_t kImplBytes = 256;
constexpr uint64_t kConvolutionInputs = 9, kDropoutInputs = 3;

template <typename Value>
Value At(std::span<const std::byte> bytes, size_t offset) {
  Value value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

uint64_t Payload(std::span<const std::byte> values, size_t index) {
  return At<uint64_t>(values, index * kIValueBytes);
}
uint32_t Tag(std::span<const std::byte> values, size_t index) {
  return At<uint32_t>(values, index * kIValueBytes + sizeof(uint64_t));
}

// The one offset at which the values of all tensors are; nullopt: none, or several.
template <typename Matches>
std::optional<size_t> OnlyOffset(size_t from, size_t to, size_t step, Matches matches) {
  std::optional<size_t> only;
  for (size_t offset = from; offset < to; offset += step) {
    if (!matches(offset)) continue;
    if (only) return std::nullopt;
    only = offset;
  }
  return only;
}

using Impl = std::array<std::byte, kImplBytes>;

bool HasSizes(const Impl& impl, size_t offset, std::span<const int64_t> sizes) {
  if (At<uint64_t>(impl, offset) != sizes.size()) return false;
  if (sizes.size() <= kInlineSizes) {
    return std::memcmp(impl.data() + offset + 8, sizes.data(), sizes.size_bytes()) == 0;
  }
  std::array<int64_t, 6> far{};
  return ReadSafely(At<uint64_t>(impl, offset + 8), std::as_writable_bytes(std::span(far))) &&
         std::memcmp(far.data(), sizes.data(), sizes.size_bytes()) == 0;
}

bool FindInTensors(const LayoutProbe& probe, TorchLayout& layout) {
  std::array<Impl, 6> impls{};
  for (size_t i = 0; i < impls.size(); ++i) {
    if (!ReadSafely(probe.tensors[i], impls[i])) return false;
  }
  constexpr int64_t kX[] = {3, 5, 17, 19}, kW[] = {7, 5, 3, 3}, kLong[] = {2, 1, 3, 1, 2, 7};
  const auto sizes = OnlyOffset(8, kImplBytes - 96, 8, [&](size_t offset) {
    return HasSizes(impls[0], offset, kX) && HasSizes(impls[1], offset, kW) &&
           HasSizes(impls[5], offset, kLong);
  });
  if (!sizes) return false;
  constexpr uint16_t kTypes[] = {6, 6, 7, 4, 15, 6};  // c10/core/ScalarType.h
  const auto dtype = OnlyOffset(*sizes + 88, kImplBytes, 2, [&](size_t offset) {
    for (size_t i = 0; i < impls.size(); ++i) {
      if (At<uint16_t>(impls[i], offset) != kTypes[i]) return false;
    }
    return true;
  });
  layout.sizes = *sizes;
  layout.dtype = dtype.value_or(0);
  return dtype.has_value();
}

// Finds the inputs of `count` of which the first is `tensor`, and copies them.
std::optional<size_t> FindInputs(const void* function, uint64_t tensor, uint64_t count,
                                 std::span<std::byte> values) {
  std::array<std::byte, kRecordFunctionBytes> bytes{};
  if (!ReadSafely(reinterpret_cast<uintptr_t>(function), bytes)) return std::nullopt;
  return OnlyOffset(0, bytes.size() - 16, 8, [&](size_t offset) {
    return At<uint64_t>(bytes, offset + 8) == count &&
           ReadSafely(At<uint64_t>(bytes, offset), values) && Payload(values, 0) == tensor;
  });
}

// Finds in a list's object the pointers to its two numbers, 2 and 3.
std::optional<size_t> FindListBegin(uint64_t list, uint32_t number) {
  std::array<std::byte, 64> bytes{};
  if (!ReadSafely(list, bytes)) return std::nullopt;
  return OnlyOffset(8, bytes.size() - 16, 8, [&](size_t offset) {
    const auto begin = At<uint64_t>(bytes, offset), end = At<uint64_t>(bytes, offset + 8);
    std::array<std::byte, 2 * kIValueBytes> values{};
    return end - begin == values.size() && ReadSafely(begin, values) && Payload(values, 0) == 2 &&
           Payload(values, 1) == 3 && Tag(values, 0) == number && Tag(values, 1) == number;
  });
}

// The handle grows by one with each operator.
std::optional<size_t> FindHandle(const LayoutProbe& probe, const TorchLayout& layout) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  return OnlyOffset(8, kRecordFunctionBytes, 8, [&](size_t offset) {
    const auto first = At<uint64_t>(probe.functions[0], offset),
               second = At<uint64_t>(probe.functions[1], offset);
    return offset != layout.sequence && first != 0 && first < kMost &&
           second - first == probe.begun[1] - probe.begun[0];
  });
}

void FindTensors(const LayoutProbe& probe, TorchLayout& layout) {
  const ProbedTensors& made = probe.made;
  std::array<Impl, 2> impls{};
  std::array<std::array<std::byte, 64>, 2> storages{};
  if (probe.ended != probe.ends.size() || made.outputs[0] == 0 || !ReadSafely(made.own, impls[0]) ||
      !ReadSafely(made.borrowed, impls[1]) || !ReadSafely(made.own_storage, storages[0]) ||
      !ReadSafely(made.borrowed_storage, storages[1])) {
    return;
  }
  const auto outputs = OnlyOffset(0, kRecordFunctionBytes, 8, [&](size_t offset) {
    for (size_t i = 0; i < probe.ends.size(); ++i) {
      const auto& value = probe.ends[i][offset / 8];
      if (Payload(value, 0) != made.outputs[i] || Tag(value, 0) != layout.tensor) return false;
    }
    return true;
  });
  const auto storage = OnlyOffset(8, layout.sizes, 8, [&](size_t offset) {
    return At<uint64_t>(impls[0], offset) == made.own_storage &&
           At<uint64_t>(impls[1], offset) == made.borrowed_storage;
  });
  // Memory that the storage frees itself has two pointers to it, borrowed memory has one.
  const auto data = OnlyOffset(8, storages[0].size(), 8, [&](size_t offset) {
    return At<uint64_t>(storages[0], offset) == made.own_data &&
           At<uint64_t>(storages[1], offset) == made.borrowed_data;
  });
  if (!outputs || !storage || !data) return;
  layout.outputs = *outputs;
  layout.handle = FindHandle(probe, layout).value_or(0);
  layout.storage = *storage;
  layout.data = *data;
  layout.finds_tensors = true;
}

}  // namespace

bool ReadSafely(uint64_t address, std::span<std::byte> into) {
  const iovec local{into.data(), into.size()};
  const iovec remote{reinterpret_cast<void*>(address), into.size()};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(into.size());
}

void ProbeConvolution(const void* function, LayoutProbe& probe) {
  if (probe.seen >= probe.functions.size()) return;
  const auto inputs = FindInputs(function, probe.tensors[0], kConvolutionInputs, probe.convolution);
  // The search leaves the last place it looked at behind.
  std::array<std::byte, 16> place{};
  if (!inputs || (probe.seen != 0 && *inputs != probe.inputs) ||
      !ReadSafely(reinterpret_cast<uintptr_t>(function) + *inputs, place) ||
      !ReadSafely(At<uint64_t>(place, 0), probe.convolution) ||
      !ReadSafely(reinterpret_cast<uintptr_t>(function), probe.functions[probe.seen])) {
    return;
  }
  probe.inputs = *inputs;
  if (const auto begin = FindListBegin(Payload(probe.convolution, 3), Tag(probe.convolution, 8))) {
    probe.list_begin = *begin;
  }
  probe.begun[probe.seen] = probe.operators;
  ++probe.seen;
}

void ProbeConvolutionsEnd(const void* function, LayoutProbe& probe) {
  std::array<std::byte, kRecordFunctionBytes> bytes{};
  if (probe.ended >= probe.ends.size() ||
      !ReadSafely(reinterpret_cast<uintptr_t>(function), bytes)) {
    return;
  }
  LayoutProbe::Ends& ends = probe.ends[probe.ended++];
  for (size_t offset = 0; offset + 16 <= bytes.size(); offset += 8) {
    const auto begin = At<uint64_t>(bytes, offset), end = At<uint64_t>(bytes, offset + 8);
    if (end - begin == kIValueBytes) (void)ReadSafely(begin, ends[offset / 8]);
  }
}

void ProbeDropout(const void* function, LayoutProbe& probe) {
  std::array<std::byte, 16> place{};
  if (ReadSafely(reinterpret_cast<uintptr_t>(function) + probe.inputs, place) &&
      At<uint64_t>(place, 8) == kDropoutInputs) {
    (void)ReadSafely(At<uint64_t>(place, 0), probe.dropout);
  }
}

TorchLayout FindLayout(const LayoutProbe& probe) {
  TorchLayout layout;
  if (probe.seen != probe.functions.size() || probe.list_begin == 0) return layout;
  layout.inputs = probe.inputs;
  layout.list = probe.list_begin;
  const auto sequence = OnlyOffset(0, kRecordFunctionBytes, 8, [&](size_t offset) {
    return At<uint64_t>(probe.functions[0], offset) == probe.sequences[0] &&
           At<uint64_t>(probe.functions[1], offset) == probe.sequences[1];
  });
  if (!sequence || !FindInTensors(probe, layout)) return layout;
  layout.sequence = *sequence;
  const double half = 0.5;
  uint64_t half_bits = 0;
  std::memcpy(&half_bits, &half, sizeof(half_bits));
  const auto& conv = probe.convolution;
  layout.tensor = Tag(conv, 0);
  layout.none = Tag(conv, 2);
  layout.generic_list = Tag(conv, 3);
  layout.flag = Tag(conv, 6);
  layout.number = Tag(conv, 8);
  layout.real = Tag(probe.dropout, 1);
  const uint32_t tags[] = {layout.none, layout.tensor,       layout.number,
                           layout.real, layout.generic_list, layout.flag};
  for (size_t i = 0; i < std::size(tags); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (tags[i] == tags[j]) return layout;
    }
  }
  layout.found = Payload(conv, 1) == probe.tensors[1] && Tag(conv, 1) == layout.tensor &&
                 Tag(conv, 4) == layout.generic_list && Payload(conv, 8) == 1 &&
                 Payload(probe.dropout, 0) == probe.tensors[0] &&
                 Payload(probe.dropout, 1) == half_bits && Tag(probe.dropout, 2) == layout.flag;
  if (layout.found) FindTensors(probe, layout);
  if (layout.finds_tensors) layout.values = FindValueLayout(probe.values, layout);
  return layout;
}

}  // namespace ranktap::agent
