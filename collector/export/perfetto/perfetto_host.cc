// The host's side of a Perfetto trace.
#include <fmt/core.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "collector/export/cupti_names.h"
#include "collector/export/exporters.h"
#include "collector/export/json_text.h"
#include "collector/export/launch_arrows.h"
#include "collector/export/perfetto/nested_tracks.h"
#include "collector/export/perfetto/perfetto_annotations.h"
#include "collector/export/perfetto/perfetto_exporter.h"
#include "collector/export/perfetto/perfetto_framework.h"
#include "collector/export/thread_number.h"
#include "collector/facts/framework/backward_spans.h"
#include "collector/facts/framework/python_functions.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/samples/sampled_spans.h"
#include "collector/facts/samples/thread_purposes.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/nvtx_payload.h"
#include "collector/trace/table_merge.h"

namespace ranktap::collector {
namespace {

class HostWriter {
 public:
  explicit HostWriter(PerfettoTrace* state)
      : state_(*state),
        trace_(state->trace),
        packets_(*state->packets),
        arrows_(state->arrows),
        framework_(state) {
    tracks_of_writer_.resize(trace_.writers.size() + 1);
  }

  void Write() {
    const ApiCalls* const calls[] = {&trace_.api_calls, &trace_.event_calls};
    const Ranges* const ranges[] = {&trace_.ranges, &trace_.marks};
    for (uint32_t api = 0; api < trace_.dictionary.apis(); ++api) {
      categories_.push_back(CategoryOf(api));
    }
    // Among equal spans the caller's kind comes first.
    MergeTables({{&trace_.python_calls.start, &trace_.python_calls.end},
                 {&trace_.operators.start, &trace_.operators.end},
                 {&trace_.ranges.start, &trace_.ranges.end},
                 {&trace_.marks.start, &trace_.marks.end},
                 {&trace_.api_calls.start, &trace_.api_calls.end},
                 {&trace_.event_calls.start, &trace_.event_calls.end}},
                [&](size_t table, size_t row) {
                  if (table >= 4) return WriteCall(*calls[table - 4], row, table == 4);
                  if (table == 0) return WritePythonCall(row);
                  if (table == 1) return WriteOperator(row);
                  WriteRange(*ranges[table - 2], row);
                });
    WriteBackwards();
    WriteFunctions();
    WriteSamples();
    WriteGaps();
    WriteOverheads();
    for (auto& [thread, tracks] : threads_) tracks->Finish();
    for (auto& [name, tracks] : others_) tracks->Finish();
  }

 private:
  [[gnu::always_inline]] NestedTracks& Thread(uint16_t writer) {
    NestedTracks*& tracks =
        tracks_of_writer_[std::min<size_t>(writer, tracks_of_writer_.size() - 1)];
    if (tracks == nullptr) tracks = MakeThread(writer);
    return *tracks;
  }
  NestedTracks* MakeThread(uint16_t writer) {
    const bool known = writer < trace_.writers.size();
    const int64_t thread = known ? std::abs(trace_.writers[writer].thread) : 0;
    auto& made = threads_[thread];
    if (made == nullptr) {
      const std::string given = known ? SanitizedName(trace_.writers[writer].name) : "";
      const std::string name = given.empty() ? fmt::format("thread {}", thread) : given;
      made = std::make_unique<NestedTracks>(
          &packets_, [this, name, thread, first = uint64_t{0}](size_t n, int64_t start) mutable {
            const int order = state_.order_in_process++;
            if (n > 0) return packets_.AddLane({name + " (overlapping)", first, order}, start);
            PerfettoTrack* const track =
                packets_.AddThread({name, state_.process, order}, state_.pid, thread, start);
            first = track->uuid;
            return track;
          });
    }
    return made.get();
  }

  // A track of the process for what belongs to no thread.
  NestedTracks& Other(const std::string& name) {
    auto& tracks = others_[name];
    if (tracks == nullptr) {
      tracks = std::make_unique<NestedTracks>(&packets_, [this, name](size_t, int64_t start) {
        return packets_.AddLane({name, state_.process, state_.order_in_process++}, start);
      });
    }
    return *tracks;
  }

