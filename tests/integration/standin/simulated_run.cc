#include "tests/integration/standin/simulated_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ranktap::standin_test {
namespace {

namespace fs = std::filesystem;

void Redirect(int descriptor, const std::string& path) {
  int file = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  dup2(file, descriptor);
  close(file);
}

[[noreturn]] void Become(const std::vector<std::string>& command, const Environment& environment,
                         const std::string& folder) {
  Redirect(STDOUT_FILENO, folder + "/stdout");
  Redirect(STDERR_FILENO, folder + "/stderr");
  setenv("LD_LIBRARY_PATH", BuildPath("fakes").c_str(), 1);
  setenv("RANKTAP_STANDIN_TRUTH", folder.c_str(), 1);
  setenv("PROBE_OUT", folder.c_str(), 1);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string BuildPath(const std::string& relative) {
  return std::string(RANKTAP_BUILD_DIR) + "/" + relative;
}

SimulatedRun::SimulatedRun(const std::vector<std::string>& command,
                           const Environment& environment) {
  std::string pattern = testing::TempDir() + "/standin.XXXXXX";
  folder_ = mkdtemp(pattern.data());
  pid_t child = fork();
  if (child == 0) Become(command, environment, folder_);
  waitpid(child, &status_, 0);
  output_ = ReadFile(folder_ + "/stdout");
  errors_ = ReadFile(folder_ + "/stderr");
}

SimulatedRun::~SimulatedRun() { fs::remove_all(folder_); }

bool SimulatedRun::exited_with(int code) const {
  return WIFEXITED(status_) && WEXITSTATUS(status_) == code;
}

std::vector<Json> SimulatedRun::Read(const std::string& stem, int pid,
                                     const std::string& type) const {
  std::string text = ReadFile(folder_ + "/" + stem + "." + std::to_string(pid) + ".jsonl");
  // A process that was killed leaves the zeros of its last chunk.
  text.resize(std::min(text.find('\0'), text.size()));
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    // Most lines are of other types, and to parse one takes long.
    if (line.find('"' + type + '"') == std::string::npos && !type.empty()) continue;
    Json parsed = Json::parse(line);
    if (type.empty() || parsed["type"] == type) lines.push_back(std::move(parsed));
  }
  return lines;
}

std::vector<Json> SimulatedRun::Truth(int pid, const std::string& type) const {
  return Read("truth", pid, type);
}

std::vector<Json> SimulatedRun::Told(int pid, const std::string& type) const {
  return Read("probe", pid, type);
}

std::vector<int> SimulatedRun::Processes() const {
  std::vector<int> pids;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    std::string name = entry.path().filename();
    if (name.rfind("truth.", 0) == 0) pids.push_back(std::atoi(name.c_str() + 6));
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace ranktap::standin_test
