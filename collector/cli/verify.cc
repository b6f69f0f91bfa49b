// `ranktap verify RUN`: every byte and every count.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "collector/cli/command.h"
#include "collector/file/json.h"
#include "collector/file/printable.h"
#include "collector/report/human_units.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/trace/load/run_reader.h"
#include "collector/trace/load/trace_check.h"

namespace ranktap::collector {
namespace {

// The file is still being written: its process runs on this machine.
bool IsWritten(const TraceCheck& check, const RunInfo& run) {
  if (check.closed || run.end_realtime_ns) return false;
  const std::string file = std::filesystem::path(check.path).filename().string();
  const auto known = std::ranges::find(run.traces, file, &TraceInfo::file);
  return known != run.traces.end() && known->pid != 0 &&
         (::kill(static_cast<pid_t>(known->pid), 0) == 0 || errno == EPERM);
}

// How such a file ends (not closed, amid a block) is not a problem.
void TakeAsWritten(TraceCheck* check) {
  std::erase_if(check->problems, [check](const Damage& damage) {
    return damage.offset + damage.bytes >= check->bytes;
  });
  check->notes = {"its process still runs: what stands in the file so far was checked"};
}

Json ToJson(const TraceCheck& check) {
  Json problems = Json::array();
  for (const Damage& problem : check.problems) {
    problems.push_back(
        {{"offset", problem.offset}, {"bytes", problem.bytes}, {"what", problem.what}});
  }
  return {{"path", check.path},     {"ok", check.ok()},
          {"closed", check.closed}, {"events", check.events},
          {"blocks", check.blocks}, {"bytes", check.bytes},
          {"lost", check.lost},     {"problems", std::move(problems)},
          {"notes", check.notes}};
}

void PrintJson(const std::string& path, const RunCheck& run) {
  Json traces = Json::array();
  for (const TraceCheck& check : run.traces) traces.push_back(ToJson(check));
  const Json all = {
      {"run", path}, {"ok", run.ok()}, {"traces", std::move(traces)}, {"problems", run.problems}};
  std::printf("%s\n", WriteJson(all, 1).c_str());
}

void Print(const TraceCheck& check) {
  std::printf(
      "%s: %s, %s events in %s blocks, %s, %s declared lost\n", Printable(check.path).c_str(),
      check.ok() ? (check.closed ? "ok" : "ok so far") : "FAILED",
      FormatCount(static_cast<int64_t>(check.events)).c_str(),
      FormatCount(static_cast<int64_t>(check.blocks)).c_str(), FormatBytes(check.bytes).c_str(),
      FormatCount(static_cast<int64_t>(check.lost)).c_str());
  for (const Damage& problem : check.problems) {
    std::printf("  offset %llu: %s", static_cast<unsigned long long>(problem.offset),
                Printable(problem.what).c_str());
    if (problem.bytes > 0) {
      std::printf(" (%llu bytes)", static_cast<unsigned long long>(problem.bytes));
    }
    std::printf("\n");
  }
  for (const std::string& note : check.notes) {
    std::printf("  note: %s\n", Printable(note).c_str());
  }
}

}  // namespace

int VerifyCommand(const std::vector<std::string>& arguments) {
  std::string path;
  Arguments app(
      "Checks a run: checksums, that every writer's events follow each other without a hole, and\n"
      "that what was produced is what is stored or declared lost. Exit status 1 when it is not.",
      "ranktap verify");
  std::string format = "text";
  app.Add("RUN", &path, "a run directory, or one .trace file").Required();
  app.Add("--format", &format, "text or json").OneOf({"text", "json"}).ShowsDefault();
  if (const auto status = app.Parse(arguments)) return *status;
  Result<RunCheck> run = CheckRun(path);
  if (!run) {
    Complain(run.message());
    return kFailure;
  }
  if (const Result<RunFiles> files = FindTraces(path)) {
    for (TraceCheck& check : run->traces) {
      if (IsWritten(check, files->info)) TakeAsWritten(&check);
    }
  }
  if (format == "json") {
    PrintJson(path, *run);
    return run->ok() ? kSuccess : kFailure;
  }
  for (const TraceCheck& check : run->traces) Print(check);
  for (const std::string& problem : run->problems) {
    std::printf("%s\n", Printable(problem).c_str());
  }
  if (run->traces.empty() && run->problems.empty()) {
    std::printf("%s: no traces\n", Printable(path).c_str());
  }
  return run->ok() ? kSuccess : kFailure;
}

}  // namespace ranktap::collector
