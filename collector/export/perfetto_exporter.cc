#include "collector/export/perfetto_exporter.h"

#include <map>
#include <vector>

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
  const std::string rank = "rank " + std::to_string(*trace.info.rank);
  return program.empty() ? rank : rank + ": " + program;
}

std::vector<std::string> Labels(const Trace& trace, int64_t pid) {
  std::vector<std::string> labels;
  if (!trace.info.host.empty()) labels.push_back("host " + trace.info.host);
  if (pid != trace.info.pid) labels.push_back("pid " + std::to_string(trace.info.pid));
  if (trace.info.simulated) labels.push_back("simulated GPU");
  return labels;
}

}  // namespace

std::optional<Failure> WritePerfetto(const Run& run, std::span<const Trace* const> traces,
                                     const ExportOptions& options, const std::string& path) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  PerfettoPackets packets(&*file);
  std::map<uint32_t, int> processes_of_pid;
  for (const Trace* const trace : traces) ++processes_of_pid[trace->info.pid];
  for (size_t i = 0; i < traces.size(); ++i) {
    const Trace& trace = *traces[i];
    const bool unique = trace.info.pid != 0 && processes_of_pid[trace.info.pid] == 1;
    const int64_t pid = unique ? trace.info.pid : kFirstMadeUpPid + static_cast<int64_t>(i);
    const auto& words = trace.hello.process().command_line();
    const std::vector<std::string> command(words.begin(), words.end());
    const int64_t shift = RealtimeOffset(run, trace);
    PerfettoTrace state{
        .trace = trace,
        .shift_ns = shift,
        .options = options.Shifted(shift),
        .pid = pid,
        .process = packets.AddProcess(pid, ProcessName(trace), command, Labels(trace, pid)),
        .arrows = {trace, options.Shifted(shift), (uint64_t{i} + 1) << 32},
        .first_framework_arrow = ((uint64_t{i} + 1) << 32) + (uint64_t{1} << 31),
        .packets = &packets};
    WritePerfettoHost(&state);
    WritePerfettoDevices(&state);
  }
  packets.Flush();
  return file->Close();
}

}  // namespace ranktap::collector
