#include "collector/launch/run_and_wait.h"

#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace ranktap::collector
