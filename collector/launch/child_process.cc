#include "collector/launch/child_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace ranktap::collector {
namespace {

constexpr std::array kPassedSignals = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                       SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

bool IsFile(const std::string& path, bool* executable) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return false;
  *executable = ::access(path.c_str(), X_OK) == 0;
  return true;
}

uint64_t MonotonicNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// SIGCHLD's action when we were started.
struct sigaction children_before {};

void RestoreChildSignal() {
  if (children_before.sa_handler == SIG_IGN) ::sigaction(SIGCHLD, &children_before, nullptr);
}

bool IsInit() { return ::getpid() == 1; }

// "a::.:/b" -> "/b". A named folder in Python's path stays.
std::string WithoutCurrentFolder(std::string_view list, bool only_absolute) {
  std::string kept;
  while (!list.empty()) {
    const std::string_view folder = list.substr(0, list.find(':'));
    list.remove_prefix(std::min(list.size(), folder.size() + 1));
    const bool is_kept = folder.starts_with('/') ||
                         (!only_absolute && !folder.empty() && folder != "." && folder != "./");
    if (is_kept) kept.append(kept.empty() ? "" : ":").append(folder);
  }
  return kept;
}

std::string Quoted(const std::string& text) { return "'" + text + "'"; }

// A profiler holds four descriptors a rank; the command gets the limit we were started with.
rlimit RaiseFileLimit() {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit raised = before;
  raised.rlim_cur = raised.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

// Environment with `variables` in place of what they name.
std::vector<std::string> MergedEnvironment(const Variables& variables) {
  std::vector<std::string> merged;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(variables.begin(), variables.end(),
                                      [&](const auto& variable) { return variable.first == name; });
    if (!replaced) merged.emplace_back(text);
  }
  for (const auto& [name, value] : variables) merged.push_back(fmt::format("{}={}", name, value));
  return merged;
}

}  // namespace

FoundCommand FindCommand(const std::string& name) {
  FoundCommand found;
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name);
  } else {
    const char* const path = ::getenv("PATH");
    std::string_view list = path != nullptr ? path : "/bin:/usr/bin";
    for (bool more = true; more;) {
      const size_t end = std::min(list.find(':'), list.size());
      const std::string directory(list.substr(0, end));
      candidates.push_back(directory.empty() ? "./" + name : fmt::format("{}/{}", directory, name));
      more = end < list.size();
      list.remove_prefix(more ? end + 1 : end);
    }
  }
  bool any = false;
  for (const std::string& candidate : candidates) {
    bool executable = false;
    if (!IsFile(candidate, &executable)) continue;
    any = true;
    if (!executable) continue;
    found.path = candidate;
    return found;
  }
  found.status = any ? kCannotExecute : kNotFound;
  struct stat status {};
  if (!any && name.find('/') != std::string::npos && ::stat(name.c_str(), &status) == 0) {
    found.status = kCannotExecute;
    found.message = fmt::format("{} is a directory", Quoted(name));
  } else if (any) {
    found.message =
        fmt::format("{} is not executable; chmod +x it, or name its interpreter", Quoted(name));
  } else {
    found.message = fmt::format("command not found: {}", Quoted(name));
  }
  return found;
}

void LeaveOutTheCurrentFolder() {
  for (const char* const name : {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH"}) {
    const char* const list = ::getenv(name);
    if (list == nullptr) continue;
    const std::string kept = WithoutCurrentFolder(list, std::string_view(name) != "PYTHONPATH");
    // An empty list is the current folder again.
    kept.empty() ? ::unsetenv(name) : ::setenv(name, kept.c_str(), 1);
  }
}

void MakeChildrenWaitable() {
  struct sigaction waited {};
  waited.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &waited, &children_before);
}

