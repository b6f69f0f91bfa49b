#include "collector/file/json.h"
#include "collector/import/finish_trace.h"
#include "collector/import/importers.h"
#include "collector/import/json_scan.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "collector/import/kineto/kineto_event.h"
#include "collector/import/kineto/kineto_tables.h"
#include "collector/import/kineto/ranked_id.h"
#include "collector/import/text_window.h"
#include "collector/trace/table_columns.h"

namespace ranktap::collector {
namespace {

uint64_t Unsigned(const Json& object, const char* key) {
  const Json& found = object[key];
  return found.is_number_unsigned() ? found.get<uint64_t>() : 0;
}

// Also of a text: what add_metadata writes.
std::optional<uint32_t> Number(const Json& object, const char* key) {
  const Json& found = object[key];
  uint64_t number = 0;
  if (!(found.is_string() || found.is_number_unsigned()) ||
      !ParseUnsigned(found.is_string() ? found.text() : WriteJson(found), &number) ||
      number >= kNone) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(number);
}

void AddDevices(const Json& list, Trace* trace) {
  if (!list.is_array()) return;
  for (const Json& entry : list) {
    if (!entry.is_object()) continue;
    v1::Device* const device = trace->hello.add_devices();
    const auto small = [&](const char* key) { return static_cast<uint32_t>(Unsigned(entry, key)); };
    device->set_id(small("id"));
    device->set_name(entry.TextOf("name"));
    device->set_total_global_mem(Unsigned(entry, "totalGlobalMem"));
    device->set_compute_major(small("computeMajor"));
    device->set_compute_minor(small("computeMinor"));
    device->set_max_threads_per_block(small("maxThreadsPerBlock"));
    device->set_max_threads_per_multiprocessor(small("maxThreadsPerMultiprocessor"));
    device->set_regs_per_block(small("regsPerBlock"));
    device->set_warp_size(small("warpSize"));
    device->set_shared_mem_per_block(Unsigned(entry, "sharedMemPerBlock"));
    device->set_num_sms(small("numSms"));
    device->set_regs_per_multiprocessor(small("regsPerMultiprocessor"));
    device->set_shared_mem_per_block_optin(Unsigned(entry, "sharedMemPerBlockOptin"));
    device->set_shared_mem_per_multiprocessor(Unsigned(entry, "sharedMemPerMultiprocessor"));
  }
}

void AddProcessGroups(const Json& list, Trace* trace) {
  if (!list.is_array()) return;
  for (const Json& entry : list) {
    if (!entry.is_object()) continue;
    ProcessGroup group;
    group.name = entry.TextOf("pg_name");
    group.description = entry.TextOf("pg_desc");
    group.backend = entry.TextOf("backend_config");
    group.size = static_cast<uint32_t>(Unsigned(entry, "pg_size"));
    const Json& ranks = entry["ranks"];
    const Json parsed = ranks.is_string() ? ParseJson(ranks.text()) : ranks;
    for (size_t i = 0; parsed.is_array() && i < parsed.size(); ++i) {
      if (parsed[i].is_number_unsigned()) group.ranks.push_back(parsed[i].get<uint32_t>());
    }
    trace->process_groups.push_back(std::move(group));
  }
}

void AddDistributed(const Json& info, Trace* trace) {
  if (!info.is_object()) return;
  trace->info.rank = Number(info, "rank");
  if (trace->info.rank) trace->info.rank_origin = "distributedInfo";
  trace->info.world_size = Number(info, "world_size");
  if (info.contains("pg_config")) AddProcessGroups(info["pg_config"], trace);
}

class KinetoFile {
 public:
  // `only`: of a file of several ranks, the events of this one.
  KinetoFile(ByteSource* source, Trace* trace, std::optional<uint32_t> only = std::nullopt)
      : source_(source), window_(source), trace_(trace), tables_(trace), only_(only) {}

  void Read() {
    // A byte order mark, as Windows tools write it.
    if (std::string_view(window_.begin(), 3) == "\xef\xbb\xbf") window_.MoveTo(window_.begin() + 3);
    window_.Peek();
    if (*window_.begin() == '[') {
      ReadEvents();
    } else if (*window_.begin() == '{') {
      window_.MoveTo(window_.begin() + 1);
      while (ReadMember()) continue;
    }
    if (!source_->damage().empty()) Damaged(window_.OffsetOf(window_.end()), source_->damage());
    if (saw_events_ && trace_->damage.empty() && window_.Peek() != 0) {
      Damaged(window_.OffsetOf(window_.begin()),
              "something follows the end of the trace, as where files were joined; it is not read");
    }
    Finish();
  }
  bool saw_events() const { return saw_events_; }
  // Who else made the file, where nothing in it is as torch.profiler writes it; nullptr: nobody.
  const ForeignTool* OnlyOf() const { return trace_->events == 0 ? tables_.tool() : nullptr; }
  // By ranktap merge: of how many files.
  size_t joined() const { return joined_; }
  // By a script that said the rank in each pid; empty: not so.
  std::set<uint32_t> JoinedRanks() const {
    std::set<uint32_t> ranks;
    for (const std::string& process : tables_.Processes()) {
      const std::optional<RankedId> id = RankedIdIn(process);
      if (!id) return {};
      ranks.insert(id->rank);
    }
    return ranks.size() > 1 ? ranks : std::set<uint32_t>();
  }
  // By somebody else: how one can tell; empty: it is one rank's.
  std::string JoinedHow() const {
    const std::set<std::string> processes = tables_.Processes();
    if (processes.size() > 1) {
      return fmt::format("{} processes ran operators in it ({}, {}{})", processes.size(),
                         *processes.begin(), *std::next(processes.begin()),
                         processes.size() > 2 ? ", ..." : "");
    }
    return tables_.RepeatsCorrelations() ? "its correlation ids are given more than once" : "";
  }

