// `ranktap start`: capture begins on all ranks of a job at the same instant.
#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "collector/cli/command.h"
#include "collector/cli/control.h"
#include "collector/file/run_info.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/report/human_units.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

struct StartOptions {
  ControlTarget target;
  std::string level, delay, duration, at;
  bool no_wait = false;
};

// Seconds of CLOCK_REALTIME, as `date +%s.%N` prints them.
std::optional<uint64_t> ParseInstant(const std::string& text) {
  double seconds = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || rest != text.data() + text.size() || !(seconds > 0) ||
      seconds > 9e9) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(std::llround(seconds * 1e9));
}

bool AskFor(const char* option, const std::string& text, uint64_t* ns) {
  if (text.empty()) return true;
  const auto parsed = ParseDuration(text);
  if (parsed) *ns = *parsed;
  if (!parsed) {
    Complain(fmt::format("{} '{}' is not a time; write 10, 1.5s, 200ms or 2m", option, text));
  }
  return parsed.has_value();
}

std::optional<int> Fill(const StartOptions& options, v1::ControlRequest* request) {
  request->set_verb(v1::ControlRequest::VERB_START);
  if (!options.level.empty()) {
    const auto level = LevelNamed(options.level);
    if (!level || *level < v1::LEVEL_RANGES || *level > v1::LEVEL_FULL) {
      Complain(
          fmt::format("no level '{}' to start at; it is ranges, kernels or full", options.level));
      return kWrongUsage;
    }
    request->set_level(*level);
  }
  uint64_t delay = 0, duration = 0;
  if (!AskFor("--delay", options.delay, &delay)) return kWrongUsage;
  if (!AskFor("--duration", options.duration, &duration)) return kWrongUsage;
  if (!options.duration.empty() && duration == 0) {
    Complain("--duration 0 captures nothing");
    return kWrongUsage;
  }
  request->set_duration_ns(duration);
  if (delay != 0) request->set_at_realtime_ns(RealtimeNs() + delay);
  if (options.at.empty()) return std::nullopt;
  const auto at = ParseInstant(options.at);
  if (!at || *at < RealtimeNs()) {
    Complain(fmt::format(
        "--at '{}' is not a future time; write seconds since the epoch, as `date +%s` prints them",
        options.at));
    return kWrongUsage;
  }
  request->set_at_realtime_ns(*at);
  return std::nullopt;
}

}  // namespace

int StartCommand(const std::vector<std::string>& arguments) {
  StartOptions options;
  Arguments app(
      "Begins to capture on every rank of a job at the same instant: a window, which ends after\n"
      "--duration or with `ranktap stop`. Ranks that come meanwhile join it.\n"
      "run --schedule counts steps from the begin of the window: one that ends before the first\n"
      "such step has no operators. start says so as it runs, and so does `ranktap report RUN ops`.",
      "ranktap start");
  AddTargetOptions(&app, &options.target);
  app.Add("--level", &options.level,
          "ranges, kernels or full; else the level that the collector was started with");
  app.Add("--duration", &options.duration, "end after this time: 10, 1.5s, 200ms, 2m");
  const Arguments::Option delay = app.Add("--delay", &options.delay, "begin this long from now");
  app.Add("--at", &options.at,
          "begin at this time, in seconds as `date +%s` prints them: the same on all nodes")
      .Excludes(delay);
  app.AddFlag("--all", &options.target.all, "every job of every collector that is found");
  app.AddFlag("--no-wait", &options.no_wait, "do not wait for the ranks to confirm");
  if (const auto status = app.Parse(arguments)) return *status;
  v1::ControlRequest request;
  if (const auto status = Fill(options, &request)) return *status;
  return OrderLevels(options.target, request, !options.no_wait);
}

}  // namespace ranktap::collector
