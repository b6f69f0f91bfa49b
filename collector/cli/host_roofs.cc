#include "collector/cli/host_roofs.h"

#include <fmt/core.h>

#include <memory>
#include <set>

#include "collector/calibrate/calibrate_device.h"
#include "collector/calibrate/calibrate_host.h"
#include "collector/facts/roofline/roofs.h"
#include "collector/file/owned_file.h"
#include "collector/file/printable.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostRoofBytes = 1 << 20;

bool IsOf(const DeviceRoofs& roofs, const Trace& trace) {
  const auto& devices = trace.hello.devices();
  return trace.hello.process().host() == roofs.host &&
         std::any_of(devices.begin(), devices.end(),
                     [&roofs](const v1::Device& device) { return IsOfDevice(roofs, device); });
}

// How many traces are of one of these devices.
size_t TellDevices(const std::vector<DeviceRoofs>& roofs, const Run& run) {
  size_t told = 0;
  for (const Trace& trace : run.traces) {
    auto own = std::make_shared<std::vector<DeviceRoofs>>();
    for (const DeviceRoofs& of : roofs) {
      if (IsOf(of, trace)) own->push_back(of);
    }
    if (own->empty()) continue;
    KnowDevices(std::move(own), trace);
    ++told;
  }
  return told;
}

// Where calibrate writes them. One that cannot be read is none: nobody named it.
void TakeOwnDevices(const Run& run) {
  std::set<std::string> paths;
  for (const Trace& trace : run.traces) {
    for (const v1::Device& device : trace.hello.devices()) {
      paths.insert(DeviceRoofsPath(trace.hello.process().host(), UuidOf(device)));
    }
  }
  std::vector<DeviceRoofs> all;
  for (const std::string& path : paths) {
    const Result<std::string> text = ReadRegularFile(path, kMostRoofBytes);
    Result<DeviceRoofs> roofs =
        text ? ParseDeviceRoofs(*text) : Result<DeviceRoofs>(Failure{text.message()});
    if (roofs) all.push_back(std::move(*roofs));
  }
  TellDevices(all, run);
}

// "A100 in box, H100 in box"
std::string DevicesOf(const Run& run) {
  std::set<std::string> names;
  for (const Trace& trace : run.traces) {
    for (const v1::Device& device : trace.hello.devices()) {
      names.insert(fmt::format("{} in {}", device.name(), trace.hello.process().host()));
    }
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "no device" : Printable(text);
}

bool TakeDeviceFile(const std::string& file, const std::string& text, const Run& run) {
  const Result<DeviceRoofs> roofs = ParseDeviceRoofs(text);
  if (!roofs) {
    Complain(fmt::format("--roofs {}: {}", Printable(file), roofs.message()));
    return false;
  }
  if (TellDevices({*roofs}, run) > 0) return true;
  Complain(
      fmt::format("--roofs {}: it is of {} in {}, UUID {}, and the run is of {}; calibrate there",
                  Printable(file), Printable(roofs->name), Printable(roofs->host),
                  Printable(roofs->uuid), DevicesOf(run)));
  return false;
}

Result<HostRoofs> ReadRoofs(const std::string& path) {
  const Result<std::string> text = ReadRegularFile(path, kMostRoofBytes);
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
      "the file of ranktap calibrate with the roofs of a CPU job or of a GPU; else those of the "
      "run's hosts");
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
    TakeOwnDevices(run);
    return true;
  }
  const Result<std::string> text = ReadRegularFile(file, kMostRoofBytes);
  if (text && IsDeviceRoofs(*text)) return TakeDeviceFile(file, *text, run);
  const Result<HostRoofs> roofs =
      text ? ParseRoofs(*text) : Result<HostRoofs>(Failure{text.message()});
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
