// `ranktap collect`: a collector that stays. Programs join it through RANKTAP_SOCKET, in several
// jobs and of several users at once.
#include <fmt/core.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>

#include "collector/cli/command.h"
#include "collector/cli/hang_alarm.h"
#include "collector/cli/metrics.h"
#include "collector/file/printable.h"
#include "collector/ingest/collector.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/ingest/net/public_socket.h"
#include "collector/ingest/recovery/spool_adopter.h"
#include "collector/ingest/store/old_runs.h"
#include "collector/launch/injection.h"
#include "collector/launch/new_run.h"
#include "collector/launch/service_notify.h"
#include "collector/report/human_units.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/version.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

struct CollectOptions {
  std::string socket = PublicSocket::DefaultPath();
  std::string output = ::geteuid() == 0 ? "/var/lib/ranktap" : "ranktap-runs";
  std::string level, log, spool, keep_runs, max_disk;
  MetricsOptions metrics;
  RunCleaning cleaning;
  HangOptions hang;
  KeepOptions keep;
  bool all_users = false, all_spools = false, print_env = false;
  v1::Level wanted_level = v1::LEVEL_UNKNOWN;  // each process's own
};

// What is wrong with --keep-runs or --max-disk.
std::optional<std::string> SetLimits(CollectOptions* options) {
  if (!options->keep_runs.empty()) {
    const auto age = ParseDuration(options->keep_runs);
    if (!age || *age == 0) {
      return fmt::format("--keep-runs '{}' is not a time; write 30d or 12h", options->keep_runs);
    }
    options->cleaning.limits.age_ns = *age;
  }
  if (!options->max_disk.empty()) {
    const auto bytes = ParseBytes(options->max_disk);
    if (!bytes) {
      return fmt::format("--max-disk '{}' is not a size; write 200G or 1.5T", options->max_disk);
    }
    options->cleaning.limits.bytes = *bytes;
  }
  return std::nullopt;
}

// Looks now and every ten minutes, until it is stopped.
void KeepWithinLimits(const std::stop_token& stop, CollectOptions* options) {
  constexpr auto kBetween = std::chrono::minutes(10);
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  do {
    for (const std::string& said :
         RemoveOldRuns(options->output, RealtimeNs(), &options->cleaning)) {
      Complain(Printable(said));
    }
  } while (!stopped.wait_for(lock, stop, kBetween, [&] { return stop.stop_requested(); }));
}

std::optional<int> ParseCollect(const std::vector<std::string>& arguments,
                                CollectOptions* options) {
  Arguments app(
      "Collects from every program whose RANKTAP_SOCKET names it, until SIGTERM or SIGINT. Each\n"
      "job becomes a run of its own: DIR/UID/JOB-TIME.",
      "ranktap collect");
  app.Add("--socket", &options->socket, "where to listen").ShowsDefault();
  app.Add("-o,--output", &options->output, "directory of the runs").ShowsDefault();
  app.Add("--level", &options->level,
          "dormant, ranges, kernels or full for every process; without it each process's "
          "own, from RANKTAP_LEVEL, which is dormant where it is not set");
  app.AddFlag("--all-users", &options->all_users,
              "serve every user of the machine, not only this one; for root");
  app.Add("--spool", &options->spool,
          "directory in which processes that ended without a collector left events; by default "
          "this user's (RANKTAP_SPOOL), with --all-users everybody's");
  app.AddFlag("--all-spools", &options->all_spools,
              "take in spools of jobs of another collector, too: of one that was killed, or that "
              "their machine never had");
  app.Add("--keep-runs", &options->keep_runs,
          "remove runs that ended longer ago than this: 30d, 12h; none that a process is in");
  app.Add("--max-disk", &options->max_disk,
          "remove the oldest runs while all take more than this: 200G, 1.5T");
  app.Add("--log", &options->log, "file for the collector's own messages");
  AddMetricsOptions(&app, &options->metrics);
  AddHangOptions(&app, &options->hang);
  AddKeepOptions(&app, &options->keep);
  app.AddFlag("--print-env", &options->print_env,
              "print the variables that make a program join, and end");
  if (const auto status = app.Parse(arguments)) return status;
  if (options->all_users && ::geteuid() != 0) {
    Complain(
        "--all-users: only root can give each user their own traces; run as root, or leave it out");
    return kWrongUsage;
  }
  if (const auto status = CheckHangOptions(&options->hang)) return status;
  if (const auto status = CheckKeepOptions(&options->keep)) return status;
  if (options->hang.command == "kill") {
    return Complained("--on-hang kill is for ranktap run, whose command it ends", kWrongUsage);
  }
  if (const auto problem = SetLimits(options)) return Complained(*problem, kWrongUsage);
  if (options->level.empty()) return std::nullopt;
  const auto level = LevelNamed(options->level);
  if (!level || *level > v1::LEVEL_FULL) {
    Complain(fmt::format("no level '{}'; it is dormant, ranges, kernels or full", options->level));
    return kWrongUsage;
  }
  options->wanted_level = *level;
  return std::nullopt;
}

int PrintVariables(const CollectOptions& options) {
  std::string why;
  const std::string library = FindAgentLibrary(&why);
  if (library.empty()) {
    Complain(why);
    return kFailure;
  }
  const InjectionRequest request{.library = library,
                                 .socket = options.socket,
                                 .level = options.level.empty() ? "kernels" : options.level,
                                 .preload = true};
  for (const auto& [name, value] : PlanInjection({}, request).variables) {
    std::printf("%s=%s\n", name.c_str(), value.c_str());
  }
  return kSuccess;
}

