#include "tests/integration/hostile/differential_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "collector/trace/load/run_reader.h"
#include "collector/trace/load/trace_check.h"
#include "tests/integration/standin/simulated_run.h"

namespace ranktap::hostile_test {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Become(const Command& command, const Variables& variables,
                         const std::string& folder) {
  setsid();
  for (const auto& [descriptor, name] : {std::pair(1, "/stdout"), std::pair(2, "/stderr")}) {
    const int file = open((folder + name).c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(file, descriptor);
    close(file);
  }
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

std::string MakeFolder() {
  std::string pattern = testing::TempDir() + "/hostile.XXXXXX";
  return mkdtemp(pattern.data());
}

}  // namespace

Seen Watch(const Command& command, const Variables& variables, double deadline_s) {
  Seen seen;
  const std::string folder = MakeFolder();
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) Become(command, variables, folder);
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  pollfd ending{.fd = handle, .events = POLLIN, .revents = 0};
  seen.ended = poll(&ending, 1, static_cast<int>(deadline_s * 1000)) == 1;
  // The session's other processes too: a child that hangs must not outlive the test.
  kill(-child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(handle);
  seen.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  seen.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  seen.output = standin_test::ReadFile(folder + "/stdout");
  seen.errors = standin_test::ReadFile(folder + "/stderr");
  fs::remove_all(folder);
  return seen;
}

std::string ProblemsOf(const std::string& path) {
  const collector::Result<collector::RunCheck> check = collector::CheckRun(path);
  if (!check) return check.message() + "\n";
  std::string text;
  for (const std::string& problem : check->problems) text += problem + "\n";
  for (const collector::TraceCheck& trace : check->traces) {
    for (const collector::Damage& damage : trace.problems) text += damage.what + "\n";
  }
  return text;
}

std::string Corner::Name() const {
  return level + (loaded_by == LoadedBy::kPreload ? ", preload" : ", variables");
}

std::vector<Corner> Corners() {
  const char* const all = getenv("RANKTAP_HOSTILE_ALL");
  if (all == nullptr || std::string(all) != "1") {
    return {{"full", LoadedBy::kPreload}, {"dormant", LoadedBy::kVariables}};
  }
  std::vector<Corner> corners;
  for (const char* level : {"dormant", "ranges", "kernels", "full"}) {
    for (const LoadedBy loaded_by : {LoadedBy::kPreload, LoadedBy::kVariables})
      corners.push_back({level, loaded_by});
  }
  return corners;
}

Traced Trace(const Command& command, const std::string& level, LoadedBy loaded_by,
             double deadline_s, const Variables& variables) {
  const std::string folder = MakeFolder();
  Command whole = {standin_test::BuildPath("bin/ranktap"),
                   "run",
                   "--quiet",
                   "-o",
                   folder + "/run",
                   "--level",
                   level};
  if (loaded_by == LoadedBy::kVariables) whole.push_back("--no-preload");
  whole.push_back("--");
  whole.insert(whole.end(), command.begin(), command.end());
  Traced traced;
  traced.seen = Watch(whole, variables, deadline_s);
  traced.problems = ProblemsOf(folder + "/run");
  if (collector::Result<collector::Run> run = collector::LoadRun(folder + "/run")) {
    traced.traces = run->traces.size();
    for (const collector::Trace& trace : run->traces) {
      traced.ranges += trace.ranges.size();
      traced.notes.insert(traced.notes.end(), trace.info.notes.begin(), trace.info.notes.end());
      for (const auto& gap : trace.gaps) traced.gaps.push_back(gap.detail);
    }
  }
  fs::remove_all(folder);
  return traced;
}

std::string Differences(const Seen& bare, const Seen& traced, double slack_s) {
  std::string text;
  const auto tell = [&text](const std::string& what, const std::string& is,
                            const std::string& was) {
    if (is != was) text += what + " is '" + is + "', bare '" + was + "'\n";
  };
  if (!traced.ended) text += "it hung until it was killed\n";
  tell("status", std::to_string(traced.status), std::to_string(bare.status));
  tell("stdout", traced.output, bare.output);
  tell("stderr", traced.errors, bare.errors);
  if (traced.seconds > bare.seconds + slack_s) {
    text += "it took " + std::to_string(traced.seconds) + " s, bare " +
            std::to_string(bare.seconds) + "\n";
  }
  return text;
}

}  // namespace ranktap::hostile_test
