#include "collector/terminal/report_data_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "collector/file/printable.h"
#include "collector/report/text/table_parquet.h"
#include "collector/terminal/complain.h"
#include "collector/trace/at_once.h"

namespace ranktap::collector {
namespace {

// A report without columns has nothing to say of the run but its notes.
void SayThatThereIsNone(const Table& table) {
  std::string why;
  for (const std::string& note : table.notes) why += (why.empty() ? "" : "; ") + note;
  Complain(Printable(fmt::format("{}: no table: {}", table.name, why)));
}

}  // namespace

void AddDataSetOptions(Arguments* app, ReportDataSet* set) {
  constexpr const char* kGroup = "--format parquet";
  app->Add("-o,--output", &set->folder,
           "a file, instead of standard output; --format parquet: the data set, a folder with a "
           "table for each report, or for those named");
  app->Add("--run-name", &set->run_name,
           "the run's name in the data set; else that of its directory")
      .Group(kGroup);
  app->AddFlag("--replace", &set->replace, "write the run again where the data set has it already")
      .Group(kGroup);
}

std::optional<std::string> WrongUse(const ReportDataSet& set,
                                    const std::vector<const Report*>& reports) {
  if (!set.wanted) {
    const bool given = !set.run_name.empty() || set.replace;
    if (given) return "--run-name and --replace are for --format parquet";
    return std::nullopt;
  }
  if (set.folder.empty()) return "--format parquet wants a folder: -o DIR";
  if (!set.run_name.empty() && !IsRunName(set.run_name)) {
    return fmt::format("--run-name {}: letters, digits, '.', '_' and '-' only", set.run_name);
  }
  const auto compares = [](const Report* report) { return report->compare != nullptr; };
  if (std::ranges::any_of(reports, compares))
    return "diff compares two runs, so a data set cannot hold it";
  return std::nullopt;
}

int WriteReports(const ReportDataSet& set, const std::string& run_path,
                 std::vector<const Report*> reports,
                 const std::function<Table(const Report&)>& make,
                 const std::function<bool(const Report&, Table*)>& finish) {
  if (reports.empty()) {
    for (const Report& report : AllReports()) {
      if (report.compare == nullptr) reports.push_back(&report);
      for (const std::string_view by : WaysOf(report)) {
        if (const Report* const way = ReportBy(report, by)) reports.push_back(way);
      }
    }
  }
  std::vector<std::string> names;
  for (const Report* const report : reports) names.push_back(DataSetTableName(report->name));
  const std::vector<std::string_view> tables(names.begin(), names.end());
  const std::string run = set.run_name.empty() ? RunNameOf(run_path) : set.run_name;
  Result<DataSet> data_set = DataSet::Open(set.folder, run, set.replace, tables);
  if (!data_set) return Complained(data_set.message(), kFailure);
  int status = kSuccess;
  const auto write = [&](size_t i, Table table) {
    if (!finish(*reports[i], &table)) {
      status = kWrongUsage;
    } else if (table.columns.empty()) {
      SayThatThereIsNone(table);
    } else if (const auto failure = WriteParquet(table, &*data_set)) {
      status = Complained(failure->message, kFailure);
    }
    return status == kSuccess;
  };
  MakeAtOnce(
      reports.size(), [&](size_t i) { return make(*reports[i]); }, write);
  if (status != kSuccess) return status;
  if (const auto failure = data_set->Publish()) return Complained(failure->message, kFailure);
  std::printf("%s\n", Printable(set.folder).c_str());
  return std::fflush(stdout) == 0 ? kSuccess : kFailure;
}

}  // namespace ranktap::collector
