// `ranktap report RUN [NAME...] --format parquet -o DIR`: reports as tables of a data set.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collector/report/report.h"
#include "collector/terminal/arguments.h"

namespace ranktap::collector {

struct ReportDataSet {
  bool wanted = false;  // --format parquet
  std::string folder, run_name;
  bool replace = false;
};

// The options that fill `set`, which lives as long as `app`.
void AddDataSetOptions(Arguments* app, ReportDataSet* set);

// The sentence about options that do not go together; nullopt: they do.
std::optional<std::string> WrongUse(const ReportDataSet& set,
                                    const std::vector<const Report*>& reports);

// make(report) is called on several threads; finish(report, its table), on this one, says why not
// where it returns false. Returns the exit status, after a complaint where it is not kSuccess. No
// report: all of one run.
int WriteReports(const ReportDataSet& set, const std::string& run_path,
                 std::vector<const Report*> reports,
                 const std::function<Table(const Report&)>& make,
                 const std::function<bool(const Report&, Table*)>& finish);

}  // namespace ranktap::collector
