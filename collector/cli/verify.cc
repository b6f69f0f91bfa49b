// `ranktap verify RUN`: every byte and every count.
#include <cstdio>

#include "collector/cli/arguments.h"
#include "collector/cli/command.h"
#include "collector/file/printable.h"
#include "collector/report/human_units.h"
#include "collector/trace/load/trace_check.h"

namespace ranktap::collector {
namespace {

void Print(const TraceCheck& check) {
  std::printf(
      "%s: %s, %s events in %s blocks, %s, %s declared lost\n", Printable(check.path).c_str(),
      check.ok() ? "ok" : "FAILED", FormatCount(static_cast<int64_t>(check.events)).c_str(),
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
  app.Add("RUN", &path, "a run directory, or one .trace file").Required();
  if (const auto status = app.Parse(arguments)) return *status;
  const Result<RunCheck> run = CheckRun(path);
  if (!run) {
    Complain(run.message());
    return kFailure;
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
