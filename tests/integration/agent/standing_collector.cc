#include "tests/integration/agent/standing_collector.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

extern char** environ;

namespace ranktap::agent_test {

namespace fs = std::filesystem;
using standin_test::BuildPath;

StandingCollector::StandingCollector() {
  std::string pattern = testing::TempDir() + "/collectors.XXXXXX";
  folder_ = mkdtemp(pattern.data());
}

StandingCollector::~StandingCollector() { fs::remove_all(folder_); }

pid_t StandingCollector::StartCollector(const std::vector<std::string>& options) const {
  const std::string program = BuildPath("bin/ranktap"), socket = folder_ + "/socket",
                    root = folder_ + "/runs", spool = folder_ + "/spool";
  std::vector<const char*> arguments = {
      program.c_str(), "collect", "--socket",    socket.c_str(), "-o",
      root.c_str(),    "--spool", spool.c_str(), "--log",        "/dev/null"};
  for (const std::string& option : options) arguments.push_back(option.c_str());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::string log = folder_ + "/collector.err";
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), &actions, nullptr,
                        const_cast<char**>(arguments.data()), environ),
            0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

int StandingCollector::End(pid_t collector, int signal) {
  kill(collector, signal);
  int status = 0;
  waitpid(collector, &status, 0);
  return status;
}

bool StandingCollector::IsServing() const {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (folder_ + "/socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool serving =
      connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(client);
  return serving;
}

standin_test::Environment StandingCollector::Joined() const {
  const std::string agent = BuildPath("lib/libranktap.so");
  return {{"LD_PRELOAD", agent},
          {"CUDA_INJECTION64_PATH", agent},
          {"NVTX_INJECTION64_PATH", agent},
          {"RANKTAP_LEVEL", "kernels"},
          {"RANKTAP_SOCKET", folder_ + "/socket"},
          {"RANKTAP_SPOOL", folder_ + "/spool"}};
}

std::vector<std::string> StandingCollector::Spools() const {
  std::vector<std::string> found;
  if (!fs::exists(folder_ + "/spool")) return found;
  for (const auto& entry : fs::directory_iterator(folder_ + "/spool")) {
    found.push_back(entry.path());
  }
  return found;
}

std::vector<std::string> StandingCollector::Runs() const {
  std::vector<std::string> found;
  const std::string user = folder_ + "/runs/" + std::to_string(geteuid());
  if (!fs::exists(user)) return found;
  for (const auto& entry : fs::directory_iterator(user)) found.push_back(entry.path());
  return found;
}

std::set<std::string> StandingCollector::Growing() const {
  std::set<std::string> found;
  for (const std::string& run : Runs()) {
    for (const auto& entry : fs::directory_iterator(run)) {
      std::error_code gone;
      if (entry.path().extension() == ".part" && entry.file_size(gone) > 4096 && !gone) {
        found.insert(entry.path());
      }
    }
  }
  return found;
}

bool StandingCollector::WaitUntil(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace ranktap::agent_test
