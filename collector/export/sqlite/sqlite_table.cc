#include "collector/export/sqlite/sqlite_table.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <filesystem>
#include <utility>

namespace ranktap::collector {
namespace {

// The virtual table that shows an SqlTable: SQLite's interface, nothing of it found by searching.
struct Rows : sqlite3_vtab {
  const SqlTable* table;
};
struct Cursor : sqlite3_vtab_cursor {
  const SqlTable* table;
  size_t row;

  void Skip() {
    while (table->keeps && row < table->rows && !table->keeps(row)) ++row;
  }
};

std::string Declarations(const SqlTable& table) {
  std::string text;
  for (const SqlColumn& column : table.columns) {
    text += (text.empty() ? "" : ", ") + std::string(column.declaration);
  }
  return "(" + text + ")";
}

int Connect(sqlite3* database, void* source, int, const char* const*, sqlite3_vtab** out, char**) {
  const SqlTable* const table = *static_cast<const SqlTable**>(source);
  const std::string schema = "CREATE TABLE x" + Declarations(*table);
  if (const int status = sqlite3_declare_vtab(database, schema.c_str())) return status;
  *out = new Rows{{}, table};
  return SQLITE_OK;
}
int Disconnect(sqlite3_vtab* rows) {
  delete static_cast<Rows*>(rows);
  return SQLITE_OK;
}
int BestIndex(sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_OK; }
int Open(sqlite3_vtab* rows, sqlite3_vtab_cursor** out) {
  *out = new Cursor{{}, static_cast<Rows*>(rows)->table, 0};
  return SQLITE_OK;
}
int CloseCursor(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}
int Filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
  auto* const at = static_cast<Cursor*>(cursor);
  at->row = 0;
  at->Skip();
  return SQLITE_OK;
}
int Next(sqlite3_vtab_cursor* cursor) {
  auto* const at = static_cast<Cursor*>(cursor);
  ++at->row;
  at->Skip();
  return SQLITE_OK;
}
int AtEnd(sqlite3_vtab_cursor* cursor) {
  auto* const at = static_cast<Cursor*>(cursor);
  return at->row >= at->table->rows;
}
int ColumnOf(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int column) {
  auto* const at = static_cast<Cursor*>(cursor);
  at->table->columns[static_cast<size_t>(column)].fill(at->row, SqlValue(context));
  return SQLITE_OK;
}
int RowId(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
  *id = static_cast<sqlite3_int64>(static_cast<Cursor*>(cursor)->row);
  return SQLITE_OK;
}

constexpr sqlite3_module kModule = {.xCreate = Connect,
                                    .xConnect = Connect,
                                    .xBestIndex = BestIndex,
                                    .xDisconnect = Disconnect,
                                    .xDestroy = Disconnect,
                                    .xOpen = Open,
                                    .xClose = CloseCursor,
                                    .xFilter = Filter,
                                    .xNext = Next,
                                    .xEof = AtEnd,
                                    .xColumn = ColumnOf,
                                    .xRowid = RowId};

}  // namespace

void SqlValue::Set(int64_t value) const { sqlite3_result_int64(context_, value); }
void SqlValue::Set(double value) const { sqlite3_result_double(context_, value); }
void SqlValue::Set(std::string_view value) const {
  sqlite3_result_text64(context_, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8);
}

Result<SqlFile> SqlFile::Create(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) return Failure{fmt::format("{}: could not replace: {}", path, error.message())};
  SqlFile file(path);
  const int status =
      sqlite3_open_v2(path.c_str(), &file.database_,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (status != SQLITE_OK) {
    return Failure{fmt::format("{}: could not create: {}", path, sqlite3_errmsg(file.database_))};
  }
  // A file that is complete or thrown away needs no journal.
  file.Run(
      "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY; BEGIN");
  if (!file.error_.empty()) return Failure{file.error_};
  return file;
}

SqlFile::SqlFile(SqlFile&& other) noexcept
    : path_(std::move(other.path_)),
      database_(std::exchange(other.database_, nullptr)),
      error_(std::move(other.error_)) {}

SqlFile::~SqlFile() { sqlite3_close(database_); }

void SqlFile::Run(const std::string& statement) {
  if (!error_.empty()) return;
  if (sqlite3_exec(database_, statement.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    error_ = fmt::format("{}: could not write: {}", path_, sqlite3_errmsg(database_));
  }
}

void SqlFile::Append(const SqlTable& table) {
  Run("CREATE TABLE IF NOT EXISTS \"" + table.name + "\" " + Declarations(table));
  if (table.rows == 0) return;
  source_ = &table;
  sqlite3_create_module(database_, "ranktap_rows", &kModule, &source_);
  Run("CREATE VIRTUAL TABLE temp.source USING ranktap_rows");
  Run("INSERT INTO main.\"" + table.name + "\" SELECT * FROM temp.source");
  Run("DROP TABLE temp.source");
}

std::optional<Failure> SqlFile::Close() {
  Run("COMMIT");
  const int status = sqlite3_close(std::exchange(database_, nullptr));
  if (status != SQLITE_OK && error_.empty()) error_ = fmt::format("{}: could not close", path_);
  if (error_.empty()) return std::nullopt;
  return Failure{error_};
}

}  // namespace ranktap::collector
