// `ranktap dump`: saves what a collector with --keep has of a job, while recording goes on.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "collector/cli/command.h"
#include "collector/cli/control.h"
#include "collector/cli/dump_triggers.h"
#include "collector/cli/keep.h"
#include "collector/file/printable.h"
#include "collector/ingest/control/control_client.h"
#include "collector/report/human_units.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

constexpr unsigned kPatienceSeconds = 300;  // of a copy of gigabytes

bool TakeTime(const char* option, const std::string& text, uint64_t* ns) {
  if (text.empty()) return true;
  const auto parsed = ParseDuration(text);
  if (parsed) *ns = *parsed;
  if (!parsed) {
    Complain(fmt::format("{} '{}' is not a time; write 30s, 1.5s or 2m", option, text));
  }
  return parsed.has_value();
}

}  // namespace

int DumpCommand(const std::vector<std::string>& arguments) {
  ControlTarget target;
  std::string last, after;
  uint64_t last_ns = 0, after_ns = kOnItsWayNs;
  Arguments app(
      "Saves what a collector that was started with --keep has of a job: the same interval of all\n"
      "ranks, as a run of its own below the job's. Recording goes on.",
      "ranktap dump");
  AddTargetOptions(&app, &target);
  app.Add("--last", &last, "this much of the time before now; else all that is kept: 30s, 2m");
  app.Add("--after", &after,
          "and so much after now: 5s (default 2s, in which a GPU's records arrive)");
  if (const auto status = app.Parse(arguments)) return *status;
  if (!TakeTime("--last", last, &last_ns) || !TakeTime("--after", after, &after_ns)) {
    return kWrongUsage;
  }
  const std::vector<CollectorAnswer> found = ThoseThatKeep(FindTarget(target));
  if (found.empty() || IsAmbiguous(target, found)) return kFailure;
  std::this_thread::sleep_for(std::chrono::nanoseconds(after_ns));
  v1::ControlRequest request;
  request.set_verb(v1::ControlRequest::VERB_DUMP);
  request.set_job(FullJobName(target));
  if (last_ns != 0) request.set_last_ns(last_ns + after_ns);
  int status = kSuccess;
  for (const CollectorAnswer& collector : found) {
    const Result<v1::ControlReply> reply =
        AskCollector(collector.socket, request, kPatienceSeconds);
    const std::string problem = reply ? reply->problem() : reply.message();
    if (!problem.empty()) {
      Complain(Printable(problem));
      status = kFailure;
      continue;
    }
    for (const v1::Dump& dump : reply->dumps()) {
      if (dump.problem().empty()) {
        std::printf("%s\n", SentenceOfDump(dump).c_str());
      } else {
        Complain(SentenceOfDump(dump));
        status = kFailure;
      }
    }
  }
  return status;
}

}  // namespace ranktap::collector
