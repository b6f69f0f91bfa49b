// `ranktap`: finds the verb.
#include <fmt/core.h>
#include <google/protobuf/stubs/logging.h>
#include <malloc.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "collector/cli/command.h"
#include "collector/version.h"

namespace ranktap::collector {
namespace {

void PrintHelp() {
  std::puts("ranktap: where the time of a training job goes, on every rank, unmodified\n");
  std::puts("usage: ranktap COMMAND [options]\n");
  for (const Command& command : AllCommands()) {
    std::printf("  %-8s %s\n", std::string(command.name).c_str(),
                std::string(command.help).c_str());
  }
  std::puts("\n  ranktap COMMAND --help   the command's options");
  std::puts("  ranktap --version");
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    PrintHelp();
    return kWrongUsage;
  }
  if (arguments[0] == "--version") {
    std::printf("ranktap %s\n", kVersion);
    return kSuccess;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    PrintHelp();
    return kSuccess;
  }
  for (const Command& command : AllCommands()) {
    if (command.name == arguments[0]) {
      return command.run({arguments.begin() + 1, arguments.end()});
    }
  }
  Complain(fmt::format("no command '{}'; ranktap --help lists them", arguments[0]));
  return kWrongUsage;
}

}  // namespace

}  // namespace ranktap::collector

int main(int argc, char** argv) {
  // libprotobuf complains on stderr, which is the job's.
  google::protobuf::SetLogHandler(nullptr);
  // Blocks come and go by the megabyte: each its own mapping, given back at once. Left to itself
  // malloc would keep them.
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  try {
    return ranktap::collector::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    ranktap::collector::Complain(fmt::format("internal error: {}", error.what()));
    return ranktap::collector::kFailure;
  }
}
