// What a process that uses NVTX pays for being traced: fork, start and end, and resident memory;
// each bare and under `ranktap run --level ranges` in turn. Usage: nvtx_process_bench RANKTAP; and
// of itself: nvtx_process_bench fork|exec|resident|one
#include <nvtx3/nvToolsExt.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/figure.h"

extern char** environ;

namespace {

constexpr int kTimes = 100;

void Mark() {
  nvtxRangePushA("range");
  nvtxRangePop();
}

double MedianUs(void (*once)()) {
  std::vector<double> us;
  for (int i = 0; i < kTimes; ++i) {
    const double start = ranktap::bench::NowNs();
    once();
    us.push_back((ranktap::bench::NowNs() - start) / 1000);
  }
  std::ranges::nth_element(us, us.begin() + kTimes / 2);
  return us[kTimes / 2];
}

void ForkOnce() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
}

void ExecOnce() {
  char program[] = "/proc/self/exe", mode[] = "one";
  char* arguments[] = {program, mode, nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, program, nullptr, nullptr, arguments, environ) == 0) {
    waitpid(child, nullptr, 0);
  }
}

double ResidentMib() {
  char line[256];
  long kib = 0;
  std::FILE* const file = std::fopen("/proc/self/status", "r");
  while (file != nullptr && std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::strncmp(line, "VmRSS:", 6) == 0) kib = std::strtol(line + 6, nullptr, 10);
  }
  if (file != nullptr) std::fclose(file);
  return static_cast<double>(kib) / 1024;
}

// Some rounds of the sender before: it allocates ahead.
double ValueOf(const std::string& mode) {
  if (mode == "exec") return MedianUs(&ExecOnce);
  for (int i = 0; i < 10; ++i) Mark();
  sleep(1);
  return mode == "fork" ? MedianUs(&ForkOnce) : ResidentMib();
}

double ValueFrom(const std::string& command) {
  double value = 0;
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr || std::fscanf(pipe, "%lf", &value) != 1) {
    std::fprintf(stderr, "nvtx_process_bench: no value from %s\n", command.c_str());
    std::exit(1);
  }
  pclose(pipe);
  return value;
}

struct Mode {
  const char *mode, *name, *unit;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string mode = argv[1];
  if (mode == "one") return Mark(), 0;
  if (mode.find('/') == mode.npos) return std::printf("%f\n", ValueOf(mode)) > 0 ? 0 : 1;
  char folder[] = "/tmp/nvtx_process.XXXXXX", self[4096] = {};
  if (mkdtemp(folder) == nullptr || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
    return 1;
  for (const Mode& what : {Mode{"fork", "fork and wait, after the first NVTX call", "us"},
                           Mode{"exec", "spawn, one NVTX call, and the end", "us"},
                           Mode{"resident", "resident memory after 10 ranges", "MiB"}}) {
    const std::string program = std::string(self) + " " + what.mode;
    const double bare = ValueFrom(program);
    const double traced = ValueFrom(mode + " run --quiet --level ranges -o " + folder + "/" +
                                    what.mode + " -- " + program);
    ranktap::bench::Print({.name = what.name,
                           .value = traced,
                           .unit = what.unit,
                           .floor_name = "the bare process",
                           .floor = bare,
                           .target = 0});
  }
  return std::system((std::string("rm -rf ") + folder).c_str());
}
