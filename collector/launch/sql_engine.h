// DuckDB, wherever it is on this machine: a program, or a module of Python.
#pragma once

#include <string>
#include <vector>

#include "collector/file/result.h"

namespace ranktap::collector {

class SqlEngine {
 public:
  // The program `duckdb` on the PATH, else module duckdb of `python`. The failure says how to get
  // one.
  static Result<SqlEngine> Find(const std::string& python);

  // Answers `query` on stdout, after the statements in the file `views`; without a query a shell
  // that reads stdin. `format`: text, csv or json. Returns the engine's exit status, or that no
  // process could be made.
  Result<int> Ask(const std::string& views, const std::string& query,
                  const std::string& format) const;
  bool has_shell() const { return python_.empty(); }

 private:
  std::string program_, python_;  // one of them
};

// What DuckDB (1.2 or newer) is told first: it opens files below these folders alone, and loads no
// extension that is not built in.
std::string LimitsOf(const std::vector<std::string>& folders);

// CREATE VIEW for each table of the data set, under its folder's name.
std::string ViewsOf(const std::string& folder);

}  // namespace ranktap::collector
