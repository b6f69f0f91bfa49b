#include "collector/export/exporters.h"

#include <string_view>
#include <vector>

#include "collector/export/cupti_names.h"
#include "collector/export/json_text.h"
#include "collector/export/output_file.h"
#include "collector/export/run_clock.h"
#include "collector/export/thread_number.h"
#include "collector/file/printable.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr size_t kCsvBufferBytes = 256u << 10;

// RFC 4180: in quotes, quotes doubled.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char byte : PrintableCell(SanitizedName(text)))
    quoted.append(byte == '"' ? 2 : 1, byte);
  return quoted + "\"";
}

class CsvWriter {
 public:
  CsvWriter(OutputFile* file, const Trace& trace, int64_t shift_ns, const ExportOptions& options)
      : file_(file),
        trace_(trace),
        shift_ns_(shift_ns),
        options_(options),
        names_(trace.dictionary.strings()),
        kernel_names_(trace.dictionary.strings()),
        api_names_(trace.dictionary.apis()) {}

  void Write() {
    WriteWork();
    WriteCalls(trace_.api_calls);
    WriteCalls(trace_.event_calls);
    WriteRanges(trace_.ranges);
    WriteRanges(trace_.marks);
    WriteFramework();
    file_->Write(out_.view());
  }

 private:
  // Rank, kind, name, start and duration; false: the row is left out.
  bool Begin(std::string_view kind, const std::string& quoted_name, int64_t start, int64_t end) {
    if (start == kUntimed || !options_.Keeps(start, end)) return false;
    if (out_.size() > kCsvBufferBytes) {
      file_->Write(out_.view());
      out_.Truncate(0);
    }
    if (trace_.info.rank) out_.Number(*trace_.info.rank);
    out_.Raw(",").Raw(kind).Raw(",").Raw(quoted_name).Raw(",").Number(start + shift_ns_);
    out_.Raw(",").Number(end - start);
    return true;
  }
  void OnLane(const DeviceWork& work, size_t i) {
    const Lane& lane = trace_.lanes[work.lane[i]];
    out_.Raw(",").Number(lane.device).Raw(",").Number(StreamNumber(lane.stream)).Raw(",,");
    out_.Number(work.correlation[i]).Raw(",");
  }
  void OnThread(uint16_t writer) { out_.Raw(",,,").Number(ThreadOf(trace_, writer)).Raw(","); }

  const std::string& Name(uint32_t id) {
    std::string& name = At(&names_, id);
    if (name.empty()) name = Quoted(trace_.dictionary.String(id));
    return name;
  }
  const std::string& KernelName(uint32_t id) {
    std::string& name = At(&kernel_names_, id);
    if (name.empty()) name = Quoted(ReadableKernelName(trace_.dictionary.String(id)));
    return name;
  }
  const std::string& ApiName(uint32_t id) {
    std::string& name = At(&api_names_, id);
    if (name.empty()) name = Quoted(trace_.dictionary.Api(id).name);
    return name;
  }
  static std::string& At(std::vector<std::string>* names, uint32_t id) {
    if (id >= names->size()) names->resize(id + 1);
    return (*names)[id];
  }

  void WriteWork() {
    const Kernels& kernels = trace_.kernels;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (!Begin("kernel", KernelName(kernels.name[i]), kernels.start[i], kernels.end[i])) continue;
      OnLane(kernels, i);
      out_.Raw("\n");
    }
    const Copies& copies = trace_.copies;
    for (size_t i = 0; i < copies.size(); ++i) {
      const std::string name = "\"Memcpy " + std::string(CopyKindName(copies.copy_kind[i])) + "\"";
      if (!Begin("memcpy", name, copies.start[i], copies.end[i])) continue;
      OnLane(copies, i);
      if (copies.bytes_unknown.At(i) == 0) out_.Number(copies.bytes[i]);
      out_.Raw("\n");
    }
    const Memsets& memsets = trace_.memsets;
    for (size_t i = 0; i < memsets.size(); ++i) {
      if (!Begin("memset", "\"Memset\"", memsets.start[i], memsets.end[i])) continue;
      OnLane(memsets, i);
      if (memsets.bytes_unknown.At(i) == 0) out_.Number(memsets.bytes[i]);
      out_.Raw("\n");
    }
    const GraphLaunches& graphs = trace_.graph_launches;
    for (size_t i = 0; i < graphs.size(); ++i) {
      if (!Begin("graph", "\"CUDA graph\"", graphs.start[i], graphs.end[i])) continue;
      OnLane(graphs, i);
      out_.Raw("\n");
    }
  }

  void WriteCalls(const ApiCalls& calls) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const bool driver = trace_.dictionary.Api(calls.api[i]).domain == proto::ApiDomain::kDriver;
      if (!Begin(driver ? "driver" : "runtime", ApiName(calls.api[i]), calls.start[i],
                 calls.end[i])) {
        continue;
      }
      OnThread(calls.writer[i]);
      out_.Number(calls.correlation[i]).Raw(",\n");
    }
  }

  void WriteRanges(const Ranges& ranges) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (IsBookkeeping(trace_, ranges, i)) continue;
      const bool mark = ranges.kind[i] == static_cast<uint8_t>(RangeKind::kMark);
      if (!Begin(mark ? "mark" : "range", Name(ranges.name[i]), ranges.start[i], ranges.end[i])) {
        continue;
      }
      OnThread(ranges.writer[i]);
      out_.Raw(",\n");
    }
  }

  void WriteFramework() {
    const Operators& ops = trace_.operators;
    for (size_t i = 0; i < ops.size(); ++i) {
      const bool is_operator = ops.kind[i] == static_cast<uint8_t>(OperatorKind::kOperator);
      if (!Begin(is_operator ? "operator" : "annotation", Name(ops.name[i]), ops.start[i],
                 ops.end[i])) {
        continue;
      }
      OnThread(ops.writer[i]);
      out_.Raw(",\n");
    }
    const PythonCalls& calls = trace_.python_calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (!Begin("python", Name(calls.name[i]), calls.start[i], calls.end[i])) continue;
      OnThread(calls.writer[i]);
      out_.Raw(",\n");
    }
  }

  OutputFile* file_;
  const Trace& trace_;
  int64_t shift_ns_;
  ExportOptions options_;
  JsonText out_;
  std::vector<std::string> names_, kernel_names_, api_names_;
};

}  // namespace

std::optional<Failure> WriteCsv(const Run& run, std::span<const Trace* const> traces,
                                const ExportOptions& options, const std::string& path) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  file->Write("rank,kind,name,start_ns,duration_ns,device,stream,thread,correlation,bytes\n");
  const int64_t first = FirstRealtime(run);
  for (const Trace* const trace : traces) {
    const int64_t realtime = RealtimeOffset(run, *trace);
    CsvWriter(&*file, *trace, realtime - first, options.Shifted(realtime)).Write();
  }
  return file->Close();
}

}  // namespace ranktap::collector
