#include "collector/import/nsys/sqlite_reader.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace ranktap::collector {
namespace {

constexpr int kLongestValue = 64 << 20;  // bytes

// The page that SQLite read last: an error names no place, and this is the page it did not like.
// SQLite has no hook for it; a VFS of our own would have to forward twenty functions for this one.
thread_local int64_t last_read_offset = 0;

const sqlite3_io_methods* Noting(const sqlite3_io_methods* real) {
  static const sqlite3_io_methods* const original = real;
  static const sqlite3_io_methods noting = [] {
    sqlite3_io_methods methods = *original;
    methods.xRead = [](sqlite3_file* file, void* into, int bytes, sqlite3_int64 offset) {
      last_read_offset = offset;
      return original->xRead(file, into, bytes, offset);
    };
    return methods;
  }();
  return real == original ? &noting : real;
}

void NoteReads(sqlite3* database) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void*>(&file));
  if (file != nullptr && file->pMethods != nullptr) file->pMethods = Noting(file->pMethods);
}

// "file:" name of a path; immutable: SQLite neither locks the file nor looks for a journal.
std::string UriOf(const std::string& path) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string uri = "file:";
  for (const char byte : path) {
    if (byte == '%' || byte == '?' || byte == '#') {
      uri += '%';
      uri += kHex[static_cast<uint8_t>(byte) >> 4];
      uri += kHex[static_cast<uint8_t>(byte) & 15];
    } else {
      uri += byte;
    }
  }
  return uri + "?immutable=1";
}

std::string Quoted(std::string_view name) {
  std::string quoted = "\"";
  for (const char byte : name) quoted += byte == '"' ? std::string("\"\"") : std::string(1, byte);
  return quoted + "\"";
}

class Statement {
 public:
  Statement(sqlite3* database, const std::string& text) {
    sqlite3_prepare_v2(database, text.c_str(), static_cast<int>(text.size()), &statement_, nullptr);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }
  sqlite3_stmt* get() const { return statement_; }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace

bool SqlRow::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
int64_t SqlRow::Int(int column) const { return sqlite3_column_int64(statement_, column); }
uint32_t SqlRow::Small(int column) const {
  const int64_t value = Int(column);
  const int64_t most = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(value < 0 ? most : std::min(value, most));
}
double SqlRow::Real(int column) const { return sqlite3_column_double(statement_, column); }
std::string_view SqlRow::Text(int column) const {
  const auto* const text = sqlite3_column_text(statement_, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

SqlReader::SqlReader(SqlReader&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)),
      tables_(std::move(other.tables_)),
      damage_(std::move(other.damage_)) {}

SqlReader::~SqlReader() { sqlite3_close(database_); }

Result<SqlReader> SqlReader::Open(const std::string& path) {
  SqlReader reader;
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(UriOf(path).c_str(), &reader.database_, flags, nullptr) != SQLITE_OK) {
    return Failure{fmt::format("{}: {}", path, sqlite3_errmsg(reader.database_))};
  }
  sqlite3* const database = reader.database_;
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_exec(database, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0", nullptr, nullptr,
               nullptr);
  NoteReads(database);
  const Statement names(database,
                        "SELECT name FROM sqlite_schema WHERE type = 'table' AND "
                        "rootpage > 0");  // a virtual table has no pages
  int status = SQLITE_ERROR;
  while (names.get() != nullptr && (status = sqlite3_step(names.get())) == SQLITE_ROW) {
    reader.tables_.emplace_back(SqlRow(names.get()).Text(0));
  }
  if (status != SQLITE_DONE) {
    const std::string error = sqlite3_errmsg(database);
    if (reader.tables_.empty()) {
      return Failure{fmt::format("{}: offset {}: {}", path, last_read_offset, error)};
    }
    reader.damage_.push_back(
        {static_cast<uint64_t>(last_read_offset), 0, fmt::format("the list of tables: {}", error)});
  }
  return reader;
}

bool SqlReader::Has(const std::string& table) const {
  return std::find(tables_.begin(), tables_.end(), table) != tables_.end();
}

std::string SqlReader::Question(const std::string& table,
                                std::span<const std::string_view> columns) const {
  std::vector<std::string> known;
  const Statement any(database_, "SELECT * FROM " + Quoted(table) + " LIMIT 0");
  for (int i = 0; any.get() != nullptr && i < sqlite3_column_count(any.get()); ++i) {
    if (const char* const name = sqlite3_column_name(any.get(), i)) known.emplace_back(name);
  }
  std::string question = "SELECT ";
  for (const std::string_view column : columns) {
    const bool has = std::find(known.begin(), known.end(), column) != known.end();
    question += (has ? Quoted(column) : std::string("NULL")) + ", ";
  }
  return question + "rowid FROM " + Quoted(table);
}

bool SqlReader::Walk(const std::string& question, const std::function<void(const SqlRow&)>& visit,
                     int64_t* last) {
  const Statement statement(database_, question);
  if (statement.get() == nullptr) return false;
  const int rowid = sqlite3_column_count(statement.get()) - 1;
  const SqlRow row(statement.get());
  int status;
  while ((status = sqlite3_step(statement.get())) == SQLITE_ROW) {
    *last = row.Int(rowid);
    visit(row);
  }
  return status == SQLITE_DONE;
}

void SqlReader::ForEachRow(const std::string& table, std::span<const std::string_view> columns,
                           const std::function<void(const SqlRow&)>& visit) {
  if (!Has(table)) return;
  const std::string question = Question(table, columns);
  int64_t before = std::numeric_limits<int64_t>::min();
  if (Walk(question + " ORDER BY rowid", visit, &before)) return;
  const std::string error = sqlite3_errmsg(database_);
  const auto offset = static_cast<uint64_t>(last_read_offset);
  int64_t behind = std::numeric_limits<int64_t>::max();
  Walk(fmt::format("{} WHERE rowid > {} ORDER BY rowid DESC", question, before), visit, &behind);
  const bool none_before = before == std::numeric_limits<int64_t>::min();
  const bool none_behind = behind == std::numeric_limits<int64_t>::max();
  damage_.push_back(
      {offset, 0,
       fmt::format("{}, {}{}: {}", table,
                   none_before ? "from the first row" : fmt::format("after row {}", before),
                   none_behind ? " to the last" : fmt::format(" and before row {}", behind),
                   error)});
}

}  // namespace ranktap::collector
