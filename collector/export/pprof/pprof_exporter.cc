#include <algorithm>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/export/exporters.h"
#include "collector/export/json_text.h"
#include "collector/export/output_file.h"
#include "collector/export/run_clock.h"
#include "collector/export/weighted_stacks.h"

namespace ranktap::collector {
namespace {

using protozero::pbf_writer;

// Field numbers of pprof's profile.proto, only those that we write.
enum Profile {
  kSampleType = 1,
  kSample = 2,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kComment = 13,
  kDefaultSampleType = 14,
};
enum ValueType { kType = 1, kUnit = 2 };
enum Sample { kLocationIds = 1, kValues = 2, kLabels = 3 };
enum Label { kKey = 1, kString = 2, kNumber = 3 };
enum Location { kLocationId = 1, kLines = 4 };
enum Line { kLineFunction = 1, kLineNumber = 2 };
enum Function { kFunctionId = 1, kName = 2, kSystemName = 3, kFileName = 4 };

constexpr std::pair<std::string_view, std::string_view> kTypes[kStackWeights] = {
    {"count", "count"},  // by the format's convention the first
    {"cuda_calls", "nanoseconds"},
    {"operators", "nanoseconds"},
    {"gpu", "nanoseconds"},
    {"python", "nanoseconds"},
    {"python_cpu", "nanoseconds"},
};

using Metadata = std::map<std::string, std::string>;
// The processes of each outermost frame. Two without a rank may share one, and then have no labels.
using Processes = std::map<uint32_t, std::vector<const Trace*>>;

class ProfileWriter {
 public:
  explicit ProfileWriter(OutputFile* file) : file_(file) { Text(""); }

  void Write(const WeightedStacks& stacks, const Processes& processes, const Metadata& metadata,
             int64_t first_ns, int64_t last_ns) {
    const bool has_samples = stacks.total(StackWeight::kSampled) != 0;
    types_ = has_samples ? kStackWeights : static_cast<size_t>(StackWeight::kSampled);
    for (const auto& [type, unit] : std::span(kTypes).first(types_)) {
      Message(kSampleType, [&, type = type, unit = unit](pbf_writer* value) {
        value->add_int64(kType, Text(type));
        value->add_int64(kUnit, Text(unit));
      });
    }
    for (const auto& [key, weights] : stacks.stacks()) {
      const std::vector<const Trace*>& of = processes.at(key.frames.front());
      WriteSample(key, weights, of.size() == 1 ? of.front() : nullptr);
    }
    for (size_t i = 0; i < stacks.frames().size(); ++i) WriteFrame(i + 1, stacks.frames()[i]);
    std::vector<int64_t> comments;
    for (const auto& [key, value] : metadata) {
      comments.push_back(Text(SanitizedName(key + "=" + value)));
    }
    const bool has_device = stacks.total(StackWeight::kGpu) != 0;
    const bool has_operators = stacks.total(StackWeight::kOperator) != 0;
    const int64_t shown_first = Text(has_device                      ? "gpu"
                                     : has_operators || !has_samples ? "operators"
                                                                     : "python");
    for (const std::string& text : texts_) {
      std::string bytes;
      pbf_writer(bytes).add_string(kStringTable, text);
      file_->Write(bytes);
    }
    std::string bytes;
    pbf_writer times(bytes);
    times.add_int64(kTimeNanos, first_ns);
    times.add_int64(kDurationNanos, last_ns - first_ns);
    times.add_packed_int64(kComment, comments.begin(), comments.end());
    times.add_int64(kDefaultSampleType, shown_first);
    file_->Write(bytes);
  }

 private:
  template <typename Fill>
  void Message(protozero::pbf_tag_type field, const Fill& fill) {
    std::string content, bytes;
    pbf_writer message(content);
    fill(&message);
    pbf_writer(bytes).add_message(field, content);
    file_->Write(bytes);
  }

  // What `pprof -tagfocus` and `-tagroot` select by. `trace`: nullptr where two have one name.
  void WriteLabels(const StackLabels& labels, const Trace* trace, pbf_writer* sample) {
    const auto write = [&](std::string_view key, protozero::pbf_tag_type field, int64_t value) {
      pbf_writer label(*sample, kLabels);
      label.add_int64(kKey, Text(key));
      label.add_int64(field, value);
    };
    if (trace != nullptr) {
      if (trace->info.rank) write("rank", kNumber, *trace->info.rank);
      write("pid", kNumber, trace->info.pid);
      const std::string& host = trace->info.host;
      if (!host.empty()) write("host", kString, Text(SanitizedName(host)));
    }
    if (labels.thread != 0) write("thread", kNumber, labels.thread);
    if (labels.step) write("step", kNumber, *labels.step);
    if (!labels.phase.empty()) write("phase", kString, Text(labels.phase));
  }

  void WriteSample(const WeightedStacks::Key& key, const WeightedStacks::Weights& weights,
                   const Trace* trace) {
    const WeightedStacks::Frames& frames = key.frames;
    Message(kSample, [&](pbf_writer* sample) {
      std::vector<uint64_t> leaf_first;
      for (size_t i = frames.size(); i-- > 0;) leaf_first.push_back(frames[i] + 1u);
      sample->add_packed_uint64(kLocationIds, leaf_first.begin(), leaf_first.end());
      const auto last = weights.begin() + static_cast<std::ptrdiff_t>(types_);
      sample->add_packed_int64(kValues, weights.begin(), last);
      WriteLabels(key.labels, trace, sample);
    });
  }

  // A function and its one place.
  void WriteFrame(uint64_t id, const WeightedFrame& frame) {
    Message(kFunction, [&](pbf_writer* function) {
      function->add_uint64(kFunctionId, id);
      function->add_int64(kName, Text(frame.function));
      function->add_int64(kSystemName, Text(frame.function));
      if (!frame.file.empty()) function->add_int64(kFileName, Text(frame.file));
    });
    Message(kLocation, [&](pbf_writer* location) {
      location->add_uint64(kLocationId, id);
      pbf_writer line(*location, kLines);
      line.add_uint64(kLineFunction, id);
      if (frame.line != 0) line.add_int64(kLineNumber, frame.line);
    });
  }

  int64_t Text(std::string_view text) {
    const auto [found, is_new] =
        indices_.try_emplace(std::string(text), static_cast<int64_t>(texts_.size()));
    if (is_new) texts_.emplace_back(text);
    return found->second;
  }

  OutputFile* file_;
  size_t types_ = kStackWeights;  // those of samples come last, and only where there are any
  std::vector<std::string> texts_;
  std::map<std::string, int64_t> indices_;
};

}  // namespace

std::optional<Failure> WritePprof(const Run& run, std::span<const Trace* const> traces,
                                  const ExportOptions& options, const std::string& path) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  WeightedStacks stacks(WeightedStacks::Labels::kOfSamples);
  Processes processes;
  int64_t last = FirstRealtime(run);
  for (const Trace* const trace : traces) {
    const int64_t realtime = RealtimeOffset(run, *trace);
    processes[AddStacks(*trace, options.Shifted(realtime), &stacks)].push_back(trace);
    last = std::max(last, trace->last_ns + realtime);
  }
  ProfileWriter(&*file).Write(stacks, processes, run.info.metadata, FirstRealtime(run), last);
  return file->Close();
}

}  // namespace ranktap::collector
