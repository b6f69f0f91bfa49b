// run.json: what a run was, for people and scripts. Written when the run starts, when a trace
// appears or ends, and when the run ends; a reader copes without it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collector/file/result.h"
#include "ranktap/v1/trace.pb.h"

namespace ranktap::collector {

inline constexpr int kRunFormat = 1;

enum class TraceStatus { kOpen, kClosed, kDied, kAbandoned, kWriteFailed };

struct TraceInfo {
  std::string file;
  std::optional<uint32_t> rank, local_rank, world_size, node_rank;
  std::string rank_origin;  // "RANK", "OMPI_COMM_WORLD_RANK", ...
  std::string session;      // hex
  uint32_t pid = 0;
  std::string host, executable, loaded_by, level;
  TraceStatus status = TraceStatus::kOpen;
  std::string detail;  // how it died, what could not be written
  bool simulated = false;
  std::vector<std::string> notes;
  uint64_t events = 0, bytes = 0;
};

struct RunInfo {
  std::string run;  // random, hex
  std::vector<std::string> command;
  std::map<std::string, std::string> metadata;  // what the person who ran it says of it
  std::string host, collector_version, level;
  uint64_t start_realtime_ns = 0;
  std::optional<uint64_t> end_realtime_ns;  // absent: still running, or the collector was killed
  std::optional<int> exit_status;           // of the command; absent when it was signalled
  std::optional<int> exit_signal;
  std::map<std::string, uint64_t> refused;  // what ingest turned away, by reason
  std::vector<TraceInfo> traces;
};

std::string_view NameOf(TraceStatus status);
std::string_view NameOf(v1::LoadedBy loaded_by);
std::string_view NameOf(v1::Level level);
std::optional<v1::Level> LevelNamed(std::string_view name);

// Fills in what a hello says.
void Describe(const v1::Hello& hello, TraceInfo* info);

std::string ToJson(const RunInfo& info);
// Missing and unknown members are fine; `path` is for the message.
Result<RunInfo> ParseRunInfo(const std::string& json, const std::string& path);

std::string ToHex(std::string_view bytes);

}  // namespace ranktap::collector
