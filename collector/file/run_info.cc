#include "collector/file/run_info.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <type_traits>
#include <utility>

#include "collector/file/json.h"

namespace ranktap::collector {
namespace {

constexpr std::array<std::string_view, 5> kStatusNames = {"open", "closed", "died", "abandoned",
                                                          "write failed"};
constexpr std::array<std::string_view, 4> kLoadedByNames = {"unknown", "environment", "preload",
                                                            "attach"};
constexpr std::array<std::string_view, 6> kLevelNames = {"unknown", "dormant", "ranges",
                                                         "kernels", "full",    "counters"};

std::string Iso8601(uint64_t realtime_ns) {
  const time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  const size_t length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {text, length};
}

Json ToJson(const TraceInfo& trace) {
  Json object;
  object["file"] = trace.file;
  object["rank"] = trace.rank;
  object["rank_origin"] = trace.rank_origin;
  object["local_rank"] = trace.local_rank;
  object["world_size"] = trace.world_size;
  object["node_rank"] = trace.node_rank;
  object["session"] = trace.session;
  object["pid"] = trace.pid;
  object["host"] = trace.host;
  object["executable"] = trace.executable;
  object["loaded_by"] = trace.loaded_by;
  object["level"] = trace.level;
  object["status"] = NameOf(trace.status);
  object["detail"] = trace.detail;
  object["simulated"] = trace.simulated;
  object["notes"] = trace.notes;
  object["events"] = trace.events;
  object["bytes"] = trace.bytes;
  return object;
}

// Whether the member is a T: of numbers a whole one in its range. A conversion of any other is
// undefined.
template <typename T>
bool Holds(const Json& member) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (member.is_number_unsigned()) return std::in_range<T>(member.get<uint64_t>());
    return member.is_number_integer() && std::in_range<T>(member.get<int64_t>());
  }
  if constexpr (std::is_same_v<T, std::map<std::string, uint64_t>>) {
    return std::all_of(member.begin(), member.end(), Holds<uint64_t>);
  }
  return true;
}

// Takes the member when it is there and of the right kind; otherwise leaves `value` alone.
template <typename T>
void Get(const Json& object, const char* key, T* value) {
  const Json& member = object[key];
  if (member.is_null() || !Holds<T>(member)) return;
  try {
    *value = member.get<T>();
  } catch (const std::domain_error&) {
  }
}
template <typename T>
void Get(const Json& object, const char* key, std::optional<T>* value) {
  const Json& member = object[key];
  if (member.is_number() && Holds<T>(member)) *value = member.get<T>();
}

TraceInfo ParseTrace(const Json& object) {
  TraceInfo trace;
  Get(object, "file", &trace.file);
  Get(object, "rank", &trace.rank);
  Get(object, "rank_origin", &trace.rank_origin);
  Get(object, "local_rank", &trace.local_rank);
  Get(object, "world_size", &trace.world_size);
  Get(object, "node_rank", &trace.node_rank);
  Get(object, "session", &trace.session);
  Get(object, "pid", &trace.pid);
  Get(object, "host", &trace.host);
  Get(object, "executable", &trace.executable);
  Get(object, "door", &trace.loaded_by);  // its name before 0.2
  Get(object, "loaded_by", &trace.loaded_by);
  Get(object, "level", &trace.level);
  std::string status;
  Get(object, "status", &status);
  for (size_t i = 0; i < kStatusNames.size(); ++i) {
    if (status == kStatusNames[i]) trace.status = static_cast<TraceStatus>(i);
  }
  Get(object, "detail", &trace.detail);
  Get(object, "simulated", &trace.simulated);
  Get(object, "notes", &trace.notes);
  Get(object, "events", &trace.events);
  Get(object, "bytes", &trace.bytes);
  return trace;
}

}  // namespace

std::string_view NameOf(TraceStatus status) { return kStatusNames[static_cast<size_t>(status)]; }

