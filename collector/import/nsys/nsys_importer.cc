#include "collector/import/finish_trace.h"
#include "collector/import/importers.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "collector/import/nsys/nsys_rows.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostProcesses = 65'536;
constexpr std::string_view kEventTables[] = {"CUPTI_ACTIVITY_KIND_KERNEL",
                                             "CUPTI_ACTIVITY_KIND_RUNTIME",
                                             "CUPTI_ACTIVITY_KIND_MEMCPY", "NVTX_EVENTS"};

class NsysFile {
 public:
  NsysFile(SqlReader* file, std::string path) : file_(file), path_(std::move(path)) {}

  std::vector<Trace> Read() {
    static constexpr std::string_view kStrings[] = {"id", "value"};
    file_->ForEachRow("StringIds", kStrings,
                      [&](const SqlRow& row) { strings_.Add(row.Int(0), row.Text(1)); });
    const NsysTarget target{file_,
                            &strings_,
                            [this](int64_t id) { return ProcessOf(id); },
                            [this](int64_t id) { return Known(id); },
                            &skipped_,
                            file_->Has("RANKTAP_RANKS")};
    ReadNsysDevices(target);
    ReadNsysHost(target);
    ReadProcesses();
    ReadGpus();
    ReadStart();
    return Finish();
  }

 private:
  // nullptr: a hostile file has more processes than any machine.
  NsysProcess* ProcessOf(int64_t global_id) {
    const int64_t key = global_id & ~int64_t{0xffffff};
    const auto found = processes_.find(key);
    if (found != processes_.end()) return &found->second;
    if (processes_.size() >= kMostProcesses) {
      ++skipped_["rows of too many processes"];
      return nullptr;
    }
    return &processes_.try_emplace(key, key, &strings_).first->second;
  }
  NsysProcess* Known(int64_t global_id) {
    const auto found = processes_.find(global_id & ~int64_t{0xffffff});
    return found == processes_.end() ? nullptr : &found->second;
  }

  void ReadProcesses() {
    static constexpr std::string_view kProcesses[] = {"globalPid", "name"};
    file_->ForEachRow("PROCESSES", kProcesses, [&](const SqlRow& row) {
      NsysProcess* const process = Known(row.Int(0));
      if (process != nullptr && !row.IsNull(1)) process->trace().info.executable = row.Text(1);
    });
    static constexpr std::string_view kRanks[] = {"globalPid", "rank",  "localRank", "worldSize",
                                                  "host",      "trace", "simulated"};
    file_->ForEachRow("RANKTAP_RANKS", kRanks, [&](const SqlRow& row) {
      NsysProcess* const process = Known(row.Int(0));
      if (process == nullptr) return;
      TraceInfo& info = process->trace().info;
      if (!row.IsNull(1)) info.rank = row.Small(1), info.rank_origin = "RANKTAP_RANKS";
      if (!row.IsNull(2)) info.local_rank = row.Small(2);
      if (!row.IsNull(3)) info.world_size = row.Small(3);
      info.host = row.Text(4);
      info.file = row.Text(5);
      info.simulated = row.Int(6) != 0;
    });
  }

