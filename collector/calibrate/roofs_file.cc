#include <cstdlib>

#include "collector/calibrate/calibrate_device.h"
#include "collector/calibrate/calibrate_host.h"
#include "collector/file/json.h"

namespace ranktap::collector {
namespace {

Json RateText(const MeasuredRate& one, const MeasuredRate& all) {
  return {{"one_core", one.rate},
          {"one_core_spread_percent", one.spread_percent},
          {"all_cores", all.rate},
          {"all_cores_spread_percent", all.spread_percent}};
}

double Number(const Json& of, const char* name) {
  const Json& found = of[name];
  return found.is_number() ? found.get<double>() : 0;
}

Json Rows(const Json& of, const char* name) {
  const Json& found = of[name];
  return found.is_array() ? found : Json::array();
}

void ReadRates(const Json& row, MeasuredRate* one, MeasuredRate* all) {
  *one = {Number(row, "one_core"), Number(row, "one_core_spread_percent")};
  *all = {Number(row, "all_cores"), Number(row, "all_cores_spread_percent")};
}

// A rate that was not measured has no number in the file.
Json RateOrNull(const MeasuredRate& of, const char* name) {
  if (of.rate <= 0) return {{name, nullptr}};
  return {{name, of.rate}, {"spread_percent", of.spread_percent}};
}

MeasuredRate RateOf(const Json& row, const char* name) {
  return {Number(row, name), Number(row, "spread_percent")};
}

std::string PathOf(std::string_view host, const std::string& rest) {
  if (host.empty() || host.front() == '.' || host.find('/') != std::string_view::npos) return {};
  const char* const data = std::getenv("XDG_DATA_HOME");
  const char* const home = std::getenv("HOME");
  std::string folder = data != nullptr && *data == '/' ? data : "";
  if (folder.empty() && home != nullptr && *home == '/')
    folder = std::string(home) + "/.local/share";
  return folder.empty() ? folder : folder + "/ranktap/roofs/" + std::string(host) + rest;
}

}  // namespace

std::string RoofsText(const HostRoofs& roofs) {
  Json arithmetic = Json::array(), levels = Json::array();
  for (const HostRoofs::Arithmetic& of : roofs.arithmetic) {
    Json row = {{"type", of.type}, {"instruction", of.instruction}};
    row.update(RateText(of.one, of.all));
    arithmetic.push_back(std::move(row));
  }
  for (const HostRoofs::Level& of : roofs.levels) {
    Json row = {{"level", of.name}, {"bytes_a_core", of.bytes}};
    row.update(RateText(of.one, of.all));
    levels.push_back(std::move(row));
  }
  return WriteJson(Json{{"ranktap_roofs", 1},
                        {"host", roofs.host},
                        {"processor", roofs.processor},
                        {"date", roofs.date},
                        {"kernel", roofs.kernel},
                        {"mhz", roofs.mhz},
                        {"cores", roofs.cores},
                        {"cache_bytes", roofs.cache_bytes},
                        {"flops_per_second", arithmetic},
                        {"bytes_per_second", levels}},
                   2) +
         "\n";
}

Result<HostRoofs> ParseRoofs(std::string_view text) {
  const Json root = ParseJson(text);
  if (!root.is_object() || Number(root, "ranktap_roofs") != 1) {
    return Failure{"no file of ranktap calibrate"};
  }
  HostRoofs roofs{.host = root.TextOf("host"),
                  .processor = root.TextOf("processor"),
                  .date = root.TextOf("date"),
                  .kernel = root.TextOf("kernel"),
                  .mhz = Number(root, "mhz"),
                  .cores = static_cast<int>(Number(root, "cores")),
                  .cache_bytes = static_cast<int64_t>(Number(root, "cache_bytes")),
                  .arithmetic = {},
                  .levels = {}};
  for (const Json& row : Rows(root, "flops_per_second")) {
    HostRoofs::Arithmetic of{.type = row.TextOf("type"), .instruction = row.TextOf("instruction")};
    ReadRates(row, &of.one, &of.all);
    roofs.arithmetic.push_back(std::move(of));
  }
  for (const Json& row : Rows(root, "bytes_per_second")) {
    HostRoofs::Level of{.name = row.TextOf("level"),
                        .bytes = static_cast<int64_t>(Number(row, "bytes_a_core"))};
    ReadRates(row, &of.one, &of.all);
    roofs.levels.push_back(std::move(of));
  }
  return roofs;
}

std::string RoofsPath(std::string_view host) { return PathOf(host, ".json"); }

std::string DeviceRoofsText(const DeviceRoofs& roofs) {
  Json arithmetic = Json::array(), bandwidths = Json::array(), latencies = Json::array();
  for (const DeviceRoofs::Arithmetic& of : roofs.arithmetic) {
    Json row = {{"type", of.type}, {"instruction", of.instruction}};
    row.update(RateOrNull(of.rate, "rate"));
    if (of.mhz > 0) row["mhz"] = of.mhz;
    if (of.is_lower_bound) row["lower_bound"] = true;
    arithmetic.push_back(std::move(row));
  }
  for (const DeviceRoofs::Bandwidth& of : roofs.bandwidths) {
    Json row = {{"what", of.what}, {"bytes", of.bytes}};
    row.update(RateOrNull(of.rate, "rate"));
    bandwidths.push_back(std::move(row));
  }
  for (const DeviceRoofs::Latency& of : roofs.latencies) {
    Json row = {{"what", of.what}};
    row.update(RateOrNull(of.ns, "ns"));
    latencies.push_back(std::move(row));
  }
  Json root = {{"ranktap_device_roofs", 1}};
  if (roofs.is_stand_in) root["stand_in"] = "the stand-in for CUDA computes nothing: no figure";
  root.update(Json{{"host", roofs.host},
                   {"device", roofs.name},
                   {"number", roofs.number},
                   {"uuid", roofs.uuid},
                   {"date", roofs.date},
                   {"driver", roofs.driver},
                   {"compute_capability", roofs.architecture},
                   {"multiprocessors", roofs.sms},
                   {"mhz", roofs.mhz},
                   {"memory_mhz", roofs.memory_mhz},
                   {"memory_bytes", roofs.memory_bytes},
                   {"l2_bytes", roofs.l2_bytes},
                   {"flops_per_second", arithmetic},
                   {"bytes_per_second", bandwidths},
                   {"latencies", latencies}});
  return WriteJson(root, 2) + "\n";
}

bool IsDeviceRoofs(std::string_view text) {
  const Json root = ParseJson(text);
  return root.is_object() && Number(root, "ranktap_device_roofs") == 1;
}

Result<DeviceRoofs> ParseDeviceRoofs(std::string_view text) {
  const Json root = ParseJson(text);
  if (!root.is_object() || Number(root, "ranktap_device_roofs") != 1) {
    return Failure{"no file of ranktap calibrate"};
  }
  if (root.contains("stand_in")) {
    return Failure{"it was written on the stand-in for CUDA, which computes nothing"};
  }
  DeviceRoofs roofs{.host = root.TextOf("host"),
                    .date = root.TextOf("date"),
                    .name = root.TextOf("device"),
                    .uuid = root.TextOf("uuid"),
                    .number = static_cast<int>(Number(root, "number")),
                    .driver = root.TextOf("driver"),
                    .architecture = root.TextOf("compute_capability"),
                    .sms = static_cast<int>(Number(root, "multiprocessors")),
                    .mhz = Number(root, "mhz"),
                    .memory_mhz = Number(root, "memory_mhz"),
                    .memory_bytes = static_cast<int64_t>(Number(root, "memory_bytes")),
                    .l2_bytes = static_cast<int64_t>(Number(root, "l2_bytes"))};
  for (const Json& row : Rows(root, "flops_per_second")) {
    roofs.arithmetic.push_back({.type = row.TextOf("type"),
                                .instruction = row.TextOf("instruction"),
                                .rate = RateOf(row, "rate"),
                                .mhz = Number(row, "mhz"),
                                .is_lower_bound = row.is_object() && row.contains("lower_bound")});
  }
  for (const Json& row : Rows(root, "bytes_per_second")) {
    roofs.bandwidths.push_back({.what = row.TextOf("what"),
                                .bytes = static_cast<int64_t>(Number(row, "bytes")),
                                .rate = RateOf(row, "rate")});
  }
  for (const Json& row : Rows(root, "latencies")) {
    roofs.latencies.push_back({.what = row.TextOf("what"), .ns = RateOf(row, "ns")});
  }
  return roofs;
}

std::string DeviceRoofsPath(std::string_view host, std::string_view uuid) {
  return uuid.empty() ? std::string() : PathOf(host, "." + std::string(uuid) + ".json");
}

}  // namespace ranktap::collector
