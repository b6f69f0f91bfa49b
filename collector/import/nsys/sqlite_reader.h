// Tables of an SQLite file that somebody else wrote. Nothing in the file is executed: views,
// triggers and virtual tables are not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/file/result.h"
#include "collector/file/trace_reader.h"

struct sqlite3;
struct sqlite3_stmt;

namespace ranktap::collector {

// The columns that were asked for, by their place in the question. A column that the table does not
// have is null in every row.
class SqlRow {
 public:
  explicit SqlRow(sqlite3_stmt* statement) : statement_(statement) {}
  bool IsNull(int column) const;
  int64_t Int(int column) const;     // 0: null
  uint32_t Small(int column) const;  // what does not fit is 2^32 - 1
  double Real(int column) const;
  std::string_view Text(int column) const;  // until the next row

 private:
  sqlite3_stmt* statement_;
};

// One thread.
class SqlReader {
 public:
  // Fails when the file is not a database.
  static Result<SqlReader> Open(const std::string& path);
  SqlReader(SqlReader&& other) noexcept;
  SqlReader& operator=(SqlReader&&) = delete;
  ~SqlReader();

  bool Has(const std::string& table) const;
  // Calls visit for each row. It reads the rows before and behind unreadable ones; damage() says
  // what is missing.
  void ForEachRow(const std::string& table, std::span<const std::string_view> columns,
                  const std::function<void(const SqlRow&)>& visit);
  const std::vector<Damage>& damage() const { return damage_; }

 private:
  SqlReader() = default;
  std::string Question(const std::string& table, std::span<const std::string_view> columns) const;
  // The last row that could be read in `last`; false: an error ended the reading.
  bool Walk(const std::string& question, const std::function<void(const SqlRow&)>& visit,
            int64_t* last);

  sqlite3* database_ = nullptr;
  std::vector<std::string> tables_;
  std::vector<Damage> damage_;
};

}  // namespace ranktap::collector
