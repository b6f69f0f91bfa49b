#include "collector/terminal/pager.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "collector/report/text/terminal.h"
#include "collector/terminal/output_style.h"

namespace ranktap::collector {
namespace {

unsigned long paged_width = 0;

bool IsInPath(const std::string& program) {
  const char* const path = ::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const size_t colon = std::min(folders.find(':'), folders.size());
    if (::access((folders.substr(0, colon) + "/" + program).c_str(), X_OK) == 0) return true;
    folders.erase(0, colon + 1);
  }
  return false;
}

// "": none.
std::string PagerCommand() {
  if (Style().quiet || ::isatty(STDOUT_FILENO) != 1) return "";
  const char* const chosen = ::getenv("PAGER");
  if (chosen != nullptr) return std::string_view(chosen) == "cat" ? "" : chosen;
  return IsInPath("less") ? "less -FRX" : "";
}

}  // namespace

Pager::Pager() {
  const std::string command = PagerCommand();
  int ends[2];
  if (command.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return;
  std::fflush(stdout);
  const unsigned long width = OutputWidth(STDOUT_FILENO);
  const int process = ::fork();
  if (process == 0) {
    ::dup2(ends[0], STDIN_FILENO);
    // A $PAGER of "less" alone gets what git gives it: end at once where all fits, keep colours.
    ::setenv("LESS", "FRX", 0);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[0]);
  if (process > 0) {
    // Left early, the pager reads no more: the rest is not worth a signal.
    ::signal(SIGPIPE, SIG_IGN);
    terminal_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    ::dup2(ends[1], STDOUT_FILENO);
    process_ = process;
    paged_width = width;
    Style().is_paged = true;
  }
  ::close(ends[1]);
}

Pager::~Pager() {
  if (process_ < 0) return;
  std::fflush(stdout);
  ::dup2(terminal_, STDOUT_FILENO);
  ::close(terminal_);
  Style().is_paged = false;
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

unsigned long ScreenWidth() { return Style().is_paged ? paged_width : OutputWidth(STDOUT_FILENO); }

}  // namespace ranktap::collector
