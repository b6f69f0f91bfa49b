#include "collector/parquet/parquet_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "collector/file/printable.h"
#include "collector/parquet/packed_numbers.h"

namespace ranktap::collector {
namespace {

constexpr size_t kLongestBound = 1024;

bool IsAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char byte) { return static_cast<uint8_t>(byte) < 0x80; });
}

std::string ValidUtf8(std::string_view text) {
  if (IsAscii(text)) return std::string(text);
  std::string valid;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    valid += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return valid;
}

void AppendBytes(uint64_t value, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> 8 * i));
}

size_t BytesOf(ParquetType type) {
  if (type == ParquetType::kBool) return 1;
  return type == ParquetType::kInt32 ? 4 : 8;
}

std::string Plain(uint64_t value, ParquetType type) {
  std::string bytes;
  AppendBytes(value, BytesOf(type), &bytes);
  return bytes;
}

std::optional<ParquetBounds> BoundsOfTexts(const ParquetValues& values) {
  const auto [least, largest] = std::ranges::minmax_element(values.texts());
  if (least->size() > kLongestBound || largest->size() > kLongestBound) return std::nullopt;
  return ParquetBounds{*least, *largest};
}

std::optional<ParquetBounds> BoundsOfReals(const ParquetValues& values) {
  double least = std::numeric_limits<double>::infinity(), largest = -least;
  for (const uint64_t bits : values.values()) {
    const auto value = std::bit_cast<double>(bits);
    if (std::isnan(value)) return std::nullopt;
    least = std::min(least, value), largest = std::max(largest, value);
  }
  // The format's rule: readers may tell the zeros apart, and writers must not.
  if (least == 0) least = -0.0;
  if (largest == 0) largest = 0.0;
  const auto bytes = [](double value) {
    return Plain(std::bit_cast<uint64_t>(value), ParquetType::kDouble);
  };
  return ParquetBounds{bytes(least), bytes(largest)};
}

ParquetDictionary DictionaryOfTexts(const ParquetValues& values) {
  ParquetDictionary dictionary;
  for (const std::string& text : values.texts()) {
    AppendBytes(text.size(), 4, &dictionary.page);
    dictionary.page += text;
  }
  dictionary.count = values.texts().size();
  dictionary.indices.assign(values.values().begin(), values.values().end());
  return dictionary;
}

// Numbers found so far, by open addressing: std::unordered_map takes five times as long.
class Numbers {
 public:
  static constexpr size_t kMost = 1u << 14;

  // kMost: it would be one too many.
  size_t IndexOf(uint64_t value) {
    for (size_t at = (value * 0x9e3779b97f4a7c15u) >> 49;; at = (at + 1) % kSlots) {
      if (slots_[at] == 0) {
        if (numbers_.size() == kMost) return kMost;
        numbers_.push_back(value);
        slots_[at] = static_cast<uint32_t>(numbers_.size());
      }
      if (numbers_[slots_[at] - 1] == value) return slots_[at] - 1;
    }
  }
  const std::vector<uint64_t>& list() const { return numbers_; }

 private:
  static constexpr size_t kSlots = 1u << 15;  // 64 - 49 bits of the hash
  std::vector<uint32_t> slots_ = std::vector<uint32_t>(kSlots);
  std::vector<uint64_t> numbers_;
};

}  // namespace

void ParquetValues::Real(double value) { Add(std::bit_cast<uint64_t>(value)); }

uint32_t ParquetValues::CodeOf(std::string_view text) {
  if (const auto found = codes_.find(text); found != codes_.end()) return found->second;
  std::string valid = ValidUtf8(text);
  if (valid != text) {
    if (const auto found = codes_.find(valid); found != codes_.end()) return found->second;
  }
  const auto code = static_cast<uint32_t>(texts_.size());
  codes_.emplace(texts_.emplace_back(std::move(valid)), code);
  return code;
}

std::optional<ParquetBounds> BoundsOf(const ParquetValues& values) {
  if (values.values().empty()) return std::nullopt;
  const ParquetType type = values.field().type;
  if (type == ParquetType::kText) return BoundsOfTexts(values);
  if (type == ParquetType::kDouble) return BoundsOfReals(values);
  auto least = static_cast<int64_t>(values.values()[0]), largest = least;
  for (const uint64_t bits : values.values()) {
    const auto value = static_cast<int64_t>(bits);
    least = std::min(least, value), largest = std::max(largest, value);
  }
  return ParquetBounds{Plain(static_cast<uint64_t>(least), type),
                       Plain(static_cast<uint64_t>(largest), type)};
}

std::optional<ParquetDictionary> DictionaryOf(const ParquetValues& values) {
  if (values.values().empty()) return std::nullopt;
  ParquetDictionary dictionary;
  const ParquetType type = values.field().type;
  if (type == ParquetType::kBool) return std::nullopt;
  if (type == ParquetType::kText) {
    dictionary = DictionaryOfTexts(values);
  } else {
    Numbers numbers;
    const size_t most = std::min(Numbers::kMost, values.values().size() / 4 + 1);
    dictionary.indices.reserve(values.values().size());
    for (const uint64_t value : values.values()) {
      const size_t index = numbers.IndexOf(value);
      if (index >= most) return std::nullopt;
      dictionary.indices.push_back(index);
    }
    dictionary.count = numbers.list().size();
    for (const uint64_t value : numbers.list()) AppendBytes(value, BytesOf(type), &dictionary.page);
  }
  dictionary.bits = std::max(1, BitsOf(dictionary.count - 1));
  return dictionary;
}

ParquetEncoding EncodingOf(ParquetType type) {
  const bool is_whole =
      type == ParquetType::kInt32 || type == ParquetType::kInt64 || type == ParquetType::kTimestamp;
  return is_whole ? ParquetEncoding::kDelta : ParquetEncoding::kPlain;
}

void AppendEncoded(ParquetType type, std::span<const uint64_t> values, std::string* out) {
  switch (type) {
    case ParquetType::kBool:
      for (size_t i = 0; i < values.size(); ++i) {
        if (i % 8 == 0) out->push_back(0);
        out->back() = static_cast<char>(out->back() | static_cast<char>(values[i] << i % 8));
      }
      return;
    case ParquetType::kInt32:
      return AppendDeltas32(values, out);
    case ParquetType::kInt64:
    case ParquetType::kTimestamp:
      return AppendDeltas64(values, out);
    case ParquetType::kDouble:
      for (const uint64_t bits : values) AppendBytes(bits, 8, out);
      return;
    case ParquetType::kText:  // has a dictionary wherever it has a value
      return;
  }
}

}  // namespace ranktap::collector
