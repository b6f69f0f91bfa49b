// The contents of a Parquet file of ours: flat columns of a few types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ranktap::collector {

enum class ParquetType : uint8_t {
  kBool,
  kInt32,
  kInt64,
  kDouble,
  kText,       // UTF-8
  kTimestamp,  // microseconds since 1970, UTC: finer ones are not read by every engine
};

struct ParquetField {
  std::string name;
  ParquetType type = ParquetType::kInt64;
  bool nullable = false;
};

struct ParquetSchema {
  std::vector<ParquetField> fields;
  // Indices of the fields that rows are sorted by, upwards, nulls last.
  std::vector<size_t> sorted_by = {};
  // Keys and values for people: who wrote it, of which run.
  std::vector<std::pair<std::string, std::string>> notes = {};
};

// Rows of a row group at most: what is held in memory at once, of one column.
inline constexpr size_t kRowGroupRows = 1u << 20;

}  // namespace ranktap::collector
