// The search for where PyTorch keeps strides, offsets, devices and texts.
// Runs on: threads that hold the interpreter's lock.  May not: follow a pointer that is not
// checked.
#include "agent/sources/torch/torch_value_layout.h"

#include <cstring>
#include <optional>
#include <string_view>

#include "agent/sources/torch/torch_layout.h"

namespace ranktap::agent {
namespace {

constexpr size_t kImplBytes = 256, kStringBytes = 64;
constexpr int8_t kMetaDevice = 14;  // c10::DeviceType
constexpr std::string_view kApproximation = "tanh";

using Impl = std::array<std::byte, kImplBytes>;

template <typename Value>
Value At(std::span<const std::byte> bytes, size_t offset) {
  Value value{};
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

template <typename Matches>
size_t OnlyOffset(size_t from, size_t to, size_t step, Matches matches) {
  std::optional<size_t> only;
  for (size_t offset = from; offset < to; offset += step) {
    if (!matches(offset)) continue;
    if (only) return 0;
    only = offset;
  }
  return only.value_or(0);
}

std::optional<Impl> ImplAt(uint64_t address) {
  Impl impl{};
  if (address == 0 || !ReadSafely(address, impl)) return std::nullopt;
  return impl;
}

bool HasStrides(const Impl& turned, size_t sizes) {
  constexpr int64_t kExpected[] = {7, 2, 3}, kStrides[] = {1, 21, 7};
  const size_t first = sizes + sizeof(uint64_t);
  return At<uint64_t>(turned, sizes) == 3 &&
         std::memcmp(turned.data() + first, kExpected, sizeof(kExpected)) == 0 &&
         std::memcmp(turned.data() + first + kInlineSizes * 8, kStrides, sizeof(kStrides)) == 0;
}

bool IsKnown(const TorchLayout& layout, uint32_t tag) {
  return tag == layout.none || tag == layout.tensor || tag == layout.number || tag == layout.real ||
         tag == layout.flag || tag == layout.generic_list;
}

// A c10::Device and the byte that says that there is one.
bool IsDevice(const Impl& impl, size_t offset, int8_t type) {
  const auto index = At<int8_t>(impl, offset + 1);
  return At<int8_t>(impl, offset) == type && (index == -1 || index == 0) &&
         At<uint8_t>(impl, offset + 2) == 1;
}

// Finds the std::string of our text in the memory that a string's payload points to.
size_t FindCharacters(uint64_t payload) {
  std::array<std::byte, kStringBytes> object{};
  if (!ReadSafely(payload, object)) return 0;
  return OnlyOffset(8, kStringBytes - 16, 8, [&](size_t offset) {
    std::array<std::byte, kApproximation.size()> text{};
    return At<uint64_t>(object, offset + 8) == text.size() &&
           ReadSafely(At<uint64_t>(object, offset), text) &&
           std::memcmp(text.data(), kApproximation.data(), text.size()) == 0;
  });
}

}  // namespace

void ProbeValues(const char* name, const void* function, size_t inputs, ValueProbe& probe) {
  const std::span<std::byte> into = std::strcmp(name, "aten::gelu") == 0
                                        ? std::span<std::byte>(probe.gelu)
                                        : std::span<std::byte>(probe.empty);
  if (into.data() == probe.empty.data() && std::strcmp(name, "aten::empty") != 0) return;
  std::array<std::byte, 16> place{};
  if (!ReadSafely(reinterpret_cast<uintptr_t>(function) + inputs, place) ||
      At<uint64_t>(place, 8) != into.size() / kIValueBytes) {
    return;
  }
  if (ReadSafely(At<uint64_t>(place, 0), into) && into.data() == probe.gelu.data()) {
    probe.characters = FindCharacters(At<uint64_t>(probe.gelu, kIValueBytes));
  }
}

ValueLayout FindValueLayout(const ValueProbe& probe, const TorchLayout& layout) {
  ValueLayout found;
  const auto turned = ImplAt(probe.turned), far = ImplAt(probe.far_view),
             farther = ImplAt(probe.farther_view), meta = ImplAt(probe.on_meta);
  if (!turned || !far || !farther || !meta) return found;
  found.has_strides = HasStrides(*turned, layout.sizes);
  found.offset = OnlyOffset(layout.sizes + 88, kImplBytes - 8, 8, [&](size_t offset) {
    return At<int64_t>(*far, offset) == 37 && At<int64_t>(*farther, offset) == 61;
  });
  found.device = OnlyOffset(layout.sizes + 88, kImplBytes - 4, 1, [&](size_t offset) {
    return IsDevice(*meta, offset, kMetaDevice) && IsDevice(*far, offset, 0) &&
           IsDevice(*farther, offset, 0) && IsDevice(*turned, offset, 0);
  });
  const auto device = At<uint32_t>(probe.empty, 3 * kIValueBytes + 8);
  if (!IsKnown(layout, device) && At<int8_t>(probe.empty, 3 * kIValueBytes) == kMetaDevice)
    found.device_tag = device;
  const auto text = At<uint32_t>(probe.gelu, kIValueBytes + 8);
  if (probe.characters != 0 && !IsKnown(layout, text)) {
    found.text = text;
    found.characters = probe.characters;
    // No operator takes a tuple, so that none is probed; PyTorch has always had its tag between
    // those of flags and texts.
    const uint32_t between = layout.flag + 1;
    if (layout.flag != 0 && text == between + 1 && !IsKnown(layout, between)) found.tuple = between;
  }
  return found;
}

std::string NotFoundOf(const ValueLayout& layout) {
  std::string missing;
  const auto add = [&missing](bool found, std::string_view what) {
    if (!found) missing.append(missing.empty() ? "" : ", ").append(what);
  };
  add(layout.has_strides, "strides");
  add(layout.offset != 0, "offsets");
  add(layout.device != 0, "devices of tensors");
  add(layout.text != 0, "texts");
  add(layout.device_tag != 0, "devices");
  add(layout.tuple != 0, "tuples");
  return missing;
}

}  // namespace ranktap::agent
