#include "collector/launch/sql_engine.h"

#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "collector/launch/child_process.h"
#include "collector/launch/run_and_wait.h"
#include "collector/report/former_names.h"
#include "collector/report/text/table_parquet.h"
#include "collector/report/text/terminal.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

// Arguments: the file with the views, the format, the width of a text, the query. Started with -I:
// without it a duckdb.py or shutil.py of the current folder would be run.
constexpr const char* kProgram = R"PYTHON(
import shutil, sys
import duckdb

views, form, width, query = sys.argv[1:]
connection = duckdb.connect()
try:
    connection.execute(open(views).read())
    answer = connection.sql(query)
    if answer is not None and form == 'text':
        answer.show(max_rows=1000000, max_width=int(width) or 1000000)
    elif answer is not None:
        answer.create_view('ranktap answer')
        # Not to /dev/stdout: where that is a file, it would be written from its beginning.
        how = 'format csv, header' if form == 'csv' else 'format json, array true'
        connection.sql(f"COPY (FROM \"ranktap answer\") TO '{views}.answer' ({how})")
        shutil.copyfileobj(open(views + '.answer'), sys.stdout)
except duckdb.Error as error:
    sys.exit(str(error))
)PYTHON";

std::string Quoted(const std::string& text, char quote) {
  std::string quoted(1, quote);
  for (const char byte : text) quoted.append(byte == quote ? 2 : 1, byte);
  return quoted + quote;
}

// "run=", "rank=" folders below the table's.
bool HasPartitions(const fs::path& folder, const std::string& key) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(key + "=")) return true;
  }
  return false;
}

bool HasRanks(const fs::path& table) {
  std::error_code error;
  const fs::directory_iterator runs(table, error);
  return std::any_of(begin(runs), end(runs), [](const fs::directory_entry& run) {
    return HasPartitions(run.path(), "rank");
  });
}

// A run that the last release added to the data set has a column's former name, a query may use
// either: each name has what the other has.
std::string WithFormerNames(const std::string& table, const std::string& from) {
  std::string empty, filled;
  for (const FormerName& name : FormerColumnNames()) {
    if (DataSetTableName(name.report) != table) continue;
    empty +=
        fmt::format("{}NULL AS {}, NULL AS {}", empty.empty() ? "" : ", ", name.now, name.former);
    filled += fmt::format("{0}coalesce({1}, {2}) AS {1}, coalesce({1}, {2}) AS {2}",
                          filled.empty() ? "" : ", ", name.now, name.former);
  }
  if (empty.empty()) return "SELECT * FROM " + from;
  return fmt::format(
      "SELECT * REPLACE ({}) FROM (SELECT * FROM {} UNION ALL BY NAME SELECT {} WHERE false)",
      filled, from, empty);
}

}  // namespace

Result<SqlEngine> SqlEngine::Find(const std::string& python) {
  SqlEngine engine;
  if (const FoundCommand found = FindCommand("duckdb"); found.status == 0) {
    engine.program_ = found.path;
    return engine;
  }
  const FoundCommand found = FindCommand(python);
  if (found.status == 0) {
    const Result<int> status =
        RunAndWait({found.path, "-I", "-c",
                    "import importlib.util as u, sys; sys.exit(u.find_spec('duckdb') is None)"});
    if (status && *status == 0) {
      engine.python_ = found.path;
      return engine;
    }
  }
  return Failure{fmt::format(
      "no program duckdb on the PATH and no module duckdb in {} itself: pip install duckdb-cli "
      "(the "
      "program) or duckdb (the module), or take another --python; any engine that reads Parquet "
      "will do after ranktap export --format parquet",
      python)};
}

Result<int> SqlEngine::Ask(const std::string& views, const std::string& query,
                           const std::string& format) const {
  const std::string width = std::to_string(OutputWidth(STDOUT_FILENO));
  if (!python_.empty()) {
    return RunAndWait({python_, "-I", "-c", kProgram, views, format, width, query});
  }
  std::vector<std::string> command = {program_, "-init", views};
  if (format != "text") {
    command.push_back("-" + format);
  } else if (width != std::to_string(kUnlimitedWidth)) {
    command.insert(command.end(), {"-cmd", ".maxwidth " + width});
  }
  if (!query.empty()) command.insert(command.end(), {"-c", query});
  return RunAndWait(command);
}

std::string LimitsOf(const std::vector<std::string>& folders) {
  std::string list;
  for (const std::string& folder : folders) list += Quoted(folder + "/", '\'') + ", ";
  return fmt::format(
      "SET autoinstall_known_extensions = false;\nSET autoload_known_extensions = false;\n"
      "SET allow_community_extensions = false;\nSET allowed_directories = [{}];\n"
      "SET enable_external_access = false;\nSET lock_configuration = true;\n",
      list.substr(0, list.size() - 2));
}

std::string ViewsOf(const std::string& folder) {
  std::vector<fs::path> tables;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const bool is_hidden = entry.path().filename().string().starts_with('.');
    if (!is_hidden && HasPartitions(entry.path(), "run")) tables.push_back(entry.path());
  }
  std::sort(tables.begin(), tables.end());
  std::string views;
  for (const fs::path& table : tables) {
    const bool has_ranks = HasRanks(table);
    const std::string name = table.filename().string();
    // Types are named, or a data set whose runs are called by numbers has other ones.
    views += fmt::format(
        "CREATE VIEW {} AS {};\n", Quoted(name, '"'),
        WithFormerNames(
            name,
            fmt::format(
                "read_parquet({}, hive_partitioning = true, "
                "union_by_name = true, hive_types = {{'run': VARCHAR{}}})",
                Quoted(table.string() + (has_ranks ? "/*/*/*.parquet" : "/*/*.parquet"), '\''),
                has_ranks ? ", 'rank': BIGINT" : "")));
  }
  return views;
}

}  // namespace ranktap::collector
