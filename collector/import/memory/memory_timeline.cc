#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "collector/import/byte_source.h"
#include "collector/import/finish_trace.h"
#include "collector/import/importers.h"
#include "collector/import/json_scan.h"
#include "collector/import/largest_allocation.h"
#include "collector/import/optional_values.h"
#include "collector/import/text_window.h"

namespace ranktap::collector {
namespace {

// torch.profiler._memory_profiler.Action
enum Action { kPreexisting = 1, kCreate, kIncrementVersion, kDestroy };
constexpr int64_t kCategories = 8;

class TimelineFile {
 public:
  TimelineFile(ByteSource* source, Trace* trace)
      : source_(source), window_(source), trace_(trace) {}

  void Read() {
    if (window_.Peek() == '[') window_.MoveTo(window_.begin() + 1);
    while (true) {
      const char next = window_.Peek();
      if (next == ',') {
        window_.MoveTo(window_.begin() + 1);
      } else if (next == '[') {
        if (!ReadRow()) break;
      } else if (next == ']') {
        closed_ = true;
        break;
      } else if (next == 0 && window_.begin() == window_.end()) {
        break;
      } else {
        SkipToRow("not a row");
      }
    }
    if (!closed_ && !damaged_at_end_) {
      Damaged(window_.OffsetOf(window_.end()), 0,
              source_->damage().empty() ? "the list of rows has no end" : source_->damage());
    }
    Finish();
  }
  size_t rows() const { return trace_->allocations.size(); }

 private:
  // False: the file ends inside the row.
  bool ReadRow() {
    const char* close = nullptr;
    while (true) {
      close = std::find(window_.begin(), window_.end(), ']');
      if (close != window_.end()) break;
      if (window_.Extend()) continue;
      Damaged(window_.OffsetOf(window_.begin()),
              static_cast<uint64_t>(window_.end() - window_.begin()),
              source_->damage().empty() ? "a row is cut off" : source_->damage());
      damaged_at_end_ = true;
      return false;
    }
    std::array<int64_t, 4> row{};
    const std::string_view text(window_.begin() + 1,
                                static_cast<size_t>(close - window_.begin()) - 1);
    if (Parse(text, &row) && Add(row)) {
      window_.MoveTo(close + 1);
    } else {
      SkipToRow("a row is not [time, action, bytes, category]");
    }
    return true;
  }

  static bool Parse(std::string_view text, std::array<int64_t, 4>* row) {
    for (size_t i = 0; i < row->size(); ++i) {
      const size_t comma = i + 1 < row->size() ? text.find(',') : text.size();
      if (comma == text.npos) return false;
      std::string_view number = text.substr(0, comma);
      number.remove_prefix(std::min(number.find_first_not_of(" \n\r\t"), number.size()));
      number = number.substr(0, number.find_last_not_of(" \n\r\t") + 1);
      if (!ParseInteger(number, &(*row)[i])) return false;
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return true;
  }

  bool Add(const std::array<int64_t, 4>& row) {
    const auto [time, action, bytes, category] = row;
    if (action < kPreexisting || action > kDestroy || category < 0 || category >= kCategories ||
        time < -1 || bytes < -kLargestAllocation || bytes > kLargestAllocation) {
      return false;
    }
    Allocations& all = trace_->allocations;
    const size_t at = all.size();
    if (time >= 0 && first_ns_ < 0) first_ns_ = time;
    if (time >= 0) first_ns_ = std::min(first_ns_, time);
    all.start.push_back(time);
    all.end.push_back(time);
    all.writer.push_back(0);
    all.bytes.push_back(bytes);
    SetOptional(&all.category, at, static_cast<uint8_t>(category + 1));
    SetOptional(&all.relabelled, at, static_cast<uint8_t>(action == kIncrementVersion));
    ++trace_->events;
    return true;
  }

  // Goes on at the next bracket behind this one.
  void SkipToRow(const std::string& what) {
    const uint64_t offset = window_.OffsetOf(window_.begin());
    window_.MoveTo(window_.begin() + 1);
    while (true) {
      const char* const open = std::find(window_.begin(), window_.end(), '[');
      window_.MoveTo(open);
      if (open != window_.end() || !window_.Extend()) break;
    }
    Damaged(offset, window_.OffsetOf(window_.begin()) - offset, what);
  }

  void Damaged(uint64_t offset, uint64_t bytes, const std::string& what) {
    if (trace_->damage.size() < kDamageListed) trace_->damage.push_back({offset, bytes, what});
  }

  // Times count from the first; what existed before is there from then on.
  void Finish() {
    const int64_t base = std::max<int64_t>(first_ns_, 0);
    Allocations& all = trace_->allocations;
    for (size_t i = 0; i < all.size(); ++i) {
      const int64_t time = all.start[i] < 0 ? 0 : all.start[i] - base;
      all.start.Set(i, time), all.end.Set(i, time);
    }
    trace_->base_time_ns = trace_->realtime_offset_ns = base;
    trace_->writers.emplace_back().name = "allocator";
    FinishTrace(trace_);
  }

  ByteSource* source_;
  TextWindow window_;
  Trace* trace_;
  int64_t first_ns_ = -1;
  bool closed_ = false, damaged_at_end_ = false;
};

}  // namespace

Result<Trace> ImportMemoryTimeline(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  if (!source) return Failure{source.message()};
  Trace trace;
  trace.path = path;
  trace.origin = TraceOrigin::kMemory;
  TimelineFile file(&*source, &trace);
  file.Read();
  if (file.rows() == 0) {
    return Failure{fmt::format(
        "{}: no [time, action, bytes, category] rows in it: of torch's memory timelines the kind "
        "that export_memory_timeline(\"X.raw.json.gz\") writes can be read",
        path)};
  }
  CloseTrace("torch.profiler", source->file_bytes(), &trace);
  return trace;
}

bool LooksLikeMemoryTimeline(std::string_view head) {
  const size_t first = FirstOfJson(head);
  if (first == head.npos || head[first] != '[') return false;
  const size_t second = FirstOfJson(head, first + 1);
  return second != head.npos && head[second] == '[';
}

}  // namespace ranktap::collector