 private:
  void Damaged(uint64_t offset, std::string what, uint64_t bytes = 0) {
    if (trace_->damage.size() < kDamageListed) {
      trace_->damage.push_back({offset, bytes, std::move(what)});
    }
  }

  // One "key": value of the outermost object. False: that was all.
  bool ReadMember() {
    char next = window_.Peek();
    if (next == ',') {
      window_.MoveTo(window_.begin() + 1);
      next = window_.Peek();
    }
    if (next == '}') {
      window_.MoveTo(window_.begin() + 1);
      return false;
    }
    const uint64_t offset = window_.OffsetOf(window_.begin());
    const std::string key(next == '"' ? window_.TakeValue() : std::string_view());
    if (key.size() < 2 || window_.Peek() != ':') {
      Damaged(offset, next == 0 ? "the file ends before its last bracket"
                                : "not a member of the outermost object; the rest is not read");
      return false;
    }
    window_.MoveTo(window_.begin() + 1);
    next = window_.Peek();
    if (key == "\"traceEvents\"" && next == '[') {
      ReadEvents();
      return !ended_;
    }
    const uint64_t value_offset = window_.OffsetOf(window_.begin());
    const std::string_view value = window_.TakeValue();
    if (value.empty()) {
      Damaged(value_offset, fmt::format("the value of {} is cut off or malformed", key));
      return false;
    }
    AddTopLevel(key.substr(1, key.size() - 2), value, value_offset);
    return true;
  }

  Json Parsed(const std::string& key, std::string_view value, uint64_t offset) {
    Json parsed = ParseJson(value);
    if (parsed.is_discarded()) {
      Damaged(offset, fmt::format("\"{}\" is malformed or nests deeper than {}", key, kDeepestJson),
              value.size());
    }
    return parsed;
  }
  void AddTopLevel(const std::string& key, std::string_view value, uint64_t offset) {
    if (key == "deviceProperties") AddDevices(Parsed(key, value, offset), trace_);
    if (key == "distributedInfo") AddDistributed(Parsed(key, value, offset), trace_);
    if (key == "baseTimeNanoseconds") ParseInteger(value, &base_ns_);
    if (key == "mergedRanks") joined_ = ParseJson(value).size();
    if (key == "host_name") trace_->info.host = Unescaped(Bare(value));
  }
  static std::string_view Bare(std::string_view value) {
    return value.size() >= 2 && value[0] == '"' ? value.substr(1, value.size() - 2) : value;
  }

  // The array that begins at begin().
  void ReadEvents() {
    saw_events_ = true;
    window_.MoveTo(window_.begin() + 1);
    KinetoEvent event;
    while (true) {
      const char next = window_.Peek();
      if (next == '{') {
        if (!ReadEvent(&event)) return;
      } else if (next == ',') {
        window_.MoveTo(window_.begin() + 1);
      } else if (next == ']') {
        window_.MoveTo(window_.begin() + 1);
        return;
      } else if (next == 0 && window_.begin() == window_.end()) {
        ended_ = true;
        if (source_->damage().empty()) {
          Damaged(window_.OffsetOf(window_.end()), "the list of events has no end");
        }
        return;
      } else if (!SkipToNextEvent(window_.begin(), "not an event")) {
        return;
      }
    }
  }

  bool ReadEvent(KinetoEvent* event) {
    while (true) {
      const EventText text = ScanEvent(window_.begin(), window_.end(), event);
      switch (text.status) {
        case EventText::Status::kEvent:
          if (!only_ || Narrow(event)) tables_.Add(*event);
          window_.MoveTo(text.next);
          return true;
        case EventText::Status::kMalformed:
          return SkipToNextEvent(text.next, "an event is malformed");
        case EventText::Status::kMore:
          if (window_.Extend()) continue;
          // An unterminated string takes the rest of the file: look for an event inside it.
          return SkipToNextEvent(window_.begin() + 1, "an event is cut off");
      }
    }
  }

  // To the rank that is asked for; false: of another.
  bool Narrow(KinetoEvent* event) const {
    const std::optional<RankedId> process = RankedIdIn(event->pid);
    if (!process || process->rank != *only_) return false;
    event->pid = process->id;
    if (const std::optional<RankedId> thread = RankedIdIn(event->tid)) event->tid = thread->id;
    return true;
  }

