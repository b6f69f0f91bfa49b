// Asks CUPTI what only a GPU can answer; one line of JSON a question. Each is asked in a child with
// an alarm, so that a crash or a hang costs one answer: the line then has what was found before it.
// usage: cupti_facts [--launches N] [--limit-s N] [QUESTION...]
// RANKTAP_CUPTI names the library. Exit status 1: a question was not answered.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/gpu/facts/answer.h"
#include "tests/gpu/facts/client.h"
#include "tests/gpu/facts/questions.h"
#include "tests/workloads/hosts/device_work.h"

namespace ranktap::gpu {
namespace {

struct Question {
  const char* name;
  void (*ask)(int launches);
};
constexpr std::array kQuestions = {
    Question{"cost", &AskCost},
    Question{"correlation", &AskCorrelation},
    Question{"left-bytes", &AskLeftBytes},
    Question{"settings", &AskSettings},
    Question{"clock-client-later", &AskClockClientLater},
    Question{"clock-once", &AskClockOnce},
    Question{"clock-each-session", &AskClockEachSession},
    Question{"clock-realtime-first", &AskClockRealtimeFirst},
    Question{"windows", &AskWindows},
    Question{"second-subscriber", &AskSecondSubscriber},
    Question{"graph-whole", &AskGraphWhole},
    Question{"graph-nodes", &AskGraphNodes},
    Question{"graph-second-session", &AskGraphSecondSession},
    Question{"graph-mode", &AskGraphMode},
    Question{"old-graph-whole", &AskOldGraphWhole},
    Question{"old-graph-nodes", &AskOldGraphNodes},
    Question{"device-pool", &AskDevicePool},
    Question{"late-buffers", &AskLateBuffers},
    Question{"driver-launches", &AskDriverLaunches},
    Question{"second-api", &AskSecondApi},
};

struct Options {
  int launches = 1000;
  unsigned limit_s = 20;
  std::vector<std::string> wanted;

  bool Wants(const char* name) const {
    for (const std::string& one : wanted) {
      if (one == name) return true;
    }
    return wanted.empty();
  }
};

[[noreturn]] void Answer(const Question& question, const Options& options) {
  alarm(options.limit_s);
  start_device(0);
  Launch(10);
  cudaDeviceSynchronize();
  Say("cupti", Cupti().version);
  question.ask(options.launches);
  _exit(0);
}

std::string EndOf(int status) {
  return WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status))
                           : "signal " + std::to_string(WTERMSIG(status));
}

bool Ask(const Question& question, const Options& options) {
  std::printf("{\"question\":\"%s\",", question.name);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) Answer(question, options);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  std::printf("\"ended\":\"%s\"}\n", child > 0 ? EndOf(status).c_str() : "no process");
  std::fflush(stdout);
  return child > 0 && status == 0;
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (has_value && std::strcmp(argv[i], "--launches") == 0) {
      options.launches = std::max(1, std::atoi(argv[++i]));
    } else if (has_value && std::strcmp(argv[i], "--limit-s") == 0) {
      options.limit_s = static_cast<unsigned>(std::max(1, std::atoi(argv[++i])));
    } else {
      options.wanted.emplace_back(argv[i]);
    }
  }
  return options;
}

}  // namespace
}  // namespace ranktap::gpu

int main(int argc, char** argv) {
  using namespace ranktap::gpu;  // NOLINT: main is of it
  const Options options = Parse(argc, argv);
  bool all = true;
  for (const Question& question : kQuestions) {
    if (options.Wants(question.name)) all = Ask(question, options) && all;
  }
  return all ? 0 : 1;
}
