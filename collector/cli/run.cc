// `ranktap run [options] -- command …`: the command under a collector of its own. Whatever goes
// wrong with the tracing, the command runs; its exit status is ours.
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "collector/cli/command.h"
#include "collector/cli/hang_alarm.h"
#include "collector/cli/run_options.h"
#include "collector/ingest/collector.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/ingest/net/private_socket.h"
#include "collector/launch/agent_reasons.h"
#include "collector/launch/child_process.h"
#include "collector/launch/forwarding.h"
#include "collector/launch/injection.h"
#include "collector/launch/new_run.h"
#include "collector/launch/out_of_reach.h"
#include "collector/launch/print_summary.h"
#include "collector/launch/run_place.h"
#include "collector/launch/tried_calls.h"
#include "collector/launch/wanted_capture.h"
#include "collector/report/human_units.h"
#include "collector/report/text/table_text.h"
#include "collector/report/text/terminal.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/output_style.h"
#include "collector/version.h"
#include "proto/modes.h"

namespace ranktap::collector {
namespace {

// Processes that outlive the command (a launcher that does not wait) get this long to finish.
constexpr uint64_t kGraceNs = 2'000'000'000;

std::vector<std::string_view> Environment() {
  std::vector<std::string_view> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries.emplace_back(*entry);
  }
  return entries;
}

int RunUntraced(const FoundCommand& found, const RunOptions& options, const std::string& why) {
  if (options.require) {
    return Complained(fmt::format("{}; --require: the command was not started", why), kNotTraced);
  }
  Complain(fmt::format("{}; the command runs untraced", why));
  Become(found.path, options.command);
  return Complained(fmt::format("{}: {}", options.command[0], std::strerror(errno)),
                    kCannotExecute);
}

// The collector that an outer `ranktap run` or `ranktap collect` has put into the environment.
std::string CollectorToJoin() {
  const char* const socket = ::getenv("RANKTAP_SOCKET");
  if (socket == nullptr || socket[0] == '\0') return {};
  if (CanConnect(socket)) return socket;
  Complain(fmt::format(
      "RANKTAP_SOCKET names {}, where no collector listens; starting one of our own", socket));
  return {};
}

int RunTraced(const FoundCommand& found, const RunOptions& options, const InjectionPlan& plan,
              RunDirectory directory, PrivateSocket* socket) {
  const std::string path = directory.path();
  AgentReasons reasons(socket->path());
  Forwarding forwarding =
      PrepareForwarding(found.path, options.command, Environment(), plan.variables, path);
  for (const std::string& message : forwarding.messages) Complain(message);
  ChooseByLoader(plan.library, &forwarding.variables);
  RunInfo info = DescribeNewRun(options.level);
  info.command = options.command;
  for (const auto& [key, value] : MetadataOf(options)) info.metadata[key] = value;
  RedactAsAsked(&info);
  ChildProcess child;
  if (!child.Start(found.path, forwarding.command, forwarding.variables)) {
    return Complained(fmt::format("{}: {}", options.command[0], std::strerror(errno)),
                      kCannotExecute);
  }
  ServerOptions server;
  server.level = FirstLevel(options);
  server.start_level = std::max(options.wanted_level, v1::LEVEL_RANGES);
  server.collector_version = kVersion;
  server.collector_id = RandomId();
  server.owner = ::geteuid();
  server.trial_program = "/proc/self/exe";
  if (::geteuid() == 0) server.family_of = ::getpid();
  server.sample_devices = !options.no_cuda;
  server.log_path = options.log;
  server.keep = options.keep.limits;
  Collector collector(socket->TakeListener(), std::move(directory), std::move(info), server);
  const Metrics metrics(options.metrics, socket->path());
  DumpTriggers triggers(options.keep, socket->path(), &collector);
  HangAlarm alarm(options.hang, socket->path(), path, child.pid(), &collector, &triggers);
  if (const auto window = WindowOf(options)) collector.SetLevel(*window);
  if (options.window_signals) {
    child.Keep(SIGUSR1, [&] { collector.BeginWindow(); });
    child.Keep(SIGUSR2, [&] { collector.EndWindow(); });
  }
  const int status = child.Wait();
  alarm.Finish(child.asked_to_end_ns());
  triggers.Finish();
  (void)::unlink((path + "/deepspeed_env").c_str());  // with the user's own lines in it
  const RunInfo finished = collector.Finish(kGraceNs, [&](RunInfo* run) {
    run->end_realtime_ns = RealtimeNs();
    if (WIFSIGNALED(status)) run->exit_signal = WTERMSIG(status);
    if (WIFEXITED(status)) run->exit_status = WEXITSTATUS(status);
  });
  reasons.Tell(found.path);
  if (!collector.problem().empty()) Complain(collector.problem());
  if (!Style().quiet) {
    PrintSummary(finished, path,
                 {.level = options.wanted_level,
                  .delay_ns = options.delay_ns,
                  .duration_ns = options.duration_ns,
                  .dormant = options.dormant});
  }
  if (!Style().quiet && finished.traces.empty()) {
    const std::string why = WhyOutOfReach(options.command, plan.library);
    if (!why.empty()) Complain(why);
  }
  alarm.SayLast(status);
  return ExitStatusOf(status);
}

int RunJoined(const FoundCommand& found, const RunOptions& options, const InjectionPlan& plan) {
  if (!options.output.empty() || !options.delay.empty() || !options.duration.empty() ||
      options.window_signals) {
    Complain("$RANKTAP_SOCKET's collector keeps its own -o, --delay, --duration, --window-signals");
  }
  Forwarding forwarding =
      PrepareForwarding(found.path, options.command, Environment(), plan.variables, "");
  for (const std::string& message : forwarding.messages) Complain(message);
  ChooseByLoader(plan.library, &forwarding.variables);
  for (const auto& [name, value] : forwarding.variables) ::setenv(name.c_str(), value.c_str(), 1);
  Become(found.path, forwarding.command);
  return Complained(fmt::format("{}: {}", options.command[0], std::strerror(errno)),
                    kCannotExecute);
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments) {
  RunOptions options;
  if (const auto status = ParseRun(arguments, &options)) return *status;
  // First: we make most of these calls ourselves.
  std::string why = options.print_env ? "" : WhyOurCallsEndAProcess();
  const std::string joined = why.empty() ? CollectorToJoin() : "";
  InjectionRequest request{.library = why.empty() ? FindAgentLibrary(&why) : "",
                           .socket = joined,
                           .level = std::string(NameOf(FirstLevel(options))),
                           .preload = !options.no_preload,
                           .settings = SettingsOf(options)};
  if (options.print_env) {
    if (joined.empty()) request.socket = "(made when the command runs)";
    for (const auto& [name, value] : PlanInjection(Environment(), request).variables) {
      std::printf("%s=%s\n", name.c_str(), value.c_str());
    }
    return kSuccess;
  }
  const FoundCommand found = FindCommand(options.command[0]);
  if (found.status != 0) return Complained(found.message, found.status);
  const std::string advice = AdviceOnLevel(options.asked_level, found.path);
  if (!advice.empty() && !Style().quiet) Complain(advice);
  if (request.library.empty()) return RunUntraced(found, options, why);
  if (const std::string obstacle = InjectionObstacle(found.path); !obstacle.empty()) {
    if (options.require) return RunUntraced(found, options, obstacle);
    Complain(obstacle);
  }
  if (request.preload && WantsToBeFirst(found.path)) {
    request.preload = false;
    Complain(
        fmt::format("{} uses AddressSanitizer, which allows nothing before it: no LD_PRELOAD, only "
                    "the injection variables of CUDA and NVTX",
                    found.path));
  }
  Result<PrivateSocket> socket = Failure{};
  if (joined.empty()) {
    socket = PrivateSocket::Create();
    if (!socket) return RunUntraced(found, options, socket.message());
    request.socket = socket->path();
  }
  const InjectionPlan plan = PlanInjection(Environment(), request);
  for (const std::string& message : plan.messages) Complain(message);
  if (!joined.empty()) return RunJoined(found, options, plan);
  Result<RunPlace> place = FindRunPlace(options.output, RunNameOf(options.command));
  const std::string problem = place ? place->instead_of : place.message();
  if (!place || (options.require && !problem.empty())) {
    // Become() runs no destructors, and the socket's directory is ours to remove.
    socket = Failure{};
    if (place) (void)::rmdir(place->directory.path().c_str());
    return RunUntraced(found, options, problem);
  }
  if (!problem.empty()) {
    Complain(fmt::format("{}; the run goes to {}", problem, place->directory.path()));
  }
  return RunTraced(found, options, plan, std::move(place->directory), &*socket);
}

}  // namespace ranktap::collector