  void WriteRange(const Ranges& ranges, size_t i) {
    const auto kind = static_cast<RangeKind>(ranges.kind[i]);
    const int64_t start = ranges.start[i], end = ranges.end[i];
    const bool moment = kind == RangeKind::kMark;
    if (moment ? !state_.options.KeepsMoment(start) : !state_.options.Keeps(start, end)) return;
    if (IsBookkeeping(trace_, ranges, i)) return;
    const uint32_t string = ranges.name[i];
    const PerfettoEvent event{.name = state_.StringName(string),
                              .category = PerfettoCategory::kRange,
                              .arguments = RangeArguments(ranges, i)};
    // A start/end range may begin and end on different threads and overlap any other.
    NestedTracks& tracks =
        kind == RangeKind::kStartEnd ? Other("NVTX start/end ranges") : Thread(ranges.writer[i]);
    const int64_t shift = state_.shift_ns;
    PerfettoTrack* const track =
        moment ? tracks.At(start + shift) : tracks.Open(start + shift, end + shift);
    packets_.Name(track, event.name,
                  [&] { return SanitizedName(trace_.dictionary.String(string)); });
    if (moment) return packets_.Instant(track, start + shift, event);
    packets_.Begin(track, start + shift, event);
  }

  void WritePythonCall(size_t i) {
    const PythonCalls& calls = trace_.python_calls;
    if (!state_.options.Keeps(calls.start[i], calls.end[i])) return;
    WriteNamed(calls.writer[i], calls.start[i], calls.end[i], calls.name[i],
               framework_.PythonCall(i));
  }

  void WriteOperator(size_t i) {
    const Operators& ops = trace_.operators;
    if (!state_.options.Keeps(ops.start[i], ops.end[i])) return;
    WriteNamed(ops.writer[i], ops.start[i], ops.end[i], ops.name[i], framework_.Operator(i));
  }

  void WriteNamed(uint16_t writer, int64_t start, int64_t end, uint32_t string,
                  const PerfettoEvent& event) {
    const int64_t shift = state_.shift_ns;
    PerfettoTrack* const track = Thread(writer).Open(start + shift, end + shift);
    packets_.Name(track, event.name,
                  [&] { return SanitizedName(trace_.dictionary.String(string)); });
    packets_.Begin(track, start + shift, event);
  }

  const std::string& RangeArguments(const Ranges& ranges, size_t i) {
    arguments_.Clear();
    const std::string_view domain = trace_.dictionary.Domain(ranges.domain[i]);
    if (!domain.empty()) arguments_.Add(Note::kDomain, domain);
    if (ranges.category.At(i) != 0) arguments_.Add(Note::kCategory, ranges.category.At(i));
    if (ranges.unfinished.At(i) != 0) arguments_.Add(Note::kUnfinished, uint64_t{1});
    if (ranges.payload_type.At(i) != 0 || ranges.inline_payload.At(i) != 0) {
      for (const PayloadField& field : DecodePayload(trace_, ranges, i)) {
        std::visit([&](const auto& value) { arguments_.Add(SanitizedName(field.name), value); },
                   field.value);
      }
    }
    return arguments_.bytes();
  }

  PerfettoCategory CategoryOf(uint32_t api) const {
    return trace_.dictionary.Api(api).domain == proto::ApiDomain::kDriver
               ? PerfettoCategory::kDriver
               : PerfettoCategory::kRuntime;
  }

  void WriteCall(const ApiCalls& calls, size_t i, bool launches) {
    const int64_t start = calls.start[i], end = calls.end[i];
    std::span<const uint64_t> arrows;
    if (launches) arrows = arrows_.From(static_cast<uint32_t>(i));
    if (arrows.empty() && !state_.options.Keeps(start, end)) return;
    const uint32_t api = calls.api[i];
    char arguments[32];
    char* last = arguments;
    if (calls.status.At(i) != 0) {
      last = PutNote(last, Note::kStatus, static_cast<uint32_t>(calls.status.At(i)));
    }
    const uint32_t name = state_.ApiName(api);
    const int64_t shift = state_.shift_ns;
    PerfettoTrack* const track = Thread(calls.writer[i]).Open(start + shift, end + shift);
    packets_.Name(track, name, [&]() -> std::string_view {
      const std::string& text = trace_.dictionary.Api(api).name;
      return text.empty() ? std::string_view("(name missing)") : text;
    });
    PerfettoEvent event{.name = name,
                        .category = api < categories_.size() ? categories_[api] : CategoryOf(api),
                        .correlation = calls.correlation[i],
                        .arguments = {arguments, static_cast<size_t>(last - arguments)}};
    if (state_.options.render_stages) {
      event.submissions = arrows;
      packets_.Begin(track, start + shift, event);
    } else {
      event.flows = arrows;
      packets_.Begin(track, start + shift, event);
    }
  }

