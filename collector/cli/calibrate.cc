// `ranktap calibrate`: what this host can do, as the roofs of its reports.
#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "collector/calibrate/calibrate_host.h"
#include "collector/cli/command.h"
#include "collector/export/output_file.h"
#include "collector/report/text/table_text.h"
#include "collector/report/text/terminal.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

constexpr double kWideSpread = 10;  // percent

Table Tabulate(const HostRoofs& roofs) {
  Table table{.name = "calibrate",
              .title = fmt::format("{}: {}, {} core{}", roofs.host, roofs.processor, roofs.cores,
                                   roofs.cores == 1 ? "" : "s"),
              .columns = {{"what", Unit::kText},
                          {"by", Unit::kText},
                          {"one_core_flops_per_second", Unit::kFlopsPerSecond},
                          {"all_cores_flops_per_second", Unit::kFlopsPerSecond},
                          {"one_core_gb_per_s", Unit::kGbPerSecond},
                          {"all_cores_gb_per_s", Unit::kGbPerSecond},
                          {"spread_percent", Unit::kPercent}}};
  const auto add = [&table](const std::string& what, std::string by, const MeasuredRate& one,
                            const MeasuredRate& all, bool is_memory) {
    const double spread = std::max(one.spread_percent, all.spread_percent);
    const auto rate = [](double of) { return Cell(std::llround(of)); };
    table.rows.push_back({what, std::move(by), is_memory ? Cell() : rate(one.rate),
                          is_memory ? Cell() : rate(all.rate),
                          is_memory ? Cell(one.rate / 1e9) : Cell(),
                          is_memory ? Cell(all.rate / 1e9) : Cell(), spread});
    if (spread > kWideSpread) {
      table.notes.push_back(
          fmt::format("{}: {} samples lie {:.0f} % apart: something else runs here, or the clock "
                      "changes; calibrate again when it is quiet",
                      what, kCalibrationSamples, spread));
    }
  };
  for (const HostRoofs::Arithmetic& of : roofs.arithmetic) {
    add(of.type, of.instruction, of.one, of.all, false);
  }
  for (const HostRoofs::Level& of : roofs.levels) {
    add(of.name, fmt::format("triad of {} KiB a core", of.bytes / 1024), of.one, of.all, true);
  }
  return table;
}

}  // namespace

int CalibrateCommand(const std::vector<std::string>& arguments) {
  std::string output, format_name = "text";
  Arguments app(
      "Measures what this host's processor can do: multiply-adds by type, and the bandwidth of "
      "each\n"
      "cache and of memory. It takes some seconds of all cores that it may use. report roofline "
      "of\n"
      "a CPU job takes these as its roofs.",
      "ranktap calibrate");
  app.Add("-o,--output", &output,
          "the file to write; else ~/.local/share/ranktap/roofs/HOST.json, where reports look");
  app.Add("--format", &format_name, "text, json or csv").ShowsDefault();
  if (const auto status = app.Parse(arguments)) return *status;
  const auto format = FormatNamed(format_name);
  if (!format || *format == Format::kHtml) {
    Complain(fmt::format("no format '{}'; it is text, json or csv", format_name));
    return kWrongUsage;
  }
  const HostRoofs roofs = CalibrateHost();
  const std::string path = output.empty() ? RoofsPath(roofs.host) : output;
  if (path.empty()) {
    Complain("neither XDG_DATA_HOME nor HOME is a folder; name a file: -o FILE");
    return kFailure;
  }
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  auto file = OutputFile::Create(path);
  if (file) file->Write(RoofsText(roofs));
  const auto failure = file ? file->Close() : std::optional<Failure>(Failure{file.message()});
  if (failure) {
    Complain(failure->message);
    return kFailure;
  }
  Table table = Tabulate(roofs);
  table.notes.push_back("written to " + path);
  const std::string text = *format == Format::kJson ? FormatJson(table, 0)
                           : *format == Format::kCsv
                               ? FormatCsv(table, 0)
                               : FormatText(table, OutputWidth(STDOUT_FILENO), 0);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kSuccess;
}

}  // namespace ranktap::collector