  // Goes on at the next place after `from` that looks like the beginning of an event.
  bool SkipToNextEvent(const char* from, const std::string& what) {
    const uint64_t offset = window_.OffsetOf(from);
    window_.MoveTo(std::min(from, window_.end()));
    while (true) {
      const std::string_view rest(window_.begin(),
                                  static_cast<size_t>(window_.end() - window_.begin()));
      for (size_t at = rest.find('{'); at != rest.npos; at = rest.find('{', at + 1)) {
        const char* const inside = SkipSpace(rest.data() + at + 1);
        const std::string_view key(inside, 6);  // padding follows the text
        if (!key.starts_with("\"ph\"") && !key.starts_with("\"name\"") &&
            !key.starts_with("\"cat\"")) {
          continue;
        }
        window_.MoveTo(rest.data() + at);
        Damaged(offset, what, window_.OffsetOf(window_.begin()) - offset);
        return true;
      }
      // Keep what may be the first half of a beginning.
      window_.MoveTo(window_.end() - std::min<size_t>(rest.size(), 16));
      if (window_.Extend()) continue;
      Damaged(offset, what, window_.OffsetOf(window_.end()) - offset);
      ended_ = true;
      return false;
    }
  }

  void Finish() {
    tables_.Finish();
    trace_->base_time_ns = base_ns_;
    trace_->realtime_offset_ns = base_ns_;
    uint64_t most = 0;
    for (const auto& [what, count] : tables_.skipped()) {
      if (what != KinetoTables::kHalfArrows) trace_->not_read += count;
      if (what != KinetoTables::kHalfArrows && count > most) {
        most = count;
        trace_->not_read_most = what;
      }
      trace_->info.notes.push_back(
          what.starts_with("device events")
              ? fmt::format("this trace has {} {} that are not read", count, what)
              : fmt::format("{}: {} not read", what, count));
    }
    if (tables_.tool() != nullptr && trace_->not_read > 0) {
      trace_->not_read_most = fmt::format("device work as {} writes it", tables_.tool()->name);
    }
  }

  ByteSource* source_;
  TextWindow window_;
  Trace* trace_;
  KinetoTables tables_;
  std::optional<uint32_t> only_;
  int64_t base_ns_ = 0;
  size_t joined_ = 0;
  bool saw_events_ = false;
  bool ended_ = false;
};

}  // namespace

namespace {

// Each rank's part: the file is read once for each.
Result<std::vector<Trace>> ImportRanks(const std::string& path, const std::set<uint32_t>& ranks) {
  std::vector<Trace> traces;
  for (const uint32_t rank : ranks) {
    Result<ByteSource> source = ByteSource::Open(path);
    if (!source) return Failure{source.message()};
    Trace& trace = traces.emplace_back();
    trace.path = path;
    trace.origin = TraceOrigin::kKineto;
    KinetoFile(&*source, &trace, rank).Read();
    trace.info.rank = rank;
    trace.info.world_size = static_cast<uint32_t>(ranks.size());
    trace.info.rank_origin = kRankInPids;
    CloseTrace("torch.profiler", source->file_bytes(), &trace);
  }
  return traces;
}

}  // namespace

Result<std::vector<Trace>> ImportKineto(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  if (!source) return Failure{source.message()};
  Trace trace;
  trace.path = path;
  trace.origin = TraceOrigin::kKineto;
  KinetoFile file(&*source, &trace);
  file.Read();
  if (!file.saw_events()) {
    return Failure{fmt::format(
        "{}: no \"traceEvents\" in it: not a trace of torch.profiler{}", path,
        trace.damage.empty()
            ? ""
            : fmt::format(" (at byte {}: {})", trace.damage[0].offset, trace.damage[0].what))};
  }
  if (const ForeignTool* const tool = file.OnlyOf(); tool != nullptr) {
    return Failure{fmt::format("{}: {}", path, WhyNotRead(*tool))};
  }
  if (file.joined() > 1) {  // their streams and correlation ids would be taken for one rank's
    return Failure{
        fmt::format("{}: joined from {} files by ranktap merge, for viewers; name those files or "
                    "their directory",
                    path, file.joined())};
  }
  if (const std::set<uint32_t> ranks = file.JoinedRanks(); !ranks.empty()) {
    return ImportRanks(path, ranks);
  }
  if (const std::string how = file.JoinedHow(); !how.empty()) {
    return Failure{
        fmt::format("{}: traces of several ranks joined in one file: {}; name the file of each "
                    "rank, or their directory",
                    path, how)};
  }
  CloseTrace("torch.profiler", source->file_bytes(), &trace);
  std::vector<Trace> traces;
  traces.push_back(std::move(trace));
  return traces;
}

bool LooksLikeKineto(std::string_view head) {
  const size_t first = FirstOfJson(head);
  return first != head.npos && (head[first] == '{' || head[first] == '[');
}

}  // namespace ranktap::collector
