// An operator's values, c10::IValue, read where they lie.
// Runs on: threads that run operators.  May not: allocate, lock, wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "agent/sources/torch/torch_layout.h"

namespace ranktap::agent {

inline constexpr size_t kMostListElements = 4096;

struct TorchInputs {
  const std::byte* values = nullptr;  // c10::IValue
  size_t count = 0;
  const TorchLayout* layout = nullptr;
};

template <typename Value>
Value ReadTorch(const void* object, size_t offset = 0) {
  Value value;
  std::memcpy(&value, static_cast<const std::byte*>(object) + offset, sizeof(value));
  return value;
}

// One value: the payload and what it is.
struct TorchValue {
  const std::byte* at;
  uint32_t tag() const { return ReadTorch<uint32_t>(at, 8); }
  uint64_t payload() const { return ReadTorch<uint64_t>(at); }
};

// The elements in a list's payload, at most kMostListElements.
inline std::span<const std::byte> ElementsOf(const TorchLayout& layout, uint64_t payload) {
  const auto* const list = reinterpret_cast<const std::byte*>(payload);
  const auto* const begin = ReadTorch<const std::byte*>(list, layout.list);
  const auto* const end = ReadTorch<const std::byte*>(list, layout.list + sizeof(void*));
  const auto bytes = static_cast<size_t>(end - begin);
  return {begin, std::min(bytes, kMostListElements * kIValueBytes)};
}

// The elements in a tuple's payload: up to three of them in place, more in a vector, as
// c10::ivalue::TupleElements has them where a list has its vector. None: PyTorch has them
// otherwise.
inline std::span<const std::byte> ElementsOfTuple(const TorchLayout& layout, uint64_t payload) {
  constexpr size_t kInline = 3;
  const auto* const tuple = reinterpret_cast<const std::byte*>(payload);
  const auto count = ReadTorch<size_t>(tuple, layout.list);
  const size_t first = layout.list + sizeof(count);
  if (count > kInline) return {};
  if (count != 0) return {tuple + first, count * kIValueBytes};
  const auto* const begin = ReadTorch<const std::byte*>(tuple, first);
  const auto* const end = ReadTorch<const std::byte*>(tuple, first + sizeof(void*));
  const auto bytes = static_cast<size_t>(end - begin);
  return {begin, std::min(bytes, kMostListElements * kIValueBytes)};
}

}  // namespace ranktap::agent
