// The host's side of a Kineto trace.
#include <map>
#include <string>

#include "collector/export/chrome/chrome_events.h"
#include "collector/facts/gloo_calls.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/nvtx_payload.h"

namespace ranktap::collector {
namespace {

class HostWriter {
 public:
  HostWriter(const Trace& trace, ChromeEvents* events) : trace_(trace), events_(events) {}

  void Write() {
    WriteRanges();
    WriteCalls(trace_.api_calls);
    WriteCalls(trace_.event_calls);
  }

 private:
  // Quoted and escaped once per id.
  const std::string& Quoted(std::map<uint32_t, std::string>* cache, uint32_t id,
                            std::string (*readable)(std::string_view)) {
    auto [at, is_new] = cache->try_emplace(id);
    if (is_new) {
      JsonText text;
      text.Text(SanitizedName(readable(trace_.dictionary.String(id))));
      at->second = text.str();
    }
    return at->second;
  }

  void WriteRanges() {
    for (const Ranges* const ranges : {&trace_.ranges, &trace_.marks}) {
      for (size_t i = 0; i < ranges->size(); ++i) WriteRange(*ranges, i);
    }
  }

  // Calls of modules and steps are written as torch.profiler writes them: chrome_modules.cc, and
  // ProfilerStep#N.
  bool IsWrittenAsTorchDoes(const Ranges& ranges, size_t i) const {
    const std::string_view domain = trace_.dictionary.Domain(ranges.domain[i]);
    return trace_.is_ours() && (domain == kModuleDomain || domain == kStepDomain);
  }

  void WriteRange(const Ranges& ranges, size_t i) {
    const bool kept = static_cast<RangeKind>(ranges.kind[i]) == RangeKind::kMark
                          ? events_->options().KeepsMoment(ranges.start[i])
                          : events_->options().Keeps(ranges.start[i], ranges.end[i]);
    if (!kept || IsBookkeeping(trace_, ranges, i) || IsWrittenAsTorchDoes(ranges, i)) return;
    const std::string& name = Quoted(&range_names_, ranges.name[i],
                                     [](std::string_view text) { return std::string(text); });
    const int32_t thread = ThreadOf(trace_, ranges.writer[i]);
    switch (static_cast<RangeKind>(ranges.kind[i])) {
      case RangeKind::kPushPop:
        events_->BeginSlice(events_->options().ranges_as_operators ? "cpu_op" : "user_annotation",
                            name, trace_.info.pid, thread, ranges.start[i], ranges.end[i]);
        WriteRangeArgs(ranges, i);
        return events_->EndArgs();
      case RangeKind::kStartEnd:
        WriteAsync("b", name, thread, ranges.start[i], i);
        events_->json().Raw(",\"args\":{");
        WriteRangeArgs(ranges, i);
        events_->EndArgs();
        WriteAsync("e", name, thread, ranges.end[i], i);
        events_->json().Raw("}");
        return;
      case RangeKind::kMark:
        events_->Begin()
            .Raw("{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"user_annotation\",\"name\":")
            .Raw(name);
        events_->json()
            .Raw(",\"pid\":")
            .Number(trace_.info.pid)
            .Raw(",\"tid\":")
            .Number(thread)
            .Raw(",");
        events_->Time(ranges.start[i]);
        events_->json().Raw(",\"args\":{");
        WriteRangeArgs(ranges, i);
        return events_->EndArgs();
    }
  }

  void WriteAsync(std::string_view phase, std::string_view name, int32_t thread, int64_t time,
                  size_t id) {
    events_->Begin()
        .Raw("{\"ph\":\"")
        .Raw(phase)
        .Raw("\",\"cat\":\"user_annotation\",\"name\":")
        .Raw(name);
    events_->json().Raw(",\"id\":").Number(id).Raw(",\"pid\":").Number(trace_.info.pid);
    events_->json().Raw(",\"tid\":").Number(thread).Raw(",");
    events_->Time(time);
  }

  void WriteRangeArgs(const Ranges& ranges, size_t i) {
    const std::string_view domain = trace_.dictionary.Domain(ranges.domain[i]);
    if (!domain.empty()) events_->TextArg("domain", domain);
    if (ranges.category.At(i) != 0) events_->Arg("category", ranges.category.At(i));
    if (ranges.unfinished.At(i) != 0) events_->Arg("unfinished", 1);
    if (&ranges == &trace_.ranges) {
      WriteCollectiveArgs(gloo_calls_.OfRange(static_cast<uint32_t>(i)), events_);
    }
    for (const PayloadField& field : DecodePayload(trace_, ranges, i)) {
      events_->Separate();
      events_->json().Text(SanitizedName(field.name)).Raw(":");
      WritePayloadValue(field.value);
    }
  }

  void WritePayloadValue(const PayloadValue& value) {
    if (const auto* number = std::get_if<uint64_t>(&value)) events_->json().Number(*number);
    if (const auto* number = std::get_if<int64_t>(&value)) events_->json().Number(*number);
    if (const auto* number = std::get_if<double>(&value)) events_->json().Number(*number);
    if (const auto* text = std::get_if<std::string>(&value)) events_->json().Text(*text);
  }

  void WriteCalls(const ApiCalls& calls) {
    for (size_t i = 0; i < calls.size(); ++i) {
      if (!events_->options().Keeps(calls.start[i], calls.end[i])) continue;
      const ApiFunction& api = trace_.dictionary.Api(calls.api[i]);
      std::string& name = api_names_[calls.api[i]];
      if (name.empty()) {
        JsonText text;
        text.Text(api.name.empty() ? "(name missing)" : api.name);
        name = text.str();
      }
      const bool driver = api.domain == proto::ApiDomain::kDriver;
      events_->BeginSlice(driver ? "cuda_driver" : "cuda_runtime", name, trace_.info.pid,
                          ThreadOf(trace_, calls.writer[i]), calls.start[i], calls.end[i]);
      if (calls.external_id.At(i) != 0) events_->Arg("External id", calls.external_id.At(i));
      events_->Arg("cbid", api.cbid);
      events_->Arg("correlation", calls.correlation[i]);
      if (calls.status.At(i) != 0) events_->Arg("status", calls.status.At(i));
      events_->EndArgs();
    }
  }

  const Trace& trace_;
  ChromeEvents* events_;
  GlooCalls gloo_calls_{trace_};
  std::map<uint32_t, std::string> range_names_, api_names_;
};

}  // namespace

void WriteHostEvents(const Trace& trace, ChromeEvents* events) {
  HostWriter(trace, events).Write();
}

}  // namespace ranktap::collector
