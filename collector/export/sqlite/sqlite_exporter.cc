#include "collector/export/exporters.h"

#include <fmt/core.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "collector/export/cupti_names.h"
#include "collector/export/run_clock.h"
#include "collector/export/sqlite/sqlite_trace.h"

namespace ranktap::collector {
namespace {

struct Exported {
  const Trace* trace;
  int64_t machine;  // nsys' vmId
  int64_t global_pid;
};

// A number for each host; a second process with the same pid on a host (containers) gets one of its
// own, so that globalPid stays unique.
std::vector<Exported> Number(std::span<const Trace* const> traces) {
  std::map<std::string, int64_t> machines;
  std::set<std::pair<int64_t, uint32_t>> taken;
  std::vector<Exported> exported;
  int64_t next = static_cast<int64_t>(traces.size());
  for (const Trace* const trace : traces) {
    const std::string host = trace->info.host + '\0' + trace->hello.process().boot_id();
    int64_t machine =
        machines.try_emplace(host, static_cast<int64_t>(machines.size())).first->second;
    if (!taken.emplace(machine, trace->info.pid).second) machine = next++;
    exported.push_back({trace, machine, machine << 48 | int64_t{trace->info.pid} << 24});
  }
  return exported;
}

void AppendEnum(SqlFile* file, const char* name,
                const std::vector<std::pair<int, std::string>>& labels) {
  SqlTable table{.name = name, .columns = {}, .rows = labels.size()};
  table.columns = {{"id INTEGER NOT NULL PRIMARY KEY",
                    [&](size_t i, SqlValue to) { to.Set(int64_t{labels[i].first}); }},
                   {"name TEXT", [&](size_t i, SqlValue to) { to.Set(labels[i].second); }},
                   {"label TEXT", [&](size_t i, SqlValue to) { to.Set(labels[i].second); }}};
  file->Append(table);
}

void AppendEnums(SqlFile* file) {
  std::vector<std::pair<int, std::string>> labels;
  for (int kind = 0; kind <= 10; ++kind) {
    labels.emplace_back(kind, CopyKindName(static_cast<uint8_t>(kind)));
  }
  AppendEnum(file, "ENUM_CUDA_MEMCPY_OPER", labels);
  labels.clear();
  for (int kind = 0; kind <= 8; ++kind) {
    labels.emplace_back(kind, MemoryKindName(static_cast<uint32_t>(kind)));
  }
  AppendEnum(file, "ENUM_CUDA_MEM_KIND", labels);
  labels.clear();
  for (int kind = 0; kind <= 4; ++kind) {
    labels.emplace_back(kind, SyncTypeName(static_cast<uint32_t>(kind)));
  }
  AppendEnum(file, "ENUM_CUPTI_SYNC_TYPE", labels);
  AppendEnum(file, "ENUM_NSYS_EVENT_TYPE",
             {{34, "NvtxMark"},
              {59, "NvtxPushPopRange"},
              {60, "NvtxStartEndRange"},
              {75, "NvtxDomainCreate"}});
  AppendEnum(file, "ENUM_NSYS_EVENT_CLASS", {{0, "CudaRuntime"}, {1, "CudaDriver"}});
}

// Of the chips that one compute capability tells apart from all others.
std::string_view ChipOf(const v1::Device& device) {
  constexpr std::pair<uint32_t, std::string_view> kChips[] = {
      {70, "GV100"}, {80, "GA100"}, {90, "GH100"}, {100, "GB100"}, {103, "GB110"}};
  const uint32_t capability = device.compute_major() * 10 + device.compute_minor();
  for (const auto& [known, chip] : kChips) {
    if (known == capability) return chip;
  }
  return {};
}

// "8-4-4-4-12", as nsys writes the 16 bytes; empty where there are none.
std::string UuidText(std::string_view bytes) {
  if (bytes.size() != 16) return {};
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<uint8_t>(bytes[i]));
  }
  return text;
}

