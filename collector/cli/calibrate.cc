// `ranktap calibrate`: what this host and its GPUs can do, as the roofs of their reports.
#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "collector/calibrate/calibrate_device.h"
#include "collector/calibrate/calibrate_host.h"
#include "collector/calibrate/samples.h"
#include "collector/cli/command.h"
#include "collector/export/output_file.h"
#include "collector/report/text/table_text.h"
#include "collector/report/text/terminal.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

constexpr double kWideSpread = 10;  // percent

void NoteSpread(const std::string& what, double spread, Table* table) {
  if (spread <= kWideSpread) return;
  table->notes.push_back(
      fmt::format("{}: {} samples lie {:.0f} % apart: something else runs here, or the clock "
                  "changes; calibrate again when it is quiet",
                  what, kCalibrationSamples, spread));
}

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
    NoteSpread(what, spread, &table);
  };
  for (const HostRoofs::Arithmetic& of : roofs.arithmetic) {
    add(of.type, of.instruction, of.one, of.all, false);
  }
  for (const HostRoofs::Level& of : roofs.levels) {
    add(of.name, fmt::format("triad of {} KiB a core", of.bytes / 1024), of.one, of.all, true);
  }
  return table;
}

Table TabulateDevice(const DeviceRoofs& roofs) {
  Table table{.name = "calibrate_device",
              .title = fmt::format("{}, device {}: {}, compute capability {}, {}", roofs.host,
                                   roofs.number, roofs.name, roofs.architecture, roofs.driver),
              .columns = {{"what", Unit::kText},
                          {"by", Unit::kText},
                          {"flops_per_second", Unit::kFlopsPerSecond},
                          {"gb_per_s", Unit::kGbPerSecond},
                          {"each_ns", Unit::kNs},
                          {"mhz", Unit::kCount},
                          {"spread_percent", Unit::kPercent}}};
  const auto add = [&](const std::string& what, std::string by, const MeasuredRate& of,
                       size_t column, Cell value, double mhz) {
    std::vector<Cell> row(table.columns.size());
    row[0] = what;
    row[1] = std::move(by);
    if (of.rate > 0) {
      row[column] = std::move(value);
      row[6] = of.spread_percent;
    }
    if (mhz > 0) row[5] = std::llround(mhz);
    table.rows.push_back(std::move(row));
    NoteSpread(what, of.spread_percent, &table);
  };
  bool has_lower_bound = false;
  for (const DeviceRoofs::Arithmetic& of : roofs.arithmetic) {
    has_lower_bound |= of.is_lower_bound;
    add(of.type, of.instruction + (of.is_lower_bound ? ", a lower bound" : ""), of.rate, 2,
        std::llround(of.rate.rate), of.mhz);
  }
  for (const DeviceRoofs::Bandwidth& of : roofs.bandwidths) {
    const char* const by = of.what == "memory" ? "read" : "copy";
    add(of.what, fmt::format("{}, {} KiB", by, of.bytes >> 10), of.rate, 3, of.rate.rate / 1e9, 0);
  }
  for (const DeviceRoofs::Latency& of : roofs.latencies) {
    add(of.what, "empty kernel", of.ns, 4, std::llround(of.ns.rate), 0);
  }
  if (has_lower_bound) {
    table.notes.emplace_back(
        "a lower bound: the device's tensor cores have tcgen05, which was not run; reports keep "
        "the "
        "data sheet's roof there");
  }
  if (roofs.is_stand_in) {
    table.notes.emplace_back(
        "this is the stand-in for CUDA, which computes nothing: there is no figure, and reports "
        "refuse the file");
  }
  return table;
}

// False, after a complaint.
bool WriteRoofs(const std::string& path, const std::string& text) {
  if (path.empty()) {
    Complain("neither XDG_DATA_HOME nor HOME is a folder; name a file: -o FILE");
    return false;
  }
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  auto file = OutputFile::Create(path);
  if (file) file->Write(text);
  const auto failure = file ? file->Close() : std::optional<Failure>(Failure{file.message()});
  if (failure) Complain(failure->message);
  return !failure;
}

void Print(const Table& table, Format format) {
  const std::string text = format == Format::kJson ? FormatJson(table, 0)
                           : format == Format::kCsv
                               ? FormatCsv(table, 0)
                               : FormatText(table, OutputWidth(STDOUT_FILENO), 0);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// "roofs.json" becomes "roofs.gpu0.json".
std::string PathOfDevice(const std::string& output, int number) {
  std::filesystem::path path(output);
  path.replace_extension(fmt::format(".gpu{}{}", number, path.extension().string()));
  return path.string();
}

// Of the processor.
bool CalibrateProcessor(const std::string& output, Format format, const std::string& note) {
  const HostRoofs roofs = CalibrateHost();
  const std::string path = output.empty() ? RoofsPath(roofs.host) : output;
  if (!WriteRoofs(path, RoofsText(roofs))) return false;
  Table table = Tabulate(roofs);
  table.notes.push_back("written to " + path);
  if (!note.empty()) table.notes.push_back(note);
  Print(table, format);
  return true;
}

bool PrintDevices(const DeviceCalibration& devices, const std::string& output, Format format) {
  for (const DeviceRoofs& roofs : devices.devices) {
    const std::string path = output.empty() ? DeviceRoofsPath(roofs.host, roofs.uuid)
                                            : PathOfDevice(output, roofs.number);
    if (!WriteRoofs(path, DeviceRoofsText(roofs))) return false;
    Table table = TabulateDevice(roofs);
    table.notes.push_back("written to " + path);
    Print(table, format);
  }
  if (!devices.failure.empty()) Complain("no more GPUs were measured: " + devices.failure);
  return devices.failure.empty();
}

}  // namespace

int CalibrateCommand(const std::vector<std::string>& arguments) {
  std::string output, format_name = "text", only;
  Arguments app(
      "Measures what this host can do. Of its processor: multiply-adds by type, and the bandwidth "
      "of\n"
      "each cache and of memory. Of each GPU: multiply-adds, products on tensor cores, copies, "
      "and\n"
      "what a launch takes. It takes some seconds of all cores that it may use, and of each GPU.\n"
      "report roofline takes these as its roofs.",
      "ranktap calibrate");
  app.Add("-o,--output", &output,
          "the file to write, and FILE.gpu0.json beside it of a GPU; else "
          "~/.local/share/ranktap/roofs/HOST.json and HOST.UUID.json, where reports look");
  app.Add("--only", &only, "cpu or gpu; else both").OneOf({"cpu", "gpu"});
  app.Add("--format", &format_name, "text, json or csv; of a host with GPUs one table each")
      .ShowsDefault();
  if (const auto status = app.Parse(arguments)) return *status;
  const auto format = FormatNamed(format_name);
  if (!format || *format == Format::kHtml) {
    Complain(fmt::format("no format '{}'; it is text, json or csv", format_name));
    return kWrongUsage;
  }
  const bool has_cpu = only != "gpu";
  const DeviceCalibration devices = only == "cpu" ? DeviceCalibration() : CalibrateDevices();
  if (has_cpu && !CalibrateProcessor(output, *format, devices.note)) return kFailure;
  if (!PrintDevices(devices, output, *format)) return kFailure;
  if (has_cpu || devices.note.empty()) return kSuccess;
  Complain(devices.note);
  return devices.devices.empty() ? kFailure : kSuccess;
}

}  // namespace ranktap::collector
