#include "collector/launch/run_and_wait.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "collector/file/file_descriptor.h"
#include "collector/launch/child_process.h"

namespace ranktap::collector {

Result<int> RunAndWait(const std::vector<std::string>& command, int output) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // A shell's Ctrl-C is for the command.
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &ignore, &before);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGINT);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, words[0], &files, &attributes, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  int status = 0;
  while (error == 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  ::sigaction(SIGINT, &before, nullptr);
  if (error != 0) return SystemFailure(fmt::format("{}: could not run", command[0]), error);
  return ExitStatusOf(status);
}

Result<ProgramOutput> RunAndRead(const std::vector<std::string>& command, int most_ms,
                                 size_t most_bytes) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int output[2], complaints[2];
  if (::pipe2(output, O_CLOEXEC) != 0) return SystemFailure("pipe", errno);
  FileDescriptor output_read(output[0]), output_write(output[1]);
  if (::pipe2(complaints, O_CLOEXEC) != 0) return SystemFailure("pipe", errno);
  FileDescriptor complaints_read(complaints[0]), complaints_write(complaints[1]);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, output[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, complaints[1], STDERR_FILENO);
  // A group of its own, which is killed with what the program started.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, words[0], &files, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return SystemFailure(fmt::format("{}: could not run", command[0]), error);
  output_write = FileDescriptor();
  complaints_write = FileDescriptor();
  ProgramOutput result;
  std::string problem;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(most_ms);
  pollfd polled[] = {{output[0], POLLIN, 0}, {complaints[0], POLLIN, 0}};
  while (problem.empty() && (polled[0].fd >= 0 || polled[1].fd >= 0)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      problem = fmt::format("it took longer than {} s", most_ms / 1000);
      break;
    }
    if (::poll(polled, 2, static_cast<int>(left.count())) <= 0) continue;
    for (pollfd& from : polled) {
      if (from.fd < 0 || from.revents == 0) continue;
      char buffer[65536];
      const ssize_t bytes = ::read(from.fd, buffer, sizeof(buffer));
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0) {
        from.fd = -1;
        continue;
      }
      (&from == &polled[0] ? result.output : result.complaints)
          .append(buffer, static_cast<size_t>(bytes));
      if (result.output.size() + result.complaints.size() > most_bytes) {
        problem = fmt::format("its answer is longer than {} MiB", most_bytes >> 20);
      }
    }
  }
  if (!problem.empty()) ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!problem.empty()) return Failure{problem};
  result.status = ExitStatusOf(status);
  return result;
}

}  // namespace ranktap::collector