void AppendGpus(SqlFile* file, const std::vector<Exported>& exported) {
  struct Gpu {
    int64_t machine;
    const v1::Device* device;
    bool simulated;
    std::string uuid;
  };
  std::vector<Gpu> gpus;
  std::set<std::pair<int64_t, uint32_t>> seen;
  for (const Exported& one : exported) {
    for (const v1::Device& device : one.trace->hello.devices()) {
      if (seen.emplace(one.machine, device.id()).second) {
        gpus.push_back({one.machine, &device, one.trace->info.simulated, UuidText(device.uuid())});
      }
    }
  }
  SqlTable table{.name = "TARGET_INFO_GPU", .columns = {}, .rows = gpus.size()};
  const auto number = [&](std::string_view declaration, auto of) {
    table.columns.push_back({declaration, [&gpus, of](size_t i, SqlValue to) {
                               to.Set(static_cast<int64_t>(of(gpus[i])));
                             }});
  };
  number("vmId INTEGER NOT NULL", [](const Gpu& gpu) { return gpu.machine; });
  number("id INTEGER NOT NULL", [](const Gpu& gpu) { return gpu.device->id(); });
  table.columns.push_back(
      {"name TEXT", [&](size_t i, SqlValue to) { to.Set(gpus[i].device->name()); }});
  table.columns.push_back(
      {"busLocation TEXT", [&](size_t i, SqlValue to) { to.Set(gpus[i].device->pci_bus()); }});
  number("l2CacheSize INTEGER", [](const Gpu& gpu) { return gpu.device->l2_cache_bytes(); });
  number("totalMemory INTEGER", [](const Gpu& gpu) { return gpu.device->total_global_mem(); });
  // kB/s and kHz in CUPTI, B/s and Hz in nsys.
  number("memoryBandwidth INTEGER",
         [](const Gpu& gpu) { return gpu.device->memory_bandwidth() * 1000; });
  number("clockRate INTEGER",
         [](const Gpu& gpu) { return uint64_t{gpu.device->core_clock_khz()} * 1000; });
  number("smCount INTEGER", [](const Gpu& gpu) { return gpu.device->num_sms(); });
  number("cuDevice INTEGER", [](const Gpu& gpu) { return gpu.device->id(); });
  number("threadsPerWarp INTEGER", [](const Gpu& gpu) { return gpu.device->warp_size(); });
  number("maxWarpsPerSm INTEGER",
         [](const Gpu& gpu) { return gpu.device->max_warps_per_multiprocessor(); });
  number("maxBlocksPerSm INTEGER",
         [](const Gpu& gpu) { return gpu.device->max_blocks_per_multiprocessor(); });
  number("maxThreadsPerBlock INTEGER",
         [](const Gpu& gpu) { return gpu.device->max_threads_per_block(); });
  number("computeMajor INTEGER", [](const Gpu& gpu) { return gpu.device->compute_major(); });
  number("computeMinor INTEGER", [](const Gpu& gpu) { return gpu.device->compute_minor(); });
  table.columns.push_back({"uuid TEXT", [&](size_t i, SqlValue to) {
                             if (!gpus[i].uuid.empty()) to.Set(gpus[i].uuid);
                           }});
  table.columns.push_back({"chipName TEXT", [&](size_t i, SqlValue to) {
                             const std::string_view chip = ChipOf(*gpus[i].device);
                             if (!chip.empty() && !gpus[i].simulated) to.Set(chip);
                           }});
  file->Append(table);
}

// Which GPU each process sees as which device: queries join kernels to their GPU by it.
void AppendCudaDevices(SqlFile* file, const std::vector<Exported>& exported) {
  struct Seen {
    uint32_t pid;
    const v1::Device* device;
    std::string uuid;
  };
  std::vector<Seen> seen;
  for (const Exported& one : exported) {
    for (const v1::Device& device : one.trace->hello.devices()) {
      seen.push_back({one.trace->info.pid, &device, UuidText(device.uuid())});
    }
  }
  SqlTable table{.name = "TARGET_INFO_CUDA_DEVICE", .columns = {}, .rows = seen.size()};
  table.columns = {
      {"gpuId INTEGER", [&](size_t i, SqlValue to) { to.Set(int64_t{seen[i].device->id()}); }},
      {"cudaId INTEGER NOT NULL",
       [&](size_t i, SqlValue to) { to.Set(int64_t{seen[i].device->id()}); }},
      {"pid INTEGER NOT NULL", [&](size_t i, SqlValue to) { to.Set(int64_t{seen[i].pid}); }},
      {"uuid TEXT",
       [&](size_t i, SqlValue to) {
         if (!seen[i].uuid.empty()) to.Set(seen[i].uuid);
       }},
      {"numMultiprocessors INTEGER",
       [&](size_t i, SqlValue to) { to.Set(int64_t{seen[i].device->num_sms()}); }}};
  file->Append(table);
}

