// `ranktap sql RUN... 'SELECT ...'`: a question in SQL to runs, or to a data set that `ranktap
// export --format parquet` made. DuckDB answers.
#include <fmt/core.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "collector/cli/command.h"
#include "collector/cli/scratch_folder.h"
#include "collector/export/exporter.h"
#include "collector/file/printable.h"
#include "collector/import/open_run.h"
#include "collector/launch/sql_engine.h"
#include "collector/parquet/data_set.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/trace/large_blocks.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

struct WantedQuery {
  std::vector<std::string> paths;
  std::string query;  // empty: a shell
  std::string format = "text", python = "python3";
};

bool IsDataSet(const std::string& path) { return !ViewsOf(path).empty(); }

// Runs of one name are told apart by a number.
std::string NewName(const std::string& path, std::set<std::string>* names) {
  const std::string name = RunNameOf(path);
  std::string free = name;
  for (int i = 2; !names->insert(free).second; ++i) free = fmt::format("{}-{}", name, i);
  return free;
}

std::optional<Failure> ExportRuns(const std::vector<std::string>& paths,
                                  const std::string& folder) {
  std::set<std::string> names;
  for (const std::string& path : paths) {
    const Result<Run> run = OpenRun({path});
    if (!run) return Failure{run.message()};
    for (const std::string& problem : run->problems) Complain(Printable(problem));
    std::vector<const Trace*> traces;
    for (const Trace& trace : run->traces) traces.push_back(&trace);
    ExportOptions options;
    options.run_name = NewName(path, &names);
    if (auto failure = FindExporter("parquet")->write(*run, traces, options, folder)) {
      return failure;
    }
  }
  return std::nullopt;
}

// nullopt: written.
std::optional<Failure> WriteViews(const std::string& folder, const std::string& path) {
  std::error_code error;
  std::ofstream file(path);
  file << LimitsOf({fs::path(path).parent_path().string(), fs::canonical(folder, error).string()})
       << ViewsOf(folder);
  file.close();
  if (file) return std::nullopt;
  return Failure{fmt::format("{}: could not write; TMPDIR names another place", path)};
}

std::optional<int> Parse(const std::vector<std::string>& arguments, WantedQuery* wanted) {
  Arguments app("Answers a question in SQL (DuckDB's) about runs, or about a data set.",
                "ranktap sql");
  app.Add("RUN... [QUERY]", &wanted->paths,
          "runs, or a folder that ranktap export --format parquet wrote; then the query. Without "
          "one: DuckDB's shell")
      .Required();
  app.Add("--format", &wanted->format, "format of the answer")
      .OneOf({"text", "csv", "json"})
      .ShowsDefault();
  app.Add("--python", &wanted->python,
          "interpreter whose module duckdb answers where the program duckdb is missing")
      .ShowsDefault();
  if (const auto status = app.Parse(arguments)) return status;
  std::error_code error;
  if (!fs::exists(wanted->paths.back(), error)) {
    wanted->query = wanted->paths.back();
    wanted->paths.pop_back();
  }
  if (wanted->paths.empty()) {
    return Complained("name a run, then the query: ranktap sql RUN 'SELECT count(*) FROM kernels'",
                      kWrongUsage);
  }
  return std::nullopt;
}

}  // namespace

int SqlCommand(const std::vector<std::string>& arguments) {
  KeepLargeBlocks();
  WantedQuery wanted;
  if (const auto status = Parse(arguments, &wanted)) return *status;
  const Result<SqlEngine> engine = SqlEngine::Find(wanted.python);
  if (!engine) return Complained(engine.message(), kFailure);
  if (wanted.query.empty() && !engine->has_shell()) {
    return Complained("module duckdb has no shell: add a query, or pip install duckdb-cli",
                      kWrongUsage);
  }
  const ScratchFolder scratch("sql");
  if (scratch.failure()) return Complained(scratch.failure()->message, kFailure);
  const bool is_data_set = IsDataSet(wanted.paths[0]);
  if (is_data_set && wanted.paths.size() > 1) {
    return Complained(fmt::format("{} is a data set and stands alone: ranktap export {} --format "
                                  "parquet -o {} adds the other run to it",
                                  wanted.paths[0], wanted.paths[1], wanted.paths[0]),
                      kWrongUsage);
  }
  // A data set by a name of ours: in its own, DuckDB would take [, * and ? for patterns.
  const std::string folder = scratch.path() + "/set";
  const std::string views = scratch.path() + "/views.sql";
  if (is_data_set) {
    std::error_code error;
    fs::create_directory_symlink(fs::absolute(wanted.paths[0]), folder, error);
  } else {
    if (const auto failure = ExportRuns(wanted.paths, folder)) {
      return Complained(failure->message, kFailure);
    }
  }
  if (const auto failure = WriteViews(folder, views)) {
    return Complained(failure->message, kFailure);
  }
  const Result<int> status = engine->Ask(views, wanted.query, wanted.format);
  return status ? *status : Complained(status.message(), kFailure);
}

}  // namespace ranktap::collector
