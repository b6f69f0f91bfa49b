// `ranktap top`: what every rank does now.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "collector/cli/command.h"
#include "collector/cli/control.h"
#include "collector/cli/top_screen.h"
#include "collector/cli/top_watch.h"
#include "collector/report/run_filter.h"
#include "collector/report/text/table_text.h"
#include "collector/report/text/terminal.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/output_style.h"

namespace ranktap::collector {
namespace {

constexpr size_t kSpark = 60;

int ShowOnce(TopWatch* watch, double seconds, Format format) {
  if (!watch->Look()) return Complained("the collector has ended", kFailure);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  if (!watch->Look()) return Complained("the job has ended", kFailure);
  const std::vector<TopRow> rows = watch->Rows(TopOrder::kWorst, true);
  const size_t spark = format == Format::kText ? TopSpark(OutputWidth(STDOUT_FILENO)) : kSpark;
  Table table = TopTable(rows, spark, SpeaksUtf8());
  watch->AddWaits(rows, &table);
  const std::string text = format == Format::kJson ? FormatJson(table, 0)
                           : format == Format::kCsv
                               ? FormatCsv(table, 0)
                               : FormatText(table, OutputWidth(STDOUT_FILENO), 0);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return rows.empty() ? kFailure : kSuccess;
}

}  // namespace

int TopCommand(const std::vector<std::string>& arguments) {
  ControlTarget target;
  std::string ranks, format_name = "text";
  bool once = false;
  double seconds = 3;
  Arguments app(
      "Shows what every rank does now: its step, how long the last ones took, what its devices and "
      "its host\nwere busy with, and the line that it is on. The worst rank comes first. In a pipe "
      "it "
      "prints one look.",
      "ranktap top");
  AddTargetOptions(&app, &target);
  app.Add("--ranks", &ranks, "only these ranks: 0,2-5");
  app.AddFlag("--once", &once, "print one look as text and end");
  app.Add("--over", &seconds, "with --once: seconds that the shares are of").ShowsDefault();
  app.Add("--format", &format_name, "of one look: text, json or csv").ShowsDefault();
  if (const auto status = app.Parse(arguments)) return *status;
  const auto format = FormatNamed(format_name);
  if (!format || *format == Format::kHtml) {
    return Complained(fmt::format("no format '{}'; it is text, json or csv", format_name),
                      kWrongUsage);
  }
  if (!(seconds > 0 && seconds <= 3600)) {
    return Complained("--over is seconds, more than 0 and at most 3600", kWrongUsage);
  }
  const auto wanted = ranks.empty() ? std::optional(NumberSet()) : ParseNumberSet(ranks);
  if (!wanted) {
    return Complained(fmt::format("--ranks '{}' is not like 0,2-5", ranks), kWrongUsage);
  }
  std::vector<CollectorAnswer> found = FindTarget(target);
  if (found.empty()) return kFailure;
  TopWatch watch(std::move(found), FullJobName(target), *wanted);
  const bool on_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  return once || *format != Format::kText || !on_terminal ? ShowOnce(&watch, seconds, *format)
                                                          : ShowTop(&watch);
}

}  // namespace ranktap::collector
