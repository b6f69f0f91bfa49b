// The command that `ranktap run` runs: started as a shell would start it, its signals passed
// through, its end waited for. One at a time; owns no thread.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/file/file_descriptor.h"

namespace ranktap::collector {

// Exit statuses of shells.
inline constexpr int kCannotExecute = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kSignalled = 128;

// The file that a command name stands for, by execvp's rules. `status`: 0, kNotFound or
// kCannotExecute, the latter two with a message.
struct FoundCommand {
  int status = 0;
  std::string path;
  std::string message;
};
FoundCommand FindCommand(const std::string& name);

// Takes it out of the lists of folders in our environment (PATH, LD_LIBRARY_PATH, PYTHONPATH): we
// do not look for a program of our own where somebody else's files may lie.
void LeaveOutTheCurrentFolder();

// A process that ignores SIGCHLD has its children's statuses thrown away, and that is inherited.
// From here on ours are kept; commands get the signal as it was. Call it first.
void MakeChildrenWaitable();

using Variables = std::vector<std::pair<std::string, std::string>>;

class ChildProcess {
 public:
  // Blocks the signals that are passed through (in this thread and those it starts), so that they
  // wait for Wait.
  ChildProcess();

  // False with errno when the command cannot be executed. Before any thread is started.
  [[nodiscard]] bool Start(const std::string& path, const std::vector<std::string>& command,
                           const Variables& variables);

  // `handle` instead of passing this signal on, on the thread that waits. Before Wait.
  void Keep(int signal, std::function<void()> handle) { kept_[signal] = std::move(handle); }

  // Until the command has ended: its wait status. As the first process of a PID namespace it takes
  // the orphans' statuses meanwhile, which are nobody else's.
  int Wait();

  pid_t pid() const { return pid_; }
  // When somebody first asked this job to end, by a signal to us or to all of the terminal's;
  // CLOCK_MONOTONIC. 0: nobody did.
  uint64_t asked_to_end_ns() const { return asked_to_end_ns_; }

 private:
  void PassSignals();
  std::optional<int> TakeStatus() const;

  std::map<int, std::function<void()>> kept_;
  sigset_t passed_;
  sigset_t before_;
  FileDescriptor signals_;
  pid_t pid_ = -1;
  uint64_t asked_to_end_ns_ = 0;
};

// Replaces this process by the command; returns only when that fails.
void Become(const std::string& path, const std::vector<std::string>& command);

// As a shell reports it: the command's own status, or 128 + the signal's number.
int ExitStatusOf(int wait_status);

}  // namespace ranktap::collector
