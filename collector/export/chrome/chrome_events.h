// Objects of a Kineto trace's "traceEvents", one call each; times are the trace's nanoseconds. The
// writer that the parts of the chrome exporter share.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "collector/export/chrome/tracks_apart.h"
#include "collector/export/export_options.h"
#include "collector/export/json_text.h"
#include "collector/export/output_file.h"
#include "collector/export/thread_number.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

class ChromeEvents {
 public:
  // `shift_ns` is added to every time; the window of `options` is on the trace's own clock.
  ChromeEvents(OutputFile* file, int64_t shift_ns, const ExportOptions& options)
      : file_(file), shift_ns_(shift_ns), options_(options) {}

  const ExportOptions& options() const { return options_; }

  JsonText& json() { return json_; }
  void Flush(size_t limit = 0) {
    if (json_.size() <= limit) return;
    file_->Write(json_.view());
    json_.Truncate(0);
  }

  // Starts the next object; the caller writes it whole.
  JsonText& Begin() {
    Flush(kBufferBytes);
    if (!first_event_) json_.Raw(",");
    first_event_ = false;
    return json_.Raw("\n");
  }
  void Time(int64_t ns) { json_.Raw("\"ts\":").Microseconds(ns + shift_ns_); }

  // A slice up to and with its "args":{ ; EndArgs closes both.
  template <typename Pid, typename Tid>
  void BeginSlice(std::string_view category, std::string_view quoted_name, Pid pid, Tid tid,
                  int64_t start, int64_t end) {
    Begin().Raw("{\"ph\":\"X\",\"cat\":\"").Raw(category).Raw("\",\"name\":").Raw(quoted_name);
    json_.Raw(",\"pid\":").Number(pid).Raw(",\"tid\":").Number(tid).Raw(",");
    Time(start);
    json_.Raw(",\"dur\":").Microseconds(end - start).Raw(",\"args\":{");
  }
  void EndArgs() { json_.Raw("}}"); }

  // The tid for a slice that need not nest in those of `tid`: slices of one tid nest, as viewers
  // and chakra_trace_link want it. By start in each `what`, which names the track.
  template <typename Pid>
  int64_t TrackApart(std::string_view what, Pid pid, int64_t tid, int64_t start, int64_t end) {
    const TracksApart::Track track = apart_.At(what, pid, tid, start, end);
    if (track.is_new) {
      NameTrack("thread_name", pid, track.tid, start);
      TextArg("name", track.name);
      EndArgs();
      NameTrack("thread_sort_index", pid, track.tid, start);
      Arg("sort_index", tid);
      EndArgs();
    }
    return track.tid;
  }
  template <typename Value>
  void Arg(std::string_view name, Value value) {
    Separate();
    json_.Raw("\"").Raw(name).Raw("\":").Number(value);
  }
  void TextArg(std::string_view name, std::string_view value) {
    Separate();
    json_.Raw("\"").Raw(name).Raw("\":").Text(value);
  }
  // Before an argument that the caller writes.
  void Separate() {
    if (json_.back() != '{') json_.Raw(",");
  }

  // An end of an arrow: "s" where it begins, "f" where it ends.
  template <typename Tid>
  void Flow(std::string_view phase, uint64_t id, uint32_t pid, Tid tid, int64_t time,
            std::string_view category) {
    Begin().Raw("{\"ph\":\"").Raw(phase).Raw("\",\"id\":").Number(id);
    json_.Raw(",\"pid\":").Number(pid).Raw(",\"tid\":").Number(tid).Raw(",");
    Time(time);
    json_.Raw(",\"cat\":\"").Raw(category).Raw("\",\"name\":\"").Raw(category);
    json_.Raw(phase == "f" ? "\",\"bp\":\"e\"}" : "\"}");
  }

 private:
  static constexpr size_t kBufferBytes = 256u << 10;

  template <typename Pid>
  void NameTrack(std::string_view what, Pid pid, int64_t tid, int64_t start) {
    Begin().Raw("{\"name\":\"").Raw(what).Raw("\",\"ph\":\"M\",");
    Time(start);
    json_.Raw(",\"pid\":").Number(pid).Raw(",\"tid\":").Number(tid).Raw(",\"args\":{");
  }

  OutputFile* file_;
  int64_t shift_ns_;
  ExportOptions options_;
  JsonText json_;
  TracksApart apart_;
  bool first_event_ = true;
};

// A framework's own records: operators, Python calls, autograd's arrows, allocations.
void WriteFrameworkEvents(const Trace& trace, ChromeEvents* events);
// Arguments of an operator or kernel that is part of a collective; `number`: 1 + its index.
void WriteCollectiveArgs(const Trace& trace, uint32_t number, ChromeEvents* events);
// nullptr: it is none. Without a type its elements are not known, and are left out.
void WriteCollectiveArgs(const Collective* described, ChromeEvents* events);
// Whether each operator holds one end of a range: PyTorch runs one that ends a label as an operator
// where a dispatch mode is on.
std::vector<bool> OperatorsAcrossRanges(const Trace& trace);
// ProfilerStep#N for each step.
void WriteSteps(const Trace& trace, ChromeEvents* events);
// The calls of modules that our hooks saw, as torch.profiler's Python calls.
void WriteModuleCalls(const Trace& trace, ChromeEvents* events);
// The program's threads: NVTX and API calls.
void WriteHostEvents(const Trace& trace, ChromeEvents* events);
// The devices' work, and the arrows that lead there.
void WriteDeviceEvents(const Trace& trace, ChromeEvents* events);

}  // namespace ranktap::collector