std::string_view NameOf(v1::LoadedBy loaded_by) {
  const auto index = static_cast<size_t>(loaded_by);
  return index < kLoadedByNames.size() ? kLoadedByNames[index] : kLoadedByNames[0];
}

std::string_view NameOf(v1::Level level) {
  const auto index = static_cast<size_t>(level);
  return index < kLevelNames.size() ? kLevelNames[index] : kLevelNames[0];
}

std::optional<v1::Level> LevelNamed(std::string_view name) {
  for (size_t i = 1; i < kLevelNames.size(); ++i) {
    if (name == kLevelNames[i]) return static_cast<v1::Level>(i);
  }
  return std::nullopt;
}

void Describe(const v1::Hello& hello, TraceInfo* info) {
  const v1::RankIdentity& rank = hello.rank();
  if (rank.has_rank()) info->rank = rank.rank();
  if (rank.has_local_rank()) info->local_rank = rank.local_rank();
  if (rank.has_world_size()) info->world_size = rank.world_size();
  if (rank.has_node_rank()) info->node_rank = rank.node_rank();
  info->rank_origin = rank.origin();
  info->session = ToHex(hello.session());
  info->pid = hello.process().pid();
  info->host = hello.process().host();
  info->executable = hello.process().executable();
  info->loaded_by = NameOf(hello.loaded_by());
  info->level = NameOf(hello.level());
  info->simulated = hello.simulated();
  info->notes.assign(hello.notes().begin(), hello.notes().end());
}

std::string ToJson(const RunInfo& info) {
  Json object;
  object["format"] = kRunFormat;
  object["run"] = info.run;
  object["command"] = info.command;
  if (!info.metadata.empty()) object["metadata"] = info.metadata;
  object["host"] = info.host;
  object["collector_version"] = info.collector_version;
  object["level"] = info.level;
  object["start"] = Iso8601(info.start_realtime_ns);
  object["start_realtime_ns"] = info.start_realtime_ns;
  object["end"] = info.end_realtime_ns ? Json(Iso8601(*info.end_realtime_ns)) : Json();
  object["end_realtime_ns"] = info.end_realtime_ns;
  object["exit_status"] = info.exit_status;
  object["exit_signal"] = info.exit_signal;
  object["refused"] = info.refused;
  object["simulated"] = std::any_of(info.traces.begin(), info.traces.end(),
                                    [](const TraceInfo& trace) { return trace.simulated; });
  object["traces"] = Json::array();
  for (const TraceInfo& trace : info.traces) object["traces"].push_back(ToJson(trace));
  // Programs may use any bytes in their arguments; JSON must be UTF-8.
  return WriteJson(object, 2, JsonOrder::kByName) + "\n";
}

Result<RunInfo> ParseRunInfo(const std::string& text, const std::string& path) {
  const Json object = ParseJson(text);
  if (!object.is_object()) return Failure{fmt::format("{}: not a JSON object", path)};
  RunInfo info;
  int format = kRunFormat;
  Get(object, "format", &format);
  if (format > kRunFormat) {
    return Failure{
        fmt::format("{}: format {} is newer than this ranktap; use a newer one", path, format)};
  }
  Get(object, "run", &info.run);
  Get(object, "command", &info.command);
  Get(object, "metadata", &info.metadata);
  Get(object, "host", &info.host);
  Get(object, "collector_version", &info.collector_version);
  Get(object, "level", &info.level);
  Get(object, "start_realtime_ns", &info.start_realtime_ns);
  Get(object, "end_realtime_ns", &info.end_realtime_ns);
  Get(object, "exit_status", &info.exit_status);
  Get(object, "exit_signal", &info.exit_signal);
  Get(object, "refused", &info.refused);
  if (const Json& traces = object["traces"]; traces.is_array()) {
    for (const Json& trace : traces) {
      if (trace.is_object()) info.traces.push_back(ParseTrace(trace));
    }
  }
  return info;
}

std::string ToHex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    hex += kDigits[static_cast<uint8_t>(byte) >> 4];
    hex += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return hex;
}

}  // namespace ranktap::collector
