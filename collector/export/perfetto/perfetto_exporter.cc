#include "collector/export/perfetto/perfetto_exporter.h"
#include "collector/export/exporters.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "collector/export/json_text.h"
#include "collector/export/perfetto/tar_writer.h"
#include "collector/export/run_clock.h"

namespace ranktap::collector {
namespace {

// Above every pid of Linux: for processes of different hosts or containers with the same pid.
constexpr int64_t kFirstMadeUpPid = 5'000'000;

std::string Program(const Trace& trace) {
  const std::string& executable = trace.info.executable;
  return executable.substr(executable.rfind('/') + 1);
}

std::string ProcessName(const Trace& trace) {
  const std::string program = Program(trace);
  if (!trace.info.rank) return program.empty() ? trace.info.file : program;
  const std::string rank = fmt::format("rank {}", *trace.info.rank);
  return program.empty() ? rank : fmt::format("{}: {}", rank, program);
}

std::vector<std::string> Labels(const Trace& trace, int64_t pid) {
  std::vector<std::string> labels;
  if (!trace.info.host.empty()) labels.push_back(fmt::format("host {}", trace.info.host));
  if (pid != trace.info.pid) labels.push_back(fmt::format("pid {}", trace.info.pid));
  if (trace.info.simulated) labels.push_back("simulated GPU");
  return labels;
}

// `i`: of the trace among those that are written.
void WriteTrace(const Run& run, const Trace& trace, size_t i, int64_t pid,
                const ExportOptions& options, PerfettoPackets* packets) {
  const auto& words = trace.hello.process().command_line();
  const std::vector<std::string> command(words.begin(), words.end());
  const int64_t shift = RealtimeOffset(run, trace);
  PerfettoTrace state{
      .trace = trace,
      .shift_ns = shift,
      .options = options.Shifted(shift),
      .pid = pid,
      .process = packets->AddProcess(pid, ProcessName(trace), command, Labels(trace, pid)),
      .arrows = {trace, options.Shifted(shift), (uint64_t{i} + 1) << 32},
      .first_framework_arrow = ((uint64_t{i} + 1) << 32) + (uint64_t{1} << 31),
      .packets = packets};
  WritePerfettoHost(&state);
  WritePerfettoDevices(&state);
}

// Pids that no two processes of one host share, by trace.
std::vector<int64_t> UniquePids(std::span<const Trace* const> traces, bool hosts_apart) {
  const auto key = [hosts_apart](const Trace& trace) {
    return std::pair(hosts_apart ? trace.info.host : "", trace.info.pid);
  };
  std::map<std::pair<std::string, uint32_t>, int> processes;
  for (const Trace* const trace : traces) ++processes[key(*trace)];
  std::vector<int64_t> pids;
  for (size_t i = 0; i < traces.size(); ++i) {
    const bool unique = traces[i]->info.pid != 0 && processes[key(*traces[i])] == 1;
    pids.push_back(unique ? traces[i]->info.pid : kFirstMadeUpPid + static_cast<int64_t>(i));
  }
  return pids;
}

std::optional<Failure> WriteArchive(const Run& run, std::span<const Trace* const> traces,
                                    const ExportOptions& options, const std::string& path) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  TarWriter tar(&*file);
  // Manifests are told by their first bytes.
  JsonText manifest;
  manifest.Raw("{\"perfetto_manifest\": {\"version\": 1, \"trace_time\": ");
  manifest.Raw("{\"clock\": \"REALTIME\"}, \"files\": [");
  const std::vector<int64_t> pids = UniquePids(traces, true);
  for (size_t i = 0; i < traces.size(); ++i) {
    const Trace& trace = *traces[i];
    const std::string number = std::to_string(trace.info.rank ? *trace.info.rank : i);
    std::string name = std::string(trace.info.rank ? "rank-" : "trace-") +
                       std::string(5 - std::min<size_t>(5, number.size()), '0') + number;
    if (tar.has(name + ".pftrace")) name += fmt::format("-{}", i);
    name += ".pftrace";
    tar.Begin(name);
    // A million tracks a rank, which is more than any has.
    PerfettoPackets packets(&*file, static_cast<uint32_t>(i) << 20);
    WriteTrace(run, trace, i, pids[i], options, &packets);
    packets.Flush();
    tar.End();
    manifest.Raw(i == 0 ? "\n" : ",\n").Raw("{\"path\": ").Text(name);
    if (!trace.info.host.empty()) {
      manifest.Raw(", \"machine\": {\"name\": ").Text(trace.info.host).Raw("}");
    }
    manifest.Raw("}");
  }
  manifest.Raw("\n]}}\n");
  tar.Begin("perfetto_manifest.json");
  file->Write(manifest.view());
  tar.End();
  tar.Finish();
  if (auto failure = file->Close()) return failure;
  return tar.WriteHeaders(path);
}

}  // namespace

std::optional<Failure> WritePerfetto(const Run& run, std::span<const Trace* const> traces,
                                     const ExportOptions& options, const std::string& path) {
  if (path.ends_with(".tar")) return WriteArchive(run, traces, options, path);
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  PerfettoPackets packets(&*file);
  const std::vector<int64_t> pids = UniquePids(traces, false);
  for (size_t i = 0; i < traces.size(); ++i) {
    WriteTrace(run, *traces[i], i, pids[i], options, &packets);
  }
  packets.Flush();
  return file->Close();
}

}  // namespace ranktap::collector
