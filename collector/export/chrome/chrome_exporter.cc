#include "collector/export/exporters.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collector/export/chrome/chrome_events.h"
#include "collector/export/chrome/kineto_copy.h"
#include "collector/export/output_file.h"
#include "collector/export/run_clock.h"
#include "collector/trace/device_label.h"

namespace ranktap::collector {
namespace {

// Times count from a moment that all traces of a quarter share, so that files of different ranks
// can be laid beside each other; 90 days of nanoseconds still fit a double exactly.
constexpr int64_t kBaseEveryNs = int64_t{90} * 86'400 * 1'000'000'000;

int64_t Base(const Run& run) {
  const int64_t first = FirstRealtime(run);
  return first < 0 ? 0 : first - first % kBaseEveryNs;
}

class HeadWriter {
 public:
  HeadWriter(const Run& run, const Trace& trace, int64_t base_ns, ChromeEvents* events)
      : metadata_(run.info.metadata),
        trace_(trace),
        base_ns_(base_ns),
        events_(events),
        json_(events->json()) {}

  void WriteHead() {
    json_.Raw("{\n\"schemaVersion\": 1,\n\"deviceProperties\": [");
    for (int i = 0; i < trace_.hello.devices_size(); ++i) {
      json_.Raw(i == 0 ? "\n" : ",\n");
      WriteDevice(trace_.hello.devices(i));
    }
    json_.Raw("\n],\n");
    // HTA finds the rank with a regular expression that wants the space after the colon.
    if (trace_.info.rank) {
      json_.Raw("\"distributedInfo\": {\"rank\": ").Number(*trace_.info.rank);
      if (trace_.info.world_size) {
        json_.Raw(", \"world_size\": ").Number(*trace_.info.world_size);
      }
      WriteProcessGroups();
      json_.Raw("},\n");
    }
    WriteMetadata();
    json_.Raw("\"host_name\": ").Text(trace_.info.host).Raw(",\n");
    json_.Raw("\"trace_id\": ").Text(trace_.info.session).Raw(",\n");
    if (trace_.info.simulated) json_.Raw("\"simulated_gpu\": 1,\n");
    json_.Raw("\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": ").Number(base_ns_);
    json_.Raw(",\n\"traceEvents\": [");
  }

  // As add_metadata() does, but where Kineto has a member of this name.
  void WriteMetadata() {
    constexpr std::array<std::string_view, 9> kKinetos = {
        "schemaVersion", "deviceProperties", "distributedInfo",     "host_name",  "trace_id",
        "simulated_gpu", "displayTimeUnit",  "baseTimeNanoseconds", "traceEvents"};
    for (const auto& [key, value] : metadata_) {
      if (std::ranges::count(kKinetos, key) != 0) continue;
      json_.Text(key).Raw(": ").Text(value).Raw(",\n");
    }
  }

  // As torch.profiler does, which HTA and TensorBoard look for.
  void WriteProcessGroups() {
    const std::vector<ProcessGroup>& groups = trace_.process_groups;
    if (groups.empty()) return;
    json_.Raw(", \"backend\": ").Text(groups[0].backend);
    json_.Raw(", \"pg_count\": ").Number(groups.size()).Raw(", \"pg_config\": [");
    for (size_t i = 0; i < groups.size(); ++i) {
      json_.Raw(i == 0 ? "{" : ", {").Raw("\"pg_name\": ").Text(groups[i].name);
      json_.Raw(", \"pg_desc\": ").Text(groups[i].description);
      json_.Raw(", \"backend_config\": ").Text(groups[i].backend);
      json_.Raw(", \"pg_size\": ").Number(groups[i].size).Raw(", \"ranks\": [");
      for (size_t r = 0; r < groups[i].ranks.size(); ++r) {
        json_.Raw(r == 0 ? "" : ", ").Number(groups[i].ranks[r]);
      }
      json_.Raw("]}");
    }
    json_.Raw("]");
  }

  void WriteDevice(const v1::Device& device) {
    json_.Raw("  {\"id\": ").Number(device.id()).Raw(", \"name\": ").Text(device.name());
    const std::pair<const char*, uint64_t> properties[] = {
        {"totalGlobalMem", device.total_global_mem()},
        {"computeMajor", device.compute_major()},
        {"computeMinor", device.compute_minor()},
        {"maxThreadsPerBlock", device.max_threads_per_block()},
        {"maxThreadsPerMultiprocessor", device.max_threads_per_multiprocessor()},
        {"regsPerBlock", device.regs_per_block()},
        {"warpSize", device.warp_size()},
        {"sharedMemPerBlock", device.shared_mem_per_block()},
        {"numSms", device.num_sms()},
        {"regsPerMultiprocessor", device.regs_per_multiprocessor()},
        {"sharedMemPerBlockOptin", device.shared_mem_per_block_optin()},
        {"sharedMemPerMultiprocessor", device.shared_mem_per_multiprocessor()}};
    for (const auto& [name, value] : properties) {
      json_.Raw(", \"").Raw(name).Raw("\": ").Number(value);
    }
    json_.Raw("}");
  }

  template <typename Tid, typename Value>
  void Metadata(std::string_view what, uint32_t pid, Tid tid, std::string_view key, Value value) {
    events_->Begin().Raw("{\"name\":\"").Raw(what).Raw("\",\"ph\":\"M\",");
    events_->Time(trace_.first_ns);
    json_.Raw(",\"pid\":").Number(pid).Raw(",\"tid\":").Number(tid).Raw(",\"args\":{");
    if constexpr (std::is_integral_v<Value>) {
      events_->Arg(key, value);
    } else {
      events_->TextArg(key, value);
    }
    events_->EndArgs();
  }

  void WriteNames() {
    const std::string& executable = trace_.info.executable;
    const std::string program = executable.substr(executable.rfind('/') + 1);
    Metadata("process_name", trace_.info.pid, 0, "name", program);
    Metadata("process_labels", trace_.info.pid, 0, "labels", "CPU");
    Metadata("process_sort_index", trace_.info.pid, 0, "sort_index", trace_.info.pid);
    for (const Writer& writer : trace_.writers) {
      if (writer.thread <= 0) continue;
      // Kineto's own names are in this form already.
      const std::string name = trace_.origin == TraceOrigin::kKineto && !writer.name.empty()
                                   ? writer.name
                                   : fmt::format("thread {} ({})", writer.thread, writer.name);
      Metadata("thread_name", trace_.info.pid, writer.thread, "name", name);
      Metadata("thread_sort_index", trace_.info.pid, writer.thread, "sort_index", writer.thread);
    }
    std::set<uint32_t> devices;
    std::set<std::pair<uint32_t, uint32_t>> streams;
    for (const Lane& lane : trace_.lanes) {
      devices.insert(lane.device);
      streams.emplace(lane.device, lane.stream);
    }
    constexpr uint32_t kAfterProcesses = 16'777'216;
    for (const uint32_t device : devices) {
      Metadata("process_name", device, 0, "name", program);
      Metadata("process_labels", device, 0, "labels", DeviceLabel(trace_, device));
      Metadata("process_sort_index", device, 0, "sort_index", kAfterProcesses + device);
    }
    for (const auto& [device, stream] : streams) {
      Metadata("thread_name", device, stream, "name", fmt::format("stream {} ", stream));
      Metadata("thread_sort_index", device, stream, "sort_index", stream);
    }
  }

 private:
  const std::map<std::string, std::string>& metadata_;
  const Trace& trace_;
  int64_t base_ns_;
  ChromeEvents* events_;
  JsonText& json_;
};

}  // namespace

std::optional<Failure> WriteChrome(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path) {
  const Trace& trace = *traces[0];
  const int64_t base_ns = Base(run);
  const int64_t shift = RealtimeOffset(run, trace);
  if (CanCopyKineto(trace, options, path)) return CopyKineto(trace, options.Shifted(shift), path);
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  ChromeEvents events(&*file, shift - base_ns, options.Shifted(shift));
  HeadWriter head(run, trace, base_ns, &events);
  head.WriteHead();
  head.WriteNames();
  // A file of torch.profiler's has these of its own.
  if (trace.is_ours() || options.hta_compat) {
    WriteSteps(trace, &events);
    WriteModuleCalls(trace, &events);
  }
  WriteFrameworkEvents(trace, &events);
  WriteHostEvents(trace, &events);
  WriteDeviceEvents(trace, &events);
  events.json().Raw("\n],\n\"traceName\": ").Text(trace.info.file).Raw("\n}\n");
  events.Flush();
  return file->Close();
}

}  // namespace ranktap::collector
