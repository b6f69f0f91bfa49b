// `ranktap`: finds the verb.
#include <fmt/core.h>
#include <google/protobuf/stubs/logging.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "collector/cli/command.h"
#include "collector/cli/help_topic.h"
#include "collector/cli/meant_command.h"
#include "collector/doctor/cupti_trial.h"
#include "collector/launch/child_process.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/output_style.h"
#include "collector/terminal/report_help.h"
#include "collector/version.h"

namespace ranktap::collector {
namespace {

void PrintHelp() {
  std::puts("ranktap: where the time of a training job goes, on every rank, unmodified\n");
  std::puts("usage: ranktap COMMAND [options]\n");
  for (const Command& command : AllCommands()) {
    std::printf("  %-13s  %s\n", std::string(command.name).c_str(),
                std::string(command.help).c_str());
  }
  std::printf("\n%s\n", FirstReportsHelp().c_str());
  std::puts("  ranktap COMMAND --help   the command's options, and two examples");
  std::puts(
      "  ranktap help TOPIC       a page of the documentation; `ranktap help topics` lists them");
  std::puts("  ranktap --version");
}

bool IsCommand(const std::string& word) {
  return std::ranges::find(AllCommands(), word, &Command::name) != AllCommands().end();
}

// The options before the verb, which every verb has too.
bool TakeStyle(std::vector<std::string>* arguments) {
  while (!arguments->empty()) {
    std::string word = arguments->front();
    size_t used = 1;
    if (word == "--color" && arguments->size() > 1) {
      word += "=" + (*arguments)[1];
      used = 2;
    }
    if (word == "--quiet") {
      Style().quiet = true;
    } else if (word == "--color=auto" || word == "--color=always" || word == "--color=never") {
      Style().color = word.substr(word.find('=') + 1);
    } else {
      if (!word.starts_with("--color")) return true;
      Complain("--color is auto, always or never");
      return false;
    }
    arguments->erase(arguments->begin(), arguments->begin() + static_cast<ptrdiff_t>(used));
  }
  return true;
}

int Main(std::vector<std::string> arguments) {
  if (!TakeStyle(&arguments)) return kWrongUsage;
  if (arguments.empty()) {
    PrintHelp();
    return kWrongUsage;
  }
  if (arguments[0] == "--version" || arguments[0] == "-V" || arguments[0] == "-v" ||
      arguments[0] == "version") {
    std::printf("ranktap %s\n", kVersion);
    return kSuccess;
  }
  // `ranktap help run`
  if (arguments[0] == "help" && arguments.size() > 1) {
    if (!IsCommand(arguments[1])) return PrintTopic(arguments[1]);
    arguments = {arguments[1], "--help"};
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    PrintHelp();
    return kSuccess;
  }
  // Collectors' own.
  if (arguments[0] == "try-cupti") return TryCuptiCommand({arguments.begin() + 1, arguments.end()});
  for (const Command& command : AllCommands()) {
    if (command.name == arguments[0]) {
      // `run` gives its command what the shell would; what others start is ours.
      if (command.name != "run") LeaveOutTheCurrentFolder();
      return command.run({arguments.begin() + 1, arguments.end()});
    }
  }
  return Complained(NoCommand(arguments), kWrongUsage);
}

}  // namespace

}  // namespace ranktap::collector

int main(int argc, char** argv) {
  // libprotobuf complains on stderr, which is the job's.
  google::protobuf::SetLogHandler(nullptr);
  ranktap::collector::MakeChildrenWaitable();
  // Blocks come and go by the megabyte: each its own mapping, given back at once. Left to itself
  // malloc would keep them.
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  try {
    return ranktap::collector::Main({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    ranktap::collector::Complain(
        "not enough memory for this: the limit (ulimit -v, the container's) is too low for the "
        "files that are named, or one of them unpacks to more than there is");
    return ranktap::collector::kFailure;
  } catch (const std::exception& error) {
    ranktap::collector::Complain(fmt::format("internal error: {}", error.what()));
    return ranktap::collector::kFailure;
  }
}
