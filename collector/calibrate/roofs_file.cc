#include <cstdlib>
#include <nlohmann/json.hpp>

#include "collector/calibrate/calibrate_host.h"
#include "collector/file/json.h"

namespace ranktap::collector {
namespace {

using Json = nlohmann::ordered_json;

Json RateText(const MeasuredRate& one, const MeasuredRate& all) {
  return {{"one_core", one.rate},
          {"one_core_spread_percent", one.spread_percent},
          {"all_cores", all.rate},
          {"all_cores_spread_percent", all.spread_percent}};
}

double Number(const nlohmann::json& of, const char* name) {
  const auto found = of.is_object() ? of.find(name) : of.end();
  return found != of.end() && found->is_number() ? found->get<double>() : 0;
}

std::string Text(const nlohmann::json& of, const char* name) {
  const auto found = of.is_object() ? of.find(name) : of.end();
  return found != of.end() && found->is_string() ? found->get<std::string>() : std::string();
}

nlohmann::json Rows(const nlohmann::json& of, const char* name) {
  const auto found = of.find(name);
  return found != of.end() && found->is_array() ? *found : nlohmann::json::array();
}

void ReadRates(const nlohmann::json& row, MeasuredRate* one, MeasuredRate* all) {
  *one = {Number(row, "one_core"), Number(row, "one_core_spread_percent")};
  *all = {Number(row, "all_cores"), Number(row, "all_cores_spread_percent")};
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
  const nlohmann::json root = ParseJson(text);
  if (!root.is_object() || Number(root, "ranktap_roofs") != 1) {
    return Failure{"no file of ranktap calibrate"};
  }
  HostRoofs roofs{.host = Text(root, "host"),
                  .processor = Text(root, "processor"),
                  .date = Text(root, "date"),
                  .kernel = Text(root, "kernel"),
                  .mhz = Number(root, "mhz"),
                  .cores = static_cast<int>(Number(root, "cores")),
                  .cache_bytes = static_cast<int64_t>(Number(root, "cache_bytes")),
                  .arithmetic = {},
                  .levels = {}};
  for (const nlohmann::json& row : Rows(root, "flops_per_second")) {
    HostRoofs::Arithmetic of{.type = Text(row, "type"), .instruction = Text(row, "instruction")};
    ReadRates(row, &of.one, &of.all);
    roofs.arithmetic.push_back(std::move(of));
  }
  for (const nlohmann::json& row : Rows(root, "bytes_per_second")) {
    HostRoofs::Level of{.name = Text(row, "level"),
                        .bytes = static_cast<int64_t>(Number(row, "bytes_a_core"))};
    ReadRates(row, &of.one, &of.all);
    roofs.levels.push_back(std::move(of));
  }
  return roofs;
}

std::string RoofsPath(std::string_view host) {
  if (host.empty() || host.front() == '.' || host.find('/') != std::string_view::npos) return {};
  const char* const data = std::getenv("XDG_DATA_HOME");
  const char* const home = std::getenv("HOME");
  std::string folder = data != nullptr && *data == '/' ? data : "";
  if (folder.empty() && home != nullptr && *home == '/')
    folder = std::string(home) + "/.local/share";
  return folder.empty() ? folder : folder + "/ranktap/roofs/" + std::string(host) + ".json";
}

}  // namespace ranktap::collector
