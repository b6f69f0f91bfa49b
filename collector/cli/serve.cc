// `ranktap serve RUN|DIR`: the page of each run, for the browser of the person who started it.
#include <fmt/core.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>

#include "collector/cli/command.h"
#include "collector/cli/compared_runs.h"
#include "collector/cli/served_runs.h"
#include "collector/file/run_info.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/trace/large_blocks.h"

namespace ranktap::collector {
namespace {

// Empty: the kernel gives no random bytes.
std::string MakeSecret() {
  std::array<char, 16> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != ssize_t{bytes.size()}) return {};
  return ToHex({bytes.data(), bytes.size()});
}

}  // namespace

int ServeCommand(const std::vector<std::string>& arguments) {
  KeepLargeBlocks();
  std::string root, baselines = kBaselinesFolder;
  uint32_t port = 0;
  Arguments app("Shows runs in your browser, on 127.0.0.1 alone, until it is interrupted.",
                "ranktap serve");
  app.Add("RUN|DIR", &root, "a run, or a folder of runs").Required();
  app.Add("--baselines", &baselines,
          "folder of ranktap baseline, whose names the list shows; that in DIR counts, too")
      .ShowsDefault();
  app.Add("--port", &port, "port on 127.0.0.1; 0: any that is free").From(0, 65535).ShowsDefault();
  if (const auto status = app.Parse(arguments)) return *status;
  if (::access(root.c_str(), R_OK) != 0) {
    return Complained(fmt::format("{}: it does not exist, or you may not read it", root), kFailure);
  }
  const std::string secret = MakeSecret();
  if (secret.empty()) return Complained("no random bytes from the kernel", kFailure);
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stops, signal);
  ::pthread_sigmask(SIG_BLOCK, &stops, nullptr);  // before the server's threads are there
  ServedRuns runs(root, baselines, secret);
  const auto server =
      HttpServer::Listen(static_cast<uint16_t>(port),
                         [&runs](const HttpRequest& request) { return runs.Answer(request); });
  if (!server) return Complained(server.message(), kFailure);
  std::printf("http://127.0.0.1:%u/%s/\n", (*server)->port(), secret.c_str());
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&stops, &signal);
  if (!(*server)->Stop()) ::_exit(kSuccess);  // a page of hours is not worth the wait
  return kSuccess;
}

}  // namespace ranktap::collector
