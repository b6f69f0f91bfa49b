#include "collector/cli/print_summary.h"

#include <fmt/core.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdio>

#include "collector/cli/command.h"
#include "collector/report/run_summary.h"
#include "collector/report/text/summary_text.h"
#include "collector/report/text/terminal.h"
#include "collector/trace/load/run_reader.h"

namespace ranktap::collector {
namespace {

// A summary needs every trace in memory.
bool FitsIntoMemory(const RunInfo& info) {
  constexpr uint64_t kBytesPerEvent = 64;
  uint64_t events = 0;
  for (const TraceInfo& trace : info.traces) events += trace.events;
  struct sysinfo memory {};
  if (::sysinfo(&memory) != 0) return true;
  return events * kBytesPerEvent < uint64_t{memory.freeram} * memory.mem_unit / 2;
}

}  // namespace

void PrintSummary(const RunInfo& info, const std::string& path) {
  if (info.traces.empty()) {
    Complain(
        fmt::format("nothing was traced: no process of the command used CUDA or NVTX, or the agent "
                    "stayed off (RANKTAP_LOG=FILE gets its reason). See {}/run.json. PyTorch that "
                    "computes on the CPU is recorded by --level full",
                    path));
    return;
  }
  if (!FitsIntoMemory(info)) {
    Complain(
        fmt::format("traces: {} (too many events to summarise here; try ranktap report)", path));
    return;
  }
  const Result<Run> run = LoadRun(path);
  if (!run) {
    Complain(run.message());
    return;
  }
  const std::string text =
      FormatSummary(SummarizeRun(*run), info, path, OutputWidth(STDERR_FILENO));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace ranktap::collector