  // A slice of a name that few share.
  void WriteOther(NestedTracks* tracks, const std::string& name, PerfettoCategory category,
                  int64_t start, int64_t end) {
    if (!state_.options.Keeps(start, end)) return;
    const auto known = own_names_.try_emplace(name, own_names_.size()).first->second;
    const uint32_t iid = state_.OwnName(2 * known);  // the devices' side has the odd ones
    const int64_t shift = state_.shift_ns;
    PerfettoTrack* const track = tracks->Open(start + shift, end + shift);
    packets_.Name(track, iid, [&]() -> std::string_view { return name; });
    packets_.Begin(track, start + shift,
                   {.name = iid, .category = category, .arguments = arguments_.bytes()});
  }

  // Beside their threads: what is on these is written in the order of time already.
  void WriteBackwards() {
    arguments_.Clear();
    for (const BackwardSpan& span : BackwardSpans(trace_)) {
      WriteOther(
          &Other(fmt::format("backward of modules, thread {}", ThreadOf(trace_, span.writer))),
          std::string(SanitizedName(trace_.dictionary.String(span.module))),
          PerfettoCategory::kRange, span.start, span.end);
    }
  }

  void WriteFunctions() {
    for (const PythonFunction& function : PythonFunctions(trace_)) {
      arguments_.Clear();
      if (function.line != 0) arguments_.Add("line", uint64_t{function.line});
      WriteOther(
          &Other(fmt::format("Python functions, thread {}", ThreadOf(trace_, function.writer))),
          std::string(SanitizedName(function.name)), PerfettoCategory::kPython, function.start,
          function.end);
    }
  }

  void WriteSamples() {
    const HostSamples& samples = SamplesOf(trace_);
    const ThreadPurposes& purposes = PurposesOf(trace_);
    for (const SampledSpan& span : SpansOf(samples)) {
      const SampledFrame& frame = *samples.Frame(span.frame);
      arguments_.Clear();
      arguments_.Add("on_cpu_ns", static_cast<uint64_t>(span.cpu_ns));
      if (!frame.file.empty()) arguments_.Add("file", std::string_view(SanitizedName(frame.file)));
      const std::string thread = span.thread == samples.main_thread()
                                     ? fmt::format("thread {}", span.thread)
                                     : purposes.NameOfThread(span.thread);
      WriteOther(&Other("Python samples, " + thread),
                 SanitizedName(
                     fmt::format("{} ({}:{})", frame.function, ShortFile(frame.file), frame.line)),
                 PerfettoCategory::kPython, span.start, span.end);
    }
  }

  void WriteGaps() {
    for (const Gap& gap : trace_.gaps) {
      arguments_.Clear();
      arguments_.Add(Note::kReason, std::string_view(gap.detail));
      WriteOther(&Other("capture off"), fmt::format("not captured: {}", gap.source),
                 PerfettoCategory::kGap, gap.start, gap.end);
    }
  }

  void WriteOverheads() {
    arguments_.Clear();
    for (const proto::OverheadEvent& event : trace_.overheads) {
      WriteOther(&Other("CUPTI overhead"), std::string(OverheadName(event.overhead_kind)),
                 PerfettoCategory::kOverhead, static_cast<int64_t>(event.start_ns),
                 static_cast<int64_t>(event.end_ns));
    }
  }

  PerfettoTrace& state_;
  const Trace& trace_;
  PerfettoPackets& packets_;
  LaunchArrows& arrows_;
  FrameworkEvents framework_;
  Annotations arguments_;
  std::vector<PerfettoCategory> categories_;  // by API function
  std::vector<NestedTracks*> tracks_of_writer_;
  std::map<int64_t, std::unique_ptr<NestedTracks>> threads_;
  std::map<std::string, std::unique_ptr<NestedTracks>> others_;
  std::map<std::string, uint32_t> own_names_;
};

}  // namespace

void WritePerfettoHost(PerfettoTrace* state) { HostWriter(state).Write(); }

}  // namespace ranktap::collector