  void ReadGpus() {
    enum {
      kId,
      kName,
      kBus,
      kL2,
      kMemory,
      kBandwidth,
      kClock,
      kSms,
      kWarp,
      kWarps,
      kBlocks,
      kThreads,
      kMajor,
      kMinor
    };
    static constexpr std::string_view kColumns[] = {"id",
                                                    "name",
                                                    "busLocation",
                                                    "l2CacheSize",
                                                    "totalMemory",
                                                    "memoryBandwidth",
                                                    "clockRate",
                                                    "smCount",
                                                    "threadsPerWarp",
                                                    "maxWarpsPerSm",
                                                    "maxBlocksPerSm",
                                                    "maxThreadsPerBlock",
                                                    "computeMajor",
                                                    "computeMinor"};
    file_->ForEachRow("TARGET_INFO_GPU", kColumns, [&](const SqlRow& row) {
      v1::Device device;
      device.set_id(row.Small(kId));
      device.set_name(std::string(row.Text(kName)));
      device.set_pci_bus(std::string(row.Text(kBus)));
      device.set_l2_cache_bytes(row.Small(kL2));
      device.set_total_global_mem(static_cast<uint64_t>(row.Int(kMemory)));
      // B/s and Hz in nsys, kB/s and kHz in CUPTI.
      device.set_memory_bandwidth(static_cast<uint64_t>(row.Int(kBandwidth)) / 1000);
      device.set_core_clock_khz(static_cast<uint32_t>(row.Int(kClock) / 1000));
      device.set_num_sms(row.Small(kSms));
      device.set_warp_size(row.Small(kWarp));
      device.set_max_warps_per_multiprocessor(row.Small(kWarps));
      device.set_max_blocks_per_multiprocessor(row.Small(kBlocks));
      device.set_max_threads_per_block(row.Small(kThreads));
      device.set_compute_major(row.Small(kMajor));
      device.set_compute_minor(row.Small(kMinor));
      if (devices_.size() < 1024) devices_.push_back(std::move(device));
    });
  }

  void ReadStart() {
    static constexpr std::string_view kColumns[] = {"utcEpochNs"};
    file_->ForEachRow("TARGET_INFO_SESSION_START_TIME", kColumns, [&](const SqlRow& row) {
      start_ns_ = std::clamp(row.Int(0), -kFarthestTime, kFarthestTime);
    });
  }

  std::vector<Trace> Finish() {
    std::vector<Trace> traces;
    for (auto& [key, process] : processes_) {
      process.Finish();
      Trace& trace = process.trace();
      trace.path = path_;
      trace.base_time_ns = trace.realtime_offset_ns = start_ns_;
      CloseTrace(trace.info.executable, trace.info.bytes, &trace);
      for (const v1::Device& device : devices_) *trace.hello.add_devices() = device;
      if (trace.info.file.empty()) {
        trace.info.file = std::filesystem::path(path_).filename().string();
        if (processes_.size() > 1) trace.info.file += fmt::format(" pid {}", trace.info.pid);
      }
      traces.push_back(std::move(trace));
    }
    if (traces.empty()) return traces;
    traces[0].damage = file_->damage();
    for (const auto& [what, count] : skipped_) {
      traces[0].info.notes.push_back(fmt::format("{}: {} not read", what, count));
    }
    return traces;
  }

  SqlReader* file_;
  std::string path_;
  NsysStrings strings_;
  std::map<int64_t, NsysProcess> processes_;
  std::vector<v1::Device> devices_;
  std::map<std::string, uint64_t> skipped_;
  int64_t start_ns_ = 0;
};

}  // namespace

bool ReadSpan(const SqlRow& row, const NsysTarget& target, int64_t* start, int64_t* end) {
  if (row.IsNull(0)) {
    ++(*target.skipped)["rows without a start"];
    return false;
  }
  *start = row.Int(0);
  *end = row.IsNull(1) ? *start : row.Int(1);
  if (*start < -kFarthestTime || *end > kFarthestTime || *end < *start) {
    ++(*target.skipped)["rows whose times are none"];
    return false;
  }
  return true;
}

Result<std::vector<Trace>> ImportNsys(const std::string& path) {
  Result<SqlReader> file = SqlReader::Open(path);
  if (!file) return Failure{file.message()};
  bool any = false;
  for (const std::string_view table : kEventTables) any |= file->Has(std::string(table));
  std::vector<Trace> traces = NsysFile(&*file, path).Read();
  if (traces.empty()) {
    std::string message =
        path + (any ? ": no events in its tables"
                    : ": an SQLite database without nsys' tables (CUPTI_ACTIVITY_KIND_KERNEL, "
                      "...); nsys export --type sqlite makes them of a .nsys-rep");
    for (const Damage& damage : file->damage()) {
      message += fmt::format("; offset {}: {}", damage.offset, damage.what);
    }
    return Failure{message};
  }
  return traces;
}

bool LooksLikeNsys(std::string_view head) { return head.starts_with("SQLite format 3"); }

}  // namespace ranktap::collector
