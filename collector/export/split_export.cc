#include "collector/export/split_export.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "collector/export/run_clock.h"
#include "collector/file/owned_file.h"
#include "collector/trace/table_columns.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

// The largest seen among the formats that are split is 170; a wrong guess costs a second writing.
constexpr uint64_t kBytesAnEvent = 170;

// CLOCK_REALTIME of every start in the window, sorted.
std::vector<int64_t> Starts(const Run& run, std::span<const Trace* const> traces,
                            const ExportOptions& options) {
  std::vector<int64_t> starts;
  for (const Trace* const trace : traces) {
    const int64_t shift = RealtimeOffset(run, *trace);
    ForEachTable(*trace, [&](const auto& table) {
      for (const int64_t start : table.start) {
        if (start == kUntimed) continue;
        const int64_t at = start + shift;
        if (at >= options.from && at < options.to) starts.push_back(at);
      }
    });
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

// The bytes that a viewer reads: of a gzip file the last four say it, modulo 4 GiB.
uint64_t UncompressedBytes(const std::string& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error || !path.ends_with(".gz")) return error ? 0 : size;
  unsigned char last[4] = {};
  const Result<FileDescriptor> file = OpenRegularFile(path);
  if (!file || ::pread(file->get(), last, sizeof last, static_cast<off_t>(size) - 4) != 4) return 0;
  return last[0] | last[1] << 8 | last[2] << 16 | uint64_t{last[3]} << 24;
}

// "run.json.gz" -> "run.007.json.gz"
std::string PieceName(const std::string& path, size_t number) {
  const size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  const size_t dot = std::min(path.find('.', std::max<size_t>(name, name + 1)), path.size());
  char text[24];
  std::snprintf(text, sizeof text, ".%03zu", number);
  return path.substr(0, dot) + text + path.substr(dot);
}

class Splitter {
 public:
  Splitter(const Exporter& exporter, const Run& run, std::span<const Trace* const> traces,
           const ExportOptions& options, const std::string& path, uint64_t limit)
      : exporter_(exporter),
        run_(run),
        traces_(traces),
        options_(options),
        path_(path),
        limit_(limit),
        starts_(Starts(run, traces, options)) {}

  Result<std::vector<std::string>> Write() {
    const uint64_t pieces = starts_.size() * kBytesAnEvent / limit_ + 1;
    if (pieces == 1) {
      if (auto failure = exporter_.write(run_, traces_, options_, path_)) return *failure;
      if (UncompressedBytes(path_) <= limit_) return std::vector{path_};
      fs::remove(path_);
    }
    for (uint64_t i = 0; i < pieces; ++i) {
      const auto at = [&](uint64_t piece) { return starts_.size() * piece / pieces; };
      if (auto failure = WritePart(at(i), at(i + 1))) return *failure;
    }
    return std::move(written_);
  }

 private:
  int64_t EdgeAt(size_t index) const {
    return index == 0 ? options_.from : index >= starts_.size() ? options_.to : starts_[index];
  }

  // Writes the starts [begin, end); those that are equal to the first of the next part go there.
  std::optional<Failure> WritePart(size_t begin, size_t end) {
    ExportOptions part = options_;
    part.starts_inside = true;
    part.from = EdgeAt(begin);
    part.to = EdgeAt(end);
    if (part.from >= part.to) return std::nullopt;
    const std::string path = PieceName(path_, written_.size());
    if (auto failure = exporter_.write(run_, traces_, part, path)) return failure;
    const size_t middle = begin + (end - begin) / 2;
    const bool can_be_cut = EdgeAt(middle) > part.from && EdgeAt(middle) < part.to;
    if (UncompressedBytes(path) <= limit_ || !can_be_cut) {
      written_.push_back(path);
      return std::nullopt;
    }
    fs::remove(path);
    if (auto failure = WritePart(begin, middle)) return failure;
    return WritePart(middle, end);
  }

  const Exporter& exporter_;
  const Run& run_;
  std::span<const Trace* const> traces_;
  ExportOptions options_;
  std::string path_;
  uint64_t limit_;
  std::vector<int64_t> starts_;
  std::vector<std::string> written_;
};

}  // namespace

Result<std::vector<std::string>> WriteSplit(const Exporter& exporter, const Run& run,
                                            std::span<const Trace* const> traces,
                                            const ExportOptions& options, const std::string& path,
                                            uint64_t limit_bytes) {
  return Splitter(exporter, run, traces, options, path, std::max<uint64_t>(limit_bytes, 1)).Write();
}

}  // namespace ranktap::collector
