#include "collector/cli/arguments.h"

#include <algorithm>
#include <cstdio>

#include "collector/cli/command.h"

namespace ranktap::collector {

std::optional<int> ParseArguments(CLI::App* app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app->parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app->help().c_str(), stdout);
    return kSuccess;
  } catch (const CLI::ParseError& error) {
    Complain(error.what());
    std::fprintf(stderr, "try: %s --help\n", app->get_name().c_str());
    return kWrongUsage;
  }
}

}  // namespace ranktap::collector