ChildProcess::ChildProcess() {
  ::sigemptyset(&passed_);
  if (IsInit()) ::sigaddset(&passed_, SIGCHLD);  // of orphans; it is never sent on
  for (const int signal : kPassedSignals) ::sigaddset(&passed_, signal);
  ::sigprocmask(SIG_BLOCK, &passed_, &before_);
  signals_.Reset(::signalfd(-1, &passed_, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool ChildProcess::Start(const std::string& path, const std::vector<std::string>& command,
                         const Variables& variables) {
  const std::vector<std::string> environment = MergedEnvironment(variables);
  const std::vector<char*> arguments = Pointers(command), entries = Pointers(environment);
  // Writing to a reader that left must not end us before the command's status is known.
  struct sigaction ignore {
  }, pipe_before{}, size_before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_before);
  ::sigaction(SIGXFSZ, &ignore, &size_before);
  const rlimit files_before = RaiseFileLimit();
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return false;
  pid_ = ::fork();
  if (pid_ == 0) {
    RestoreChildSignal();
    ::sigaction(SIGPIPE, &pipe_before, nullptr);
    ::sigaction(SIGXFSZ, &size_before, nullptr);
    ::setrlimit(RLIMIT_NOFILE, &files_before);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    ::execve(path.c_str(), arguments.data(), entries.data());
    // A script without a first line is the shell's, as execvp has it.
    if (errno == ENOEXEC) {
      std::vector<char*> shell = {const_cast<char*>("/bin/sh"), const_cast<char*>(path.c_str())};
      shell.insert(shell.end(), arguments.begin() + 1, arguments.end());
      ::execve("/bin/sh", shell.data(), entries.data());
    }
    const int error = errno;
    (void)!::write(report[1], &error, sizeof(error));
    ::_exit(kCannotExecute);
  }
  const int fork_error = errno;
  ::close(report[1]);
  int error = pid_ < 0 ? fork_error : 0;
  while (pid_ > 0 && ::read(report[0], &error, sizeof(error)) < 0 && errno == EINTR) {
  }
  ::close(report[0]);
  if (error == 0) return true;
  if (pid_ > 0) (void)::waitpid(pid_, nullptr, 0);
  errno = error;
  return false;
}

// The terminal sends its signals to the whole foreground group, so the command has had those; what
// a process sent to us alone is passed on.
void ChildProcess::PassSignals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    const bool from_kernel = info.ssi_code > 0;
    if (const auto kept = kept_.find(signal); kept != kept_.end()) {
      kept->second();
      continue;
    }
    const bool ends =
        signal == SIGTERM || signal == SIGINT || signal == SIGQUIT || signal == SIGHUP;
    if (ends && asked_to_end_ns_ == 0) asked_to_end_ns_ = MonotonicNs();
    if (!from_kernel && signal != SIGCHLD) {
      (void)::kill(pid_, signal);
    }
  }
}

std::optional<int> ChildProcess::TakeStatus() const {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(IsInit() ? -1 : pid_, &status, WNOHANG);
    if (ended == pid_) return status;
    // Nobody else waits for our children; if somebody does, it ended and we do not know how.
    if (ended < 0 && errno == ECHILD) return W_EXITCODE(kCannotExecute, 0);
    if (ended <= 0) return std::nullopt;
  }
}

int ChildProcess::Wait() {
  const FileDescriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  // Without pidfds (before Linux 5.3) the end is noticed a little later.
  constexpr int kPollMs = 20;
  for (;;) {
    pollfd polled[2] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                        {.fd = pidfd.get(), .events = POLLIN, .revents = 0}};
    (void)::poll(polled, 2, pidfd.valid() ? -1 : kPollMs);
    PassSignals();
    if (const std::optional<int> status = TakeStatus()) return *status;
  }
}

void Become(const std::string& path, const std::vector<std::string>& command) {
  RestoreChildSignal();
  const std::vector<char*> arguments = Pointers(command);
  ::execv(path.c_str(), arguments.data());
  if (errno == ENOEXEC) {
    std::vector<char*> shell = {const_cast<char*>("/bin/sh"), const_cast<char*>(path.c_str())};
    shell.insert(shell.end(), arguments.begin() + 1, arguments.end());
    ::execv("/bin/sh", shell.data());
  }
}

int ExitStatusOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? kSignalled + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace ranktap::collector
