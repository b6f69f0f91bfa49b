// The values of one column in one row group, and what they are as bytes of a Parquet file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/parquet/parquet_schema.h"

namespace ranktap::collector {

enum class ParquetEncoding : uint8_t { kPlain = 0, kRle = 3, kDelta = 5, kDictionary = 8 };

// Filled row by row; one thread. Each row gets one value of the field's type, or Null.
class ParquetValues {
 public:
  explicit ParquetValues(const ParquetField& field) : field_(field) {}

  void Null() { present_.push_back(0); }
  // kInt32, kInt64, kTimestamp.
  void Integer(int64_t value) { Add(static_cast<uint64_t>(value)); }
  void Real(double value);
  void Bool(bool value) { Add(value ? 1 : 0); }
  void Text(std::string_view text) { Code(CodeOf(text)); }
  // For texts that come again and again: their number, valid as long as the values are. Bytes that
  // are no UTF-8 become U+FFFD, for engines refuse the file otherwise.
  uint32_t CodeOf(std::string_view text);
  void Code(uint32_t code) { Add(code); }

  const ParquetField& field() const { return field_; }
  size_t rows() const { return present_.size(); }
  size_t nulls() const { return present_.size() - values_.size(); }
  std::span<const uint8_t> present() const { return present_; }
  // Values of the rows that are not null: numbers as their bits, texts by code.
  std::span<const uint64_t> values() const { return values_; }
  const std::deque<std::string>& texts() const { return texts_; }

 private:
  void Add(uint64_t value) {
    present_.push_back(1);
    values_.push_back(value);
  }

  ParquetField field_;
  std::vector<uint8_t> present_;
  std::vector<uint64_t> values_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, uint32_t> codes_;
};

// Least and largest value as Parquet's plain bytes; nothing where there is none, a NaN is among
// them, or a text is too long for a footer.
struct ParquetBounds {
  std::string least, largest;
};
std::optional<ParquetBounds> BoundsOf(const ParquetValues& values);

// The distinct values of a column, and its values as indices into them; nothing where a dictionary
// would not make it smaller. Texts always have one.
struct ParquetDictionary {
  std::string page;  // plain
  size_t count = 0;
  std::vector<uint64_t> indices;
  int bits = 1;
};
std::optional<ParquetDictionary> DictionaryOf(const ParquetValues& values);

// What a column has without a dictionary.
ParquetEncoding EncodingOf(ParquetType type);
void AppendEncoded(ParquetType type, std::span<const uint64_t> values, std::string* out);

}  // namespace ranktap::collector