// The signals that are ours, as a descriptor; blocked, from before the threads exist.
FileDescriptor BlockSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
    ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  // A full disk or a reader that left must not end a collector.
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
  return FileDescriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

// One line each, up to a number that anybody reads.
void ComplainOfSome(const std::vector<std::string>& subjects, const char* what) {
  constexpr size_t kMost = 20;
  for (size_t i = 0; i < subjects.size() && i < kMost; ++i) Complain(subjects[i] + what);
  if (subjects.size() > kMost) {
    Complain(fmt::format("and {} more of these", subjects.size() - kMost));
  }
}

// All that we may have; how many that is.
uint64_t RaiseDescriptorLimit() {
  rlimit limit{1024, 1024};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

SpoolAdopter::FindDirectories SpoolsOf(const CollectOptions& options) {
  const char* const named = ::getenv("RANKTAP_SPOOL");
  const std::string path = options.spool.empty() && named != nullptr ? named : options.spool;
  if (!path.empty()) {
    return [path] { return std::vector<SpoolDirectory>{{path, ::geteuid()}}; };
  }
  if (options.all_users) return &SpoolAdopter::DirectoriesOfAll;
  return [] { return SpoolAdopter::DirectoriesOf(::geteuid()); };
}

// What RANKTAP_SOCKET may have been in our jobs.
std::vector<std::string> NamesOf(const std::string& socket) {
  std::error_code error;
  const fs::path absolute = fs::absolute(socket, error).lexically_normal();
  return {socket, absolute, fs::weakly_canonical(absolute, error)};
}

// Until a signal comes that ends us; SIGUSR1 begins a window, SIGUSR2 ends it. The watchdog hears
// of us only while both threads answer.
void Serve(const FileDescriptor& signals, Collector* collector) {
  const auto watchdog = WatchdogNs();
  const int wait_ms = watchdog ? static_cast<int>(*watchdog / 3'000'000) : -1;
  uint64_t heard = 0;
  if (watchdog) collector->Ping();
  for (;;) {
    pollfd polled{.fd = signals.get(), .events = POLLIN, .revents = 0};
    (void)::poll(&polled, 1, wait_ms);
    signalfd_siginfo info{};
    if (::read(signals.get(), &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2) return;
      info.ssi_signo == SIGUSR1 ? collector->BeginWindow() : collector->EndWindow();
    }
    if (!watchdog || collector->beats() == heard) continue;
    heard = collector->beats();
    NotifyService("WATCHDOG=1");
    collector->Ping();
  }
}

int CollectUntilSignal(CollectOptions& options) {
  const FileDescriptor signals = BlockSignals();
  Result<PublicSocket> socket = PublicSocket::Create(options.socket, options.all_users);
  if (!socket) {
    Complain(socket.message());
    return kFailure;
  }
  Result<RunRegistry> registry = RunRegistry::Open(options.output, DescribeNewRun(options.level));
  if (!registry) {
    Complain(registry.message());
    return kFailure;
  }
  ComplainOfSome(registry->problems(), "");
  ComplainOfSome(registry->sealed(),
                 ": its collector was killed; closed after its last whole block");
  ServerOptions server;
  server.limits = WithinDescriptors(RaiseDescriptorLimit());
  server.level = options.wanted_level;
  if (options.wanted_level >= v1::LEVEL_RANGES) server.start_level = options.wanted_level;
  server.collector_version = kVersion;
  server.collector_id = RandomId();
  server.owner = ::geteuid();
  server.trial_program = "/proc/self/exe";
  server.sample_devices = true;
  server.all_users = options.all_users;
  server.resumable = true;
  if (!options.all_spools) server.spools_of = NamesOf(options.socket);
  server.log_path = options.log;
  server.keep = options.keep.limits;
  if (options.cleaning.limits.any()) server.cleaning = &options.cleaning;
  Collector collector(socket->TakeListener(), std::move(*registry), server);
  Complain(fmt::format("collecting at {} into {}", options.socket, options.output));
  const Metrics metrics(options.metrics, options.socket);
  DumpTriggers triggers(options.keep, options.socket, &collector);
  HangAlarm alarm(options.hang, options.socket, &collector, &triggers);
  NotifyService("READY=1");
  {
    const SpoolAdopter adopter(
        SpoolsOf(options), [&](uid_t owner) { return collector.ConnectSpool(owner); },
        [](const std::string& what) { Complain(what); });
    std::jthread broom;
    if (options.cleaning.limits.any()) {
      broom = std::jthread([&](const std::stop_token& stop) { KeepWithinLimits(stop, &options); });
    }
    Serve(signals, &collector);
  }
  alarm.Finish();
  triggers.Finish();
  NotifyService("STOPPING=1");
  // Frames that are in the sockets are stored; processes that live on keep the rest for the next
  // collector.
  (void)collector.Finish(0, [](RunInfo* run) {
    if (!run->end_realtime_ns) run->end_realtime_ns = RealtimeNs();
  });
  if (collector.problem().empty()) return kSuccess;
  Complain(collector.problem());
  return kFailure;
}

}  // namespace

int CollectCommand(const std::vector<std::string>& arguments) {
  CollectOptions options;
  if (const auto status = ParseCollect(arguments, &options)) return *status;
  return options.print_env ? PrintVariables(options) : CollectUntilSignal(options);
}

}  // namespace ranktap::collector
