#include <array>
#include <string_view>

#include "collector/export/exporters.h"
#include "collector/export/json_text.h"
#include "collector/export/output_file.h"
#include "collector/export/run_clock.h"
#include "collector/export/thread_number.h"
#include "collector/export/weighted_stacks.h"

namespace ranktap::collector {
namespace {

// Speedscope shows one profile at a time; a file has those that have something to show.
constexpr std::array<std::pair<StackWeight, std::string_view>, 5> kProfiles = {{
    {StackWeight::kGpu, "GPU time, by host stack"},
    {StackWeight::kOperator, "host time in operators"},
    {StackWeight::kCall, "host time in CUDA calls that launch nothing"},
    {StackWeight::kSampled, "Python threads, by samples"},
    {StackWeight::kSampledCpu, "Python threads on a CPU, by samples"},
}};

class SpeedscopeWriter {
 public:
  explicit SpeedscopeWriter(OutputFile* file) : file_(file) {}

  void Write(const WeightedStacks& stacks, const std::string& name) {
    JsonText out;
    out.Raw("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":");
    out.Text(SanitizedName(name)).Raw(",\"exporter\":\"ranktap\",\"activeProfileIndex\":0,");
    out.Raw("\"shared\":{\"frames\":[");
    for (const WeightedFrame& frame : stacks.frames()) {
      if (&frame != &stacks.frames().front()) out.Raw(",\n");
      out.Raw("{\"name\":").Text(frame.function);
      if (!frame.file.empty()) out.Raw(",\"file\":").Text(frame.file);
      if (frame.line != 0) out.Raw(",\"line\":").Number(frame.line);
      out.Raw("}");
    }
    out.Raw("]},\"profiles\":[");
    file_->Write(out.view());
    bool any = false;
    for (const auto& [weight, title] : kProfiles) {
      if (stacks.total(weight) == 0) continue;
      if (any) file_->Write(",\n");
      WriteProfile(stacks, weight, title);
      any = true;
    }
    // A file without a profile is none.
    if (!any) WriteProfile(stacks, kProfiles[0].first, kProfiles[0].second);
    file_->Write("]}\n");
  }

 private:
  void WriteProfile(const WeightedStacks& stacks, StackWeight weight, std::string_view title) {
    JsonText samples, weights;
    const int64_t total = stacks.total(weight);
    for (const auto& [key, all] : stacks.stacks()) {
      const WeightedStacks::Frames& frames = key.frames;
      const int64_t ns = all[static_cast<size_t>(weight)];
      if (ns == 0) continue;
      if (samples.size() != 0) samples.Raw(",\n"), weights.Raw(",");
      samples.Raw("[");
      for (size_t i = 0; i < frames.size(); ++i) {
        if (i != 0) samples.Raw(",");
        samples.Number(frames[i]);
      }
      samples.Raw("]");
      weights.Number(ns);
    }
    JsonText out;
    out.Raw("{\"type\":\"sampled\",\"name\":").Text(title);
    out.Raw(",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":").Number(total);
    out.Raw(",\"samples\":[");
    file_->Write(out.view());
    file_->Write(samples.view());
    file_->Write("],\"weights\":[");
    file_->Write(weights.view());
    file_->Write("]}");
  }

  OutputFile* file_;
};

}  // namespace

std::optional<Failure> WriteSpeedscope(const Run& run, std::span<const Trace* const> traces,
                                       const ExportOptions& options, const std::string& path) {
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  WeightedStacks stacks;
  for (const Trace* const trace : traces) {
    AddStacks(*trace, options.Shifted(RealtimeOffset(run, *trace)), &stacks);
  }
  SpeedscopeWriter(&*file).Write(stacks, "ranktap");
  return file->Close();
}

}  // namespace ranktap::collector
