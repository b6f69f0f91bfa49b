// Writes a Parquet file, row group by row group, column by column: nothing is held but the column
// that is being written and the footer.
//
// Data pages are of version 1 and compressed with ZSTD. Texts, and numbers that repeat, have a
// dictionary; other whole numbers are DELTA_BINARY_PACKED. Each column chunk has its least and
// largest value and its nulls counted. pyarrow, DuckDB, ClickHouse and Spark read it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/file/result.h"
#include "collector/parquet/parquet_schema.h"
#include "collector/parquet/parquet_values.h"
#include "collector/parquet/thrift_compact.h"

namespace ranktap::collector {

// One thread. A file that is not closed is removed.
class ParquetFile {
 public:
  // Written under PATH.part; it gets its name in Close.
  static Result<ParquetFile> Create(const std::string& path, ParquetSchema schema);
  ParquetFile(ParquetFile&&) noexcept;
  ParquetFile& operator=(ParquetFile&&) = delete;
  ~ParquetFile();

  const ParquetSchema& schema() const { return schema_; }
  // The next column of the row group that is open; the last one ends it. Columns come in the
  // schema's order, with equally many rows, at most kRowGroupRows.
  void Write(const ParquetValues& column);
  uint64_t rows() const { return rows_; }  // of the row groups that have ended
  // Writes the footer, and gives the file its name. The first error of all calls; nothing when all
  // went well.
  std::optional<Failure> Close();

 private:
  struct Compressor;
  struct DeleteCompressor {
    void operator()(Compressor* compressor) const;
  };

  ParquetFile(std::string path, ParquetSchema schema, FileDescriptor file);
  void WriteOut(std::string_view bytes);
  // A page with its header. Returns how many bytes it would be uncompressed.
  uint64_t WritePage(ThriftStruct header, int field, const ThriftStruct& of_kind,
                     const std::string& content);
  uint64_t WriteDataPages(const ParquetValues& column, const ParquetDictionary* dictionary);
  void EndRowGroup(uint64_t rows);
  std::string Footer() const;

  std::string path_;
  ParquetSchema schema_;
  FileDescriptor file_;
  std::unique_ptr<Compressor, DeleteCompressor> compressor_;
  std::string page_;  // reused: a page is a megabyte
  std::vector<ThriftStruct> chunks_, row_groups_;
  uint64_t at_ = 0, rows_ = 0, group_begin_ = 0, group_raw_ = 0;
  int error_ = 0;
  std::string failed_;  // the sentence about an error that is not the system's
};

}  // namespace ranktap::collector
