// How fast exporters write: slices and rows a second of one core (user and system time, not that of
// the disk), beside writing the same bytes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "collector/export/exporter.h"
#include "collector/trace/large_blocks.h"
#include "collector/trace/model.h"
#include "ranktap/v1/dictionary.pb.h"
#include "tests/bench/figure.h"

namespace ranktap::bench {
namespace {

using namespace ranktap::collector;

constexpr int kKernels = 1'000'000, kNames = 50, kShapes = 200;

void AddNames(Trace* trace) {
  v1::Dictionary names;
  for (uint32_t id = 1; id <= kNames; ++id) {
    v1::Text& text = *names.add_strings();
    text.set_id(id);
    const std::string number = std::to_string(id);
    text.set_text("_Z" + std::to_string(18 + number.size()) + "elementwise_kernel" + number +
                  "PfS_i");
  }
  v1::ApiFunction& api = *names.add_api_functions();
  api.set_id(1);
  api.set_domain(1);
  api.set_cbid(211);
  api.set_name("cudaLaunchKernel");
  for (uint32_t id = 1; id <= kShapes; ++id) {
    v1::LaunchShapeEntry& shape = *names.add_shapes();
    shape.set_id(id);
    for (uint32_t value : {id * 16, 1u, 1u}) shape.add_grid(value);
    for (uint32_t value : {256u, 1u, 1u}) shape.add_block(value);
    shape.set_registers_per_thread(32);
  }
  const std::string bytes = names.SerializeAsString();
  trace->dictionary.Add(std::as_bytes(std::span(bytes)));
}

// A launch and a kernel each, as a training step has them: from one thread, on two streams, with a
// range around every twenty.
Trace MakeTrace() {
  Trace trace;
  trace.info.rank = 0;
  trace.info.pid = 4711;
  trace.info.executable = "/usr/bin/python3";
  trace.info.file = "rank-00000.trace";
  trace.writers.emplace_back().thread = 4711;
  trace.lanes = {{0, 1, 7}, {0, 1, 20}};
  AddNames(&trace);
  for (uint32_t i = 0; i < kKernels; ++i) {
    const int64_t at = int64_t{i} * 6000;
    if (i % 20 == 0) {
      Ranges& ranges = trace.ranges;
      ranges.start.push_back(at - 100);
      ranges.end.push_back(at + 20 * 6000 - 200);
      ranges.name.push_back(1 + i % kNames);
      ranges.domain.push_back(0);
      ranges.writer.push_back(0);
      ranges.depth.push_back(0);
      ranges.kind.push_back(0);
    }
    ApiCalls& calls = trace.api_calls;
    calls.start.push_back(at);
    calls.end.push_back(at + 4200);
    calls.correlation.push_back(i + 1);
    calls.api.push_back(1);
    calls.writer.push_back(0);
    Kernels& kernels = trace.kernels;
    kernels.start.push_back(at + 9000);
    kernels.end.push_back(at + 9000 + 5123);
    kernels.correlation.push_back(i + 1);
    kernels.lane.push_back(i % 8 == 0 ? 1 : 0);
    kernels.launch.push_back(i);
    kernels.name.push_back(1 + i * 7 % kNames);
    kernels.shape.push_back(1 + i * 13 % kShapes);
  }
  trace.first_ns = 1;
  trace.last_ns = trace.kernels.end.back();
  trace.realtime_offset_ns = 1'700'000'000'000'000'000;
  return trace;
}

// The least of three. To give back what a file of the round before held took a tenth of an export,
// and the floor's first round had none.
template <typename Body>
double SecondsOfNewFile(const std::string& path, Body&& body) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    std::filesystem::remove(path);
    least = std::min(least, CpuSecondsOf(body));
  }
  return least;
}

// Seconds of writing as many bytes as `path` has, from memory, to a file beside it.
double FloorSeconds(const std::string& path) {
  const size_t bytes = std::filesystem::file_size(path);
  const std::vector<char> data(1u << 20, 'x');
  const std::string floor = path + ".floor";
  const double seconds = SecondsOfNewFile(floor, [&] {
    const int file = ::open(floor.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (size_t at = 0; at < bytes; at += data.size()) {
      if (::write(file, data.data(), std::min(data.size(), bytes - at)) < 0) std::abort();
    }
    ::close(file);
  });
  std::filesystem::remove(floor);
  return seconds;
}

void Measure(const Run& run, const char* format, const char* what, double count, double target,
             const std::string& directory) {
  const Exporter& exporter = *FindExporter(format);
  const std::string path = directory + "/bench" + std::string(exporter.extension);
  const std::vector<const Trace*> traces = {&run.traces[0]};
  const double seconds = SecondsOfNewFile(path, [&] {
    if (exporter.write(run, traces, {}, path)) std::abort();
  });
  const double floor = FloorSeconds(path);
  char note[64];
  std::snprintf(note, sizeof(note), "%.0f B each",
                static_cast<double>(std::filesystem::file_size(path)) / count);
  std::filesystem::remove(path);
  Print({.name = "export to " + std::string(format) + ", one core",
         .value = count / seconds / 1e6,
         .unit = std::string("M ") + what + "/s",
         .floor_name = "writing those bytes",
         .floor = count / floor / 1e6,
         .target = target,
         .at_least = true,
         .note = note});
}

}  // namespace
}  // namespace ranktap::bench

int main(int argc, char** argv) {
  using namespace ranktap::bench;
  ranktap::collector::KeepLargeBlocks();  // as report, export and merge do
  if (argc != 2) {
    std::fprintf(stderr, "usage: export_bench DIRECTORY\n");
    return 2;
  }
  ranktap::collector::Run run;
  run.traces.push_back(MakeTrace());
  const ranktap::collector::Trace& trace = run.traces[0];
  const double slices =
      static_cast<double>(trace.kernels.size() + trace.api_calls.size() + trace.ranges.size());
  Measure(run, "perfetto", "slices", slices, 10, argv[1]);
  // Kineto's JSON has two events more for each arrow.
  Measure(run, "chrome", "events", slices + 2.0 * static_cast<double>(trace.kernels.size()), 3,
          argv[1]);
  Measure(run, "sqlite", "rows", slices, 1, argv[1]);
  return 0;
}
