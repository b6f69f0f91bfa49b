#include "collector/export/chrome/kineto_copy.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "collector/export/chrome/kineto_walk.h"
#include "collector/export/json_text.h"
#include "collector/export/output_file.h"
#include "collector/file/read_run_info.h"
#include "collector/import/importers.h"
#include "collector/import/kineto/kineto_event.h"

namespace ranktap::collector {
namespace {

bool IsArrow(const KinetoEvent& event) {
  return event.phase == 's' || event.phase == 't' || event.phase == 'f';
}

// Which events are kept. An arrow goes with the slices that it leads from and to: Kineto gives its
// ends their starts.
class Selection {
 public:
  Selection(const ExportOptions& options, bool keeps_all)
      : options_(options), keeps_all_(keeps_all) {}

  // All events, before the first Keeps().
  void See(const KinetoEvent& event) {
    if (IsArrow(event)) {
      arrows_[ArrowOf(event)].push_back(PlaceOf(event));
    } else if (event.phase == 'X' && KeepsSlice(event)) {
      starts_.insert(PlaceOf(event));
    }
  }
  bool Keeps(const KinetoEvent& event) const {
    if (keeps_all_ || !event.has_ts || event.phase == 'M') return true;
    if (event.phase == 'X') return KeepsSlice(event);
    if (!IsArrow(event)) return options_.KeepsMoment(event.ts_ns);
    for (const size_t place : arrows_.at(ArrowOf(event))) {
      if (!starts_.contains(place)) return false;
    }
    return true;
  }

 private:
  bool KeepsSlice(const KinetoEvent& event) const {
    return options_.Keeps(event.ts_ns, event.ts_ns + event.dur_ns);
  }
  static size_t Mixed(std::string_view a, std::string_view b, int64_t c) {
    const std::hash<std::string_view> hash;
    return (hash(a) * 31 + hash(b)) * 31 + std::hash<int64_t>()(c);
  }
  static size_t PlaceOf(const KinetoEvent& event) {
    return Mixed(event.pid, event.tid, event.ts_ns);
  }
  static size_t ArrowOf(const KinetoEvent& event) {
    return Mixed(event.category.empty() ? event.name : event.category, event.id, 0);
  }

  const ExportOptions& options_;
  bool keeps_all_;
  std::unordered_set<size_t> starts_;                       // of slices that are kept
  std::unordered_map<size_t, std::vector<size_t>> arrows_;  // places of their ends
};

// What Kineto and torch.profiler write of themselves; the rest a program gave to add_metadata.
bool IsOfTheProfiler(std::string_view key) {
  for (const std::string_view known :
       {"schemaVersion", "deviceProperties", "distributedInfo", "traceEvents", "traceName",
        "displayTimeUnit", "baseTimeNanoseconds", "record_shapes", "with_stack", "with_flops",
        "with_modules", "profile_memory", "trace_id", "host_name", "mergedRanks"}) {
    if (key == known) return true;
  }
  return key.starts_with("cupti_") || key.starts_with("cuda_") || key.starts_with("roctracer_") ||
         key.starts_with("hip_") || key.starts_with("rocm_");
}

// Behind the closing quote of the JSON string that opens at `at`.
size_t EndOfString(std::string_view json, size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return std::min(at + 1, json.size());
}

// The JSON of a member's value; of its strings, those that look like a credential are gone.
std::string Shareable(std::string name, std::string_view json) {
  std::string shareable;
  for (size_t at = 0; at < json.size();) {
    if (json[at] != '"') {
      shareable += json[at++];
      continue;
    }
    const size_t end = EndOfString(json, at);
    const std::string_view quoted = json.substr(at, end - at);
    const size_t next = json.find_first_not_of(" \t\r\n", end);
    at = end;
    if (quoted.size() < 2) {
      shareable += quoted;
      continue;
    }
    std::string text(quoted.substr(1, quoted.size() - 2));
    if (next != json.npos && json[next] == ':') {
      name = text;
      shareable += quoted;
      continue;
    }
    RedactValue(name, &text);
    const bool is_changed = text != quoted.substr(1, quoted.size() - 2);
    // An escape may have been cut in two.
    if (is_changed && text.find_first_of("\"\\") != text.npos) text = "***";
    shareable += '"' + text + '"';
  }
  return shareable;
}

class Copier {
 public:
  Copier(const Selection& selection, std::set<std::string>* handed_on, OutputFile* file)
      : selection_(selection), handed_on_(handed_on), file_(file) {}

