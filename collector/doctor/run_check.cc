// The last run: how the agent was loaded in each rank, and what it lacked.
#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <map>

#include "collector/doctor/finding.h"
#include "collector/file/run_info.h"

namespace ranktap::collector {
namespace {

struct KnownNote {
  std::string_view mark;  // in what the agent says
  std::string_view advice;
};
constexpr std::array<KnownNote, 14> kKnownNotes = {{
    {"CUPTI is in use by another tool",
     "end the other tool (nsys, torch.profiler) in that process; the agent tries again each "
     "minute"},
    {"no libcupti found",
     "set RANKTAP_CUPTI to the path of a libcupti.so; PyTorch's lies in "
     "site-packages/nvidia/cuda_cupti/lib"},
    {"CUPTI does not start", "use a CUPTI that is not newer than the driver (RANKTAP_CUPTI)"},
    {"CUPTI 13.2 does not start here",
     "use a driver that is not older than CUDA 13.2, or another CUPTI (RANKTAP_CUPTI)"},
    {"CUPTI 13.2 ends a program",
     "use another CUPTI (RANKTAP_CUPTI), or a collector that sees the program's files and devices: "
     "it needs a second or two at the first run"},
    {"cannot be opened", "correct RANKTAP_CUPTI, or unset it"},
    {"which this ranktap does not know", "use a newer ranktap, or another CUPTI (RANKTAP_CUPTI)"},
    {"no memory for CUPTI's buffers", "lower RANKTAP_CUPTI_BUFFERS_MIB"},
    {"CUPTI gives work without times",
     "raise RANKTAP_DEVICE_BUFFERS, or record graphs as a whole (RANKTAP_WHOLE_GRAPHS=1)"},
    {"three times the CPU", "bring a CUPTI of 13.4 U1 or newer (RANKTAP_CUPTI)"},
    {"launches of CUDA graphs: CUPTI may tell nothing",
     "begin at level kernels or full (ranktap run without --dormant)"},
    {"the system gives no thread",
     "raise the limit of processes (ulimit -u, or the cgroup's "
     "pids.max)"},
    {"closed the rings' descriptor", "only a kill loses something; nothing needs to be done"},
    {"over the overhead budget", "raise --budget, or ask for a lower --level from the start"},
}};

std::string AdviceFor(const std::string& note) {
  for (const KnownNote& known : kKnownNotes) {
    if (note.find(known.mark) != std::string::npos) return std::string(known.advice);
  }
  return {};
}

// The newest run.json below the working directory: what `ranktap run` and `collect` make there.
std::string NewestRun(const HostView& host) {
  namespace fs = std::filesystem;
  std::string newest;
  fs::file_time_type time{};
  const auto look = [&](const fs::path& directory) {
    std::error_code error;
    const auto written = fs::last_write_time(directory / "run.json", error);
    if (!error && (newest.empty() || written > time)) {
      newest = directory.string();
      time = written;
    }
  };
  std::error_code error;
  const std::string here = host.is_this_machine() ? "." : host.Path("/runs");
  for (fs::directory_iterator entry(here, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with("ranktap-")) look(entry->path());
  }
  const fs::path kept = fs::path(here) / "ranktap-runs" / std::to_string(host.user());
  for (fs::directory_iterator entry(kept, error), end; !error && entry != end;
       entry.increment(error)) {
    look(entry->path());
  }
  return newest;
}

std::string NameOfRank(const TraceInfo& trace) {
  return trace.rank ? fmt::format("rank {}", *trace.rank) : fmt::format("pid {}", trace.pid);
}

// "ranks 0-3, 5" of those that share something.
std::string Joined(const std::vector<std::string>& names) {
  constexpr size_t kMost = 4;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

void AddEndings(const RunInfo& info, std::vector<Finding>* findings) {
  std::map<std::string, std::vector<std::string>> ways;
  for (const TraceInfo& trace : info.traces) {
    ways[fmt::format("loaded by {}, level {}, {}{}", trace.loaded_by, trace.level,
                     NameOf(trace.status), trace.detail.empty() ? "" : ": " + trace.detail)]
        .push_back(NameOfRank(trace));
  }
  for (const auto& [way, ranks] : ways) {
    const bool is_fine = way.ends_with(", closed") || way.find(", closed: ") != std::string::npos ||
                         way.ends_with(", open");
    const bool failed = way.find("write failed") != std::string::npos;
    findings->push_back({failed    ? Severity::kProblem
                         : is_fine ? Severity::kOk
                                   : Severity::kNote,
                         fmt::format("{} {}", Joined(ranks), way),
                         failed ? "make room on the disk of the run's directory" : ""});
  }
}

void AddNotes(const RunInfo& info, std::vector<Finding>* findings) {
  std::map<std::string, std::vector<std::string>> notes;
  for (const TraceInfo& trace : info.traces) {
    for (const std::string& note : trace.notes) notes[note].push_back(NameOfRank(trace));
    if (trace.loaded_by == "environment") {
      notes
          ["loaded by CUDA's and NVTX's variables alone: without LD_PRELOAD there is no hook for "
           "PyTorch"]
              .push_back(NameOfRank(trace));
    }
  }
  for (const auto& [note, ranks] : notes) {
    const bool lacks_kernels = note.starts_with("no kernels");
    findings->push_back({lacks_kernels ? Severity::kProblem : Severity::kNote,
                         fmt::format("{}: {}", Joined(ranks), note), AdviceFor(note)});
  }
  for (const auto& [reason, count] : info.refused) {
    findings->push_back({Severity::kWarning,
                         fmt::format("the collector turned away: {}, {} times", reason, count),
                         ""});
  }
}

}  // namespace

std::vector<Finding> CheckLastRun(const HostView& host) {
  const std::string path = host.run.empty() ? NewestRun(host) : host.run;
  if (path.empty()) return {{Severity::kOk, "there is no run here yet", ""}};
  const std::string file = path + "/run.json";
  // A run is named as it is, not below a test's root.
  const auto text = HostView("", {}).Read(file);
  if (!text) {
    return {{Severity::kProblem, fmt::format("{} cannot be read", file),
             "name a run's directory with --run"}};
  }
  const Result<RunInfo> info = ParseRunInfo(*text, file);
  if (!info) return {{Severity::kProblem, info.message(), ""}};
  std::vector<Finding> findings;
  if (info->traces.empty()) {
    findings.push_back(
        {Severity::kProblem,
         fmt::format(
             "{}: no process of the command used CUDA or NVTX, or none could load the agent", path),
         "see the other findings; `RANKTAP_LOG=/tmp/agent.log ranktap run ...` has "
         "the agent's own words"});
  } else {
    const size_t count = info->traces.size();
    findings.push_back(
        {Severity::kOk, fmt::format("{}: {} trace{}", path, count, count == 1 ? "" : "s"), ""});
  }
  AddEndings(*info, &findings);
  AddNotes(*info, &findings);
  return findings;
}

}  // namespace ranktap::collector
