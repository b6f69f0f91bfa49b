#include "collector/cli/host_roofs.h"

#include <fmt/core.h>

#include <memory>
#include <set>

#include "collector/calibrate/calibrate_host.h"
#include "collector/facts/roofline/roofs.h"
#include "collector/file/owned_file.h"
#include "collector/file/printable.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostBytes = 1 << 20;

Result<HostRoofs> ReadRoofs(const std::string& path) {
  const Result<std::string> text = ReadRegularFile(path, kMostBytes);
  return text ? ParseRoofs(*text) : Result<HostRoofs>(Failure{text.message()});
}

// How many traces of the host have them now.
size_t Tell(const HostRoofs& roofs, const Run& run) {
  const auto kept = std::make_shared<const HostRoofs>(roofs);
  size_t told = 0;
  for (const Trace& trace : run.traces) {
    if (roofs.host.empty() || trace.hello.process().host() != roofs.host) continue;
    KnowHost(kept, trace);
    ++told;
  }
  return told;
}

}  // namespace

void AddHostRoofsOption(Arguments* app, std::string* file) {
  app->Add(
      "--roofs", file,
      "the file of ranktap calibrate with the roofs of a CPU job; else that of the run's host");
}

bool TakeHostRoofs(const std::string& file, const Run& run) {
  std::set<std::string> hosts;
  for (const Trace& trace : run.traces) hosts.insert(trace.hello.process().host());
  if (file.empty()) {
    for (const std::string& host : hosts) {
      const std::string path = RoofsPath(host);
      const Result<HostRoofs> roofs =
          path.empty() ? Result<HostRoofs>(Failure{""}) : ReadRoofs(path);
      if (roofs) Tell(*roofs, run);
    }
    return true;
  }
  const Result<HostRoofs> roofs = ReadRoofs(file);
  if (!roofs) {
    Complain(fmt::format("--roofs {}: {}", Printable(file), Printable(roofs.message())));
    return false;
  }
  if (Tell(*roofs, run) > 0) return true;
  std::string names;
  for (const std::string& host : hosts) names += (names.empty() ? "" : ", ") + host;
  Complain(fmt::format("--roofs {}: it is of {}, and the run is of {}; calibrate there",
                       Printable(file), Printable(roofs->host),
                       names.empty() ? "a host that its file does not name" : Printable(names)));
  return false;
}

}  // namespace ranktap::collector
