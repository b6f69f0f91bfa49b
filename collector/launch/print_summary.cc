#include "collector/launch/print_summary.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "collector/report/human_units.h"
#include "collector/report/run_summary.h"
#include "collector/report/text/summary_text.h"
#include "collector/report/text/terminal.h"
#include "collector/terminal/complain.h"
#include "collector/trace/load/run_reader.h"

namespace ranktap::collector {
namespace {

std::string Text(uint64_t ns) { return FormatNs(static_cast<int64_t>(ns)); }

// A summary needs every trace in memory.
bool FitsIntoMemory(const RunInfo& info) {
  constexpr uint64_t kBytesPerEvent = 64;
  uint64_t events = 0;
  for (const TraceInfo& trace : info.traces) events += trace.events;
  struct sysinfo memory {};
  if (::sysinfo(&memory) != 0) return true;
  return events * kBytesPerEvent < uint64_t{memory.freeram} * memory.mem_unit / 2;
}

// Says when a command was captured that was not from its start to its end.
std::string WhileCaptured(uint64_t ran_ns, const CapturePlan& plan) {
  if (plan.dormant) return " while a window of ranktap start was open";
  if (plan.delay_ns == 0 && plan.duration_ns == 0) return {};
  const std::string end =
      plan.duration_ns == 0 ? "" : fmt::format(" to {}", Text(plan.delay_ns + plan.duration_ns));
  return fmt::format(" while capture was on, from {}{} of the {} that it ran", Text(plan.delay_ns),
                     end, Text(ran_ns));
}

// An agent that starts and stays off says why in its log. An agent starts only in a process that
// loads what it is for; else there is no log.
std::string WhyNothing(const RunInfo& info, const CapturePlan& plan) {
  const uint64_t ran =
      info.end_realtime_ns.value_or(info.start_realtime_ns) - info.start_realtime_ns;
  if (plan.delay_ns >= ran && plan.delay_ns > 0) {
    return fmt::format("the command ran {}, and capture was to begin after {} (--delay)", Text(ran),
                       Text(plan.delay_ns));
  }
  const std::string when = WhileCaptured(ran, plan);
  const char* const log = std::getenv("RANKTAP_LOG");
  struct stat status {};
  if (log == nullptr || *log == '\0') {
    return fmt::format(
        "no process of the command used CUDA or NVTX{}. Where one did, its agent stayed off: "
        "RANKTAP_LOG=FILE gets the reason, or no FILE where no agent started",
        when);
  }
  if (::stat(log, &status) != 0 || status.st_size == 0) {
    return fmt::format("no process of the command used CUDA or NVTX{}: no agent wrote to {}", when,
                       log);
  }
  return fmt::format("the agent stayed off, or had nothing to record{}; {} says more", when, log);
}

}  // namespace

void PrintSummary(const RunInfo& info, const std::string& path, const CapturePlan& plan) {
  if (info.traces.empty()) {
    Complain(fmt::format("nothing was traced: {}. See {}/run.json{}", WhyNothing(info, plan), path,
                         plan.level == v1::LEVEL_FULL
                             ? ""
                             : ". PyTorch that computes on the CPU is recorded by --level full, "
                               "the lines of any Python program by --sample 10ms"));
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
