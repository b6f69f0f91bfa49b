#include "collector/cli/hang_alarm.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "collector/cli/hang_evidence.h"
#include "collector/file/printable.h"
#include "collector/ingest/control/control_client.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/report/human_units.h"
#include "collector/stacks/proc_files.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/output_style.h"

namespace ranktap::collector {
namespace {

// How long the command may take to end the ranks itself, before they are killed.
constexpr int kTermMs = 5000;
constexpr std::string_view kKill = "kill";

std::optional<int> ReadTime(const char* option, const std::string& text, uint64_t* ns) {
  if (text.empty()) return std::nullopt;
  const auto parsed = ParseDuration(text);
  if (!parsed || *parsed < 1'000'000'000) {
    return Complained(
        fmt::format("{} '{}' is not a time from 1 s on; write 30s, 10m or 1h", option, text),
        kWrongUsage);
  }
  *ns = *parsed;
  return std::nullopt;
}

std::string ClockText(uint64_t realtime_ns) {
  const time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  return {text, ::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

// 0, or errno.
int AppendLine(const std::string& path, const std::string& line) {
  const FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600));
  const ssize_t written = file.valid() ? ::write(file.get(), line.data(), line.size()) : -1;
  if (written < 0) return errno;
  return static_cast<size_t>(written) == line.size() ? 0 : ENOSPC;
}

std::string WholePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(path, error);
  return error ? path : whole.string();
}

}  // namespace

void AddHangOptions(Arguments* app, HangOptions* options) {
  app->Add("--hang-report", &options->report,
           "append the sentence of a hang to this file; without it a terminal gets it");
  app->Add("--on-hang", &options->command,
           "run this once, with sh, when the job hangs: $1 is the hang's directory, "
           "$RANKTAP_HANG the sentence. kill ends the job of run")
      .Suggests({"kill"});
  app->Add("--hang-after", &options->hang_after,
           "a wait for a rank that still moves is a hang after this long (default 10m)");
  app->Add("--waits-after", &options->waits_after,
           "ranks wait from this long on: 30s (default: five times the job's usual wait, at least "
           "20s; nothing in a rank's first two minutes)");
}

std::optional<int> CheckHangOptions(HangOptions* options) {
  if (const auto status =
          ReadTime("--waits-after", options->waits_after, &options->limits.waits_after_ns)) {
    return status;
  }
  return ReadTime("--hang-after", options->hang_after, &options->limits.hang_after_ns);
}

HangAlarm::HangAlarm(const HangOptions& options, const std::string& socket, const std::string& run,
                     pid_t command, Collector* collector, DumpTriggers* triggers)
    : options_(options),
      triggers_(triggers),
      socket_(socket),
      run_(run),
      command_(static_cast<int>(::syscall(SYS_pidfd_open, command, 0))) {
  Start(socket, collector);
}

HangAlarm::HangAlarm(const HangOptions& options, const std::string& socket, Collector* collector,
                     DumpTriggers* triggers)
    : options_(options), triggers_(triggers), socket_(socket) {
  Start(socket, collector);
}

HangAlarm::~HangAlarm() { Finish(); }

void HangAlarm::Finish(uint64_t asked_to_end_ns) {
  last_words_ = watch_->Finish(asked_to_end_ns);
  if (killer_.joinable()) killer_.join();
}

void HangAlarm::SayLast(int wait_status) const {
  if (!killed_for_.empty()) {
    Complain("--on-hang kill: " + killed_for_);
  } else if (!last_words_.empty() && wait_status != 0 && !Style().quiet) {
    Complain(last_words_);
  }
}

void HangAlarm::Start(const std::string& socket, Collector* collector) {
  watch_ = std::make_unique<HangWatch>(HangWatchOptions{
      .socket = socket,
      .limits = options_.limits,
      .own_only = run_.empty(),
      .place = [this](const std::vector<pid_t>& ranks,
                      std::string* path) { return PlaceFor(ranks, path); },
      .on_notices =
          [collector](const std::vector<WaitNotice>& notices) {
            std::vector<std::pair<uid_t, std::string>> waits;
            for (const WaitNotice& notice : notices) {
              waits.emplace_back(notice.user, notice.sentence);
            }
            collector->SetWaits(std::move(waits));
          },
      .on_hang = [this](const WaitVerdict& verdict,
                        const std::string& directory) { Say(verdict, directory); },
      .on_hang_saved = [this](const WaitVerdict& verdict,
                              const std::string& directory) { React(verdict, directory); },
      .on_problem =
          [](const std::string& problem) {
            if (!Style().quiet) Complain("hang: " + Printable(problem));
          },
      .gather =
          [collector](const std::vector<const RankLook*>& looks) {
            return GatherEvidence(looks, collector);
          }});
}

