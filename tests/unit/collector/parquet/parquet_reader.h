// A reader of Parquet files that shares nothing with the writer, and takes nothing that it does not
// know: what it reads, it has checked to the byte.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

// A Thrift value of the compact protocol; of a struct its fields by number.
struct ThriftValue {
  int64_t number = 0;  // also of booleans
  std::string bytes;
  std::vector<ThriftValue> list;
  std::map<int, ThriftValue> fields;
  const ThriftValue& operator[](int field) const { return fields.at(field); }
  bool Has(int field) const { return fields.contains(field); }
};

// One cell: nothing is a null; numbers as their little-endian bytes, texts as they are.
using ParquetCell = std::optional<std::string>;

struct ParquetChunk {
  std::string name;
  std::vector<ParquetCell> cells;
  std::vector<int64_t> encodings;
  int pages = 0;  // of data
  int64_t null_count = -1;
  std::optional<std::string> least, largest;
};

struct ParquetContent {
  ThriftValue footer;
  std::vector<std::vector<ParquetChunk>> row_groups;
};

// Throws std::runtime_error with what is wrong.
ParquetContent ReadParquet(std::string_view file);

}  // namespace ranktap::collector