  bool Member(const std::string& key, std::string_view value) {
    if (in_events_) CloseEvents();
    const bool is_free = !IsOfTheProfiler(key);
    if (is_free && handed_on_ != nullptr) handed_on_->insert(key);
    out_.Raw(first_member_ ? "{\n" : ",\n").Raw("\"").Raw(key).Raw("\": ");
    first_member_ = false;
    if (key == "traceEvents") {
      out_.Raw("[");
      in_events_ = first_event_ = true;
    } else {
      out_.Raw(is_free ? Shareable(key, value) : std::string(value));
    }
    return true;
  }
  bool Event(std::string_view text) {
    if (first_member_) Member("traceEvents", "");  // a bare list of events
    ScanEvent(text.data(), text.data() + text.size(), &event_);
    if (!selection_.Keeps(event_)) return true;
    out_.Raw(first_event_ ? "\n" : ",\n").Raw(text);
    first_event_ = false;
    if (out_.size() > kBufferBytes) Flush();
    return true;
  }
  void Finish() {
    if (first_member_) Member("traceEvents", "");
    if (in_events_) CloseEvents();
    out_.Raw("\n}\n");
    Flush();
  }

 private:
  static constexpr size_t kBufferBytes = 256u << 10;

  void CloseEvents() {
    out_.Raw("\n]");
    in_events_ = false;
  }
  void Flush() {
    file_->Write(out_.view());
    out_.Truncate(0);
  }

  const Selection& selection_;
  std::set<std::string>* handed_on_;
  OutputFile* file_;
  JsonText out_;
  KinetoEvent event_;
  bool first_member_ = true, first_event_ = true, in_events_ = false;
};

}  // namespace

bool CanCopyKineto(const Trace& trace, const ExportOptions& options, const std::string& path) {
  std::error_code absent;
  return trace.origin == TraceOrigin::kKineto && trace.info.rank_origin != kRankInPids &&
         trace.damage.empty() && !options.hta_compat && !options.tensor_arrows &&
         !options.some_steps && std::filesystem::is_regular_file(trace.path, absent) &&
         !std::filesystem::equivalent(trace.path, path, absent);
}

std::optional<Failure> CopyKineto(const Trace& trace, const ExportOptions& options,
                                  const std::string& path) {
  const ExportOptions all;
  const bool keeps_all = options.from == all.from && options.to == all.to &&
                         options.min_duration == 0 && !options.starts_inside;
  Selection selection(options, keeps_all);
  if (!keeps_all) {
    Result<ByteSource> source = ByteSource::Open(trace.path);
    if (!source) return Failure{source.message()};
    KinetoEvent event;
    KinetoWalk(&*source).Walk([](const std::string&, std::string_view) { return true; },
                              [&](std::string_view text) {
                                ScanEvent(text.data(), text.data() + text.size(), &event);
                                selection.See(event);
                                return true;
                              });
  }
  Result<ByteSource> source = ByteSource::Open(trace.path);
  if (!source) return Failure{source.message()};
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  Copier copier(selection, options.handed_on, &*file);
  KinetoWalk walk(&*source);
  walk.Walk(
      [&](const std::string& key, std::string_view value) { return copier.Member(key, value); },
      [&](std::string_view text) { return copier.Event(text); });
  copier.Finish();
  if (!walk.damage().empty()) return Failure{trace.path + ": " + walk.damage()};
  return file->Close();
}

}  // namespace ranktap::collector