FileDescriptor HangAlarm::PlaceFor(const std::vector<pid_t>& ranks, std::string* path) {
  *path = run_;
  if (run_.empty()) {
    v1::ControlRequest request;
    request.set_verb(v1::ControlRequest::VERB_STATUS);
    const Result<v1::ControlReply> reply = AskCollector(socket_, request);
    run_of_hang_.clear();
    if (!reply) return {};
    for (const v1::ProcessStatus& process : reply->processes()) {
      if (std::ranges::find(ranks, static_cast<pid_t>(process.pid())) != ranks.end())
        *path = process.run();
    }
  }
  run_of_hang_ = WholePath(*path);
  if (path->empty()) return {};
  return FileDescriptor(::open(path->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

void HangAlarm::Say(const WaitVerdict& verdict, const std::string& directory) const {
  const std::string where = directory.empty() ? "" : " See " + directory;
  const std::string text =
      fmt::format("{} Try: {}.{}", Printable(verdict.sentence), verdict.advice, where);
  if (!options_.report.empty()) {
    const int error =
        AppendLine(options_.report, fmt::format("{} {}\n", ClockText(RealtimeNs()), text));
    if (error == 0) return;
    Complain(fmt::format("--hang-report {}: could not be written: {}; hang: {}", options_.report,
                         std::strerror(error), text));
  } else if (::isatty(STDERR_FILENO) == 1) {
    Complain("hang: " + text);
  }
}

void HangAlarm::React(const WaitVerdict& verdict, const std::string& directory) {
  const std::string sentence = Printable(verdict.sentence);
  // Another job's hang may have been told since this one's directory was made.
  const std::string run = directory.empty()
                              ? run_of_hang_
                              : WholePath(std::filesystem::path(directory).parent_path().string());
  if (!run.empty()) triggers_->OnHang(sentence, run);
  // Of a standing collector each hang is another job's, mostly.
  if (options_.command.empty() || (has_run_ && !run_.empty())) return;
  has_run_ = true;
  options_.command == kKill ? KillJob(sentence) : RunCommand(sentence, directory);
}

void HangAlarm::RunCommand(const std::string& sentence, const std::string& directory) {
  std::string shell = "/bin/sh", flag = "-c", command = options_.command, where = directory;
  char* const words[] = {shell.data(), flag.data(),  command.data(),
                         shell.data(), where.data(), nullptr};
  std::string variable = "RANKTAP_HANG=" + sentence;
  std::vector<char*> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.push_back(*entry);
  }
  environment.push_back(variable.data());
  environment.push_back(nullptr);
  // `run` blocks the signals that it passes on, in all its threads.
  sigset_t none;
  ::sigemptyset(&none);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = -1;
  const int error =
      ::posix_spawn(&child, words[0], nullptr, &attributes, words, environment.data());
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) Complain(fmt::format("--on-hang {}: could not run", options_.command));
}

// The command first: a launcher ends its ranks by itself. A stopped rank, or one that holds its
// interpreter's lock in C, hears no SIGTERM.
void HangAlarm::KillJob(const std::string& sentence) {
  if (!command_.valid()) return;
  killed_for_ = sentence;
  // Before the command ends: its children are then nobody's that we know.
  auto processes = std::make_shared<std::vector<FileDescriptor>>();
  for (const pid_t process : DescendantsOf(::getpid())) {
    processes->emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  }
  killer_ = std::jthread([this, processes] {
    (void)::syscall(SYS_pidfd_send_signal, command_.get(), SIGTERM, nullptr, 0);
    pollfd polled{.fd = command_.get(), .events = POLLIN, .revents = 0};
    (void)::poll(&polled, 1, kTermMs);
    for (const FileDescriptor& process : *processes) {
      (void)::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
    }
  });
}

}  // namespace ranktap::collector