void AppendProcesses(SqlFile* file, const std::vector<Exported>& exported) {
  SqlTable processes{.name = "PROCESSES", .columns = {}, .rows = exported.size()};
  processes.columns = {
      {"globalPid INTEGER", [&](size_t i, SqlValue to) { to.Set(exported[i].global_pid); }},
      {"pid INTEGER", [&](size_t i, SqlValue to) { to.Set(int64_t{exported[i].trace->info.pid}); }},
      {"name TEXT", [&](size_t i, SqlValue to) { to.Set(exported[i].trace->info.executable); }}};
  file->Append(processes);
  SqlTable ranks{.name = "RANKTAP_RANKS", .columns = {}, .rows = exported.size()};
  const auto optional = [&](std::string_view declaration, std::optional<uint32_t> TraceInfo::*of) {
    ranks.columns.push_back({declaration, [&exported, of](size_t i, SqlValue to) {
                               if (const auto& value = exported[i].trace->info.*of) {
                                 to.Set(int64_t{*value});
                               }
                             }});
  };
  ranks.columns.push_back(
      {"globalPid INTEGER", [&](size_t i, SqlValue to) { to.Set(exported[i].global_pid); }});
  optional("rank INTEGER", &TraceInfo::rank);
  optional("localRank INTEGER", &TraceInfo::local_rank);
  optional("worldSize INTEGER", &TraceInfo::world_size);
  ranks.columns.push_back(
      {"host TEXT", [&](size_t i, SqlValue to) { to.Set(exported[i].trace->info.host); }});
  ranks.columns.push_back(
      {"trace TEXT", [&](size_t i, SqlValue to) { to.Set(exported[i].trace->info.file); }});
  ranks.columns.push_back({"simulated INTEGER", [&](size_t i, SqlValue to) {
                             to.Set(int64_t{exported[i].trace->info.simulated});
                           }});
  file->Append(ranks);
}

// What is said of the run: by its user, and by OpenTelemetry's variables.
void AppendMetadata(SqlFile* file, const std::map<std::string, std::string>& metadata) {
  const std::vector<std::pair<std::string, std::string>> rows(metadata.begin(), metadata.end());
  SqlTable table{.name = "META_DATA_CAPTURE", .columns = {}, .rows = rows.size()};
  table.columns = {{"name TEXT NOT NULL", [&](size_t i, SqlValue to) { to.Set(rows[i].first); }},
                   {"value TEXT", [&](size_t i, SqlValue to) { to.Set(rows[i].second); }}};
  file->Append(table);
}

void AppendSession(SqlFile* file, int64_t start_ns) {
  SqlTable session{.name = "TARGET_INFO_SESSION_START_TIME", .columns = {}, .rows = 1};
  session.columns = {{"utcEpochNs INTEGER", [start_ns](size_t, SqlValue to) { to.Set(start_ns); }}};
  file->Append(session);
  SqlTable meta{.name = "META_DATA_EXPORT", .columns = {}, .rows = 1};
  meta.columns = {
      {"name TEXT", [](size_t, SqlValue to) { to.Set(std::string_view("EXPORT_PRODUCT")); }},
      {"value TEXT", [](size_t, SqlValue to) { to.Set(std::string_view("ranktap")); }}};
  file->Append(meta);
}

}  // namespace

int64_t SqlStrings::IdOf(std::string_view text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  // 0 does not name a string.
  if (texts_.empty()) texts_.emplace_back();
  const auto id = static_cast<int64_t>(texts_.size());
  ids_.emplace(texts_.emplace_back(text), id);
  return id;
}

SqlTable SqlStrings::Table() const {
  SqlTable table{.name = "StringIds", .columns = {}, .rows = texts_.empty() ? 1 : texts_.size()};
  table.keeps = [](size_t i) { return i != 0; };
  table.columns = {
      {"id INTEGER NOT NULL PRIMARY KEY",
       [](size_t i, SqlValue to) { to.Set(static_cast<int64_t>(i)); }},
      {"value TEXT", [this](size_t i, SqlValue to) { to.Set(std::string_view(texts_[i])); }}};
  return table;
}

std::optional<Failure> WriteSqlite(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path) {
  Result<SqlFile> file = SqlFile::Create(path);
  if (!file) return Failure{file.message()};
  const int64_t start_ns = FirstRealtime(run);
  const std::vector<Exported> exported = Number(traces);
  SqlStrings strings;
  AppendSession(&*file, start_ns);
  AppendMetadata(&*file, run.info.metadata);
  AppendEnums(&*file);
  AppendGpus(&*file, exported);
  AppendCudaDevices(&*file, exported);
  AppendProcesses(&*file, exported);
  for (const Exported& one : exported) {
    const int64_t realtime = RealtimeOffset(run, *one.trace);
    const SqlTraceTarget target{.file = &*file,
                                .strings = &strings,
                                .global_pid = one.global_pid,
                                .shift_ns = realtime - start_ns,
                                .options = options.Shifted(realtime)};
    AppendDeviceTables(*one.trace, target);
    AppendHostTables(*one.trace, target);
  }
  file->Append(strings.Table());
  return file->Close();
}

}  // namespace ranktap::collector
