// Dumps of PyTorch's Flight Recorder: pickles and JSON.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "collector/file/json.h"
#include "collector/import/byte_source.h"
#include "collector/import/finish_trace.h"
#include "collector/import/flight/flight_tables.h"
#include "collector/import/importers.h"
#include "collector/import/json_scan.h"
#include "collector/import/open_run.h"
#include "collector/import/pickle_reader.h"
#include "collector/import/text_window.h"

namespace ranktap::collector {
namespace {

// Numbers of a pickle's values have 32 bits.
constexpr size_t kLargestPickle = size_t{2} << 30;
constexpr size_t kMostFrames = 128;
constexpr size_t kMostTypeName = 64;
constexpr std::array<std::string_view, 7> kFirstKeys = {
    "comm_lib_version", "nccl_version", "nccl_comm_state", "pg_config",
    "pg_status",        "entries",      "version"};

class PickledDump {
 public:
  PickledDump(const Pickle& pickle, size_t file_bytes, Trace* trace)
      : pickle_(pickle),
        trace_(trace),
        tables_(trace),
        budget_(file_bytes),
        text_budget_(kLeastStackText + file_bytes * kStackTextPerByte) {}

  // False: the pickle holds something else.
  bool Read() {
    const Pickle::Id root = pickle_.root();
    const Pickle::Id groups = pickle_.Find(root, "pg_config");
    const Pickle::Id entries = pickle_.Find(root, "entries");
    if (groups == 0 && entries == 0) return false;
    const auto configs = pickle_.Items(groups);
    for (size_t i = 0; i + 1 < configs.size() && Spend(); i += 2) {
      tables_.AddGroup(Text(configs[i + 1], "name"), Text(configs[i + 1], "desc"),
                       Text(configs[i + 1], "ranks"));
    }
    for (const Pickle::Id entry : pickle_.Items(entries)) {
      if (!Spend()) break;
      ReadEntry(entry);
    }
    tables_.Finish();
    return true;
  }

 private:
  // A pickle may name one list a million times: what is walked is bounded by what was read.
  bool Spend() {
    if (budget_ > 0) return --budget_, true;
    if (!std::exchange(overspent_, true)) {
      trace_->damage.push_back({0, 0, "lists that repeat themselves; not read to the end"});
    }
    return false;
  }
  std::string_view Text(Pickle::Id dict, std::string_view key) const {
    return pickle_.Text(pickle_.Find(dict, key));
  }
  int64_t Int(Pickle::Id dict, std::string_view key) const {
    return pickle_.Int(pickle_.Find(dict, key));
  }

  void ReadEntry(Pickle::Id id) {
    FlightEntry entry;
    const auto group = pickle_.Items(pickle_.Find(id, "process_group"));
    if (group.size() == 2) {
      entry.group = pickle_.Text(group[0]);
      entry.description = pickle_.Text(group[1]);
    }
    entry.name = Text(id, "profiling_name");
    entry.in_sizes = Sizes(pickle_.Find(id, "input_sizes"));
    entry.out_sizes = Sizes(pickle_.Find(id, "output_sizes"));
    entry.in_types = Texts(pickle_.Find(id, "input_dtypes"));
    entry.out_types = Texts(pickle_.Find(id, "output_dtypes"));
    entry.state = Text(id, "state");
    entry.is_retired = Int(id, "retired") != 0;
    entry.is_p2p = Int(id, "is_p2p") != 0;
    entry.collective = static_cast<uint64_t>(Int(id, "collective_seq_id"));
    entry.p2p = static_cast<uint64_t>(Int(id, "p2p_seq_id"));
    entry.entered_ns = Int(id, "time_created_ns");
    entry.stack = StackOf(pickle_.Find(id, "frames"));
    tables_.AddEntry(entry);
  }

  std::string Sizes(Pickle::Id list) {
    std::string text;
    for (const Pickle::Id dims : pickle_.Items(list)) {
      if (!Spend()) break;
      text += text.empty() ? "[" : ", [";
      const char* comma = "";
      for (const Pickle::Id dim : pickle_.Items(dims)) {
        if (!Spend()) break;
        text += fmt::format("{}{}", std::exchange(comma, ", "), pickle_.Int(dim));
      }
      text += ']';
    }
    return text.empty() ? text : "[" + text + "]";
  }
  std::string Texts(Pickle::Id list) {
    std::string text;
    for (const Pickle::Id item : pickle_.Items(list)) {
      if (!Spend()) break;
      text.append(text.empty() ? "" : ", ").append(pickle_.Text(item).substr(0, kMostTypeName));
    }
    return text;
  }

  uint32_t StackOf(Pickle::Id frames) {
    std::string text;
    size_t count = 0;
    for (const Pickle::Id frame : pickle_.Items(frames)) {
      if (count++ == kMostFrames || !Spend()) break;
      if (!text.empty()) text += ';';
      text.append(Text(frame, "filename").substr(0, 1024)).append("(");
      text.append(std::to_string(Int(frame, "line"))).append("): ");
      text.append(Text(frame, "name").substr(0, 1024));
    }
    if (text.size() > text_budget_) {
      if (!std::exchange(out_of_text_, true)) {
        trace_->damage.push_back({0, 0, "stacks of far more text than the file has; left out"});
      }
      return 0;
    }
    text_budget_ -= text.size();
    return tables_.Intern(text);
  }

  const Pickle& pickle_;
  Trace* trace_;
  FlightTables tables_;
  size_t budget_, text_budget_;
  bool overspent_ = false, out_of_text_ = false;
};

uint64_t WholeIn(const Json& value) {
  return value.is_number_integer() ? value.get<uint64_t>() : 0;
}
std::string JoinedTexts(const Json& list) {
  std::string text;
  if (!list.is_array()) return text;
  for (const Json& item : list) text += (text.empty() ? "" : ", ") + item.TextOrNothing();
  return text;
}

class JsonDump {
 public:
  JsonDump(ByteSource* source, Trace* trace) : window_(source), trace_(trace), tables_(trace) {}

  // False: no key of a dump came.
  bool Read() {
    const bool found = Take('{') && ReadMembers();
    tables_.Finish();
    return found;
  }

 private:
  bool Take(char wanted) {
    if (window_.Peek() != wanted) return false;
    window_.MoveTo(window_.begin() + 1);
    return true;
  }
  void Damaged(std::string what) {
    if (trace_->damage.size() >= kDamageListed) return;
    trace_->damage.push_back({window_.OffsetOf(window_.begin()), 0, std::move(what)});
  }

  bool ReadMembers() {
    bool found = false;
    while (window_.Peek() == '"') {
      const std::string_view raw = window_.TakeValue();
      const std::string key = raw.size() < 2 ? "" : std::string(raw.substr(1, raw.size() - 2));
      if (key.empty() || !Take(':')) {
        Damaged("a JSON object that is cut off or malformed");
        return found;
      }
      found |= std::ranges::find(kFirstKeys, key) != kFirstKeys.end();
      window_.Peek();
      if (!(key == "entries" ? ReadEntries() : ReadMember(key))) return found;
      Take(',');
    }
    if (!Take('}')) Damaged("a JSON object that is cut off or malformed");
    return found;
  }
  bool ReadMember(const std::string& key) {
    const std::string_view text = window_.TakeValue();
    if (text.empty()) {
      Damaged(fmt::format("\"{}\" is cut off or malformed", key.substr(0, 64)));
      return false;
    }
    if (key == "pg_config") AddGroups(ParseJson(text));
    return true;
  }
  void AddGroups(const Json& groups) {
    if (!groups.is_object()) return;
    for (const auto& [key, group] : groups.items()) {
      tables_.AddGroup(group.TextOf("name"), group.TextOf("desc"), group.TextOf("ranks"));
    }
  }
  bool ReadEntries() {
    if (!Take('[')) {
      Damaged("\"entries\" is not a list");
      return false;
    }
    while (window_.Peek() == '{') {
      const std::string_view text = window_.TakeValue();
      const Json entry = ParseJson(text);
      if (text.empty() || !entry.is_object()) {
        Damaged("an entry that is cut off or malformed");
        if (text.empty()) return false;
      } else {
        ReadEntry(entry);
      }
      Take(',');
    }
    if (Take(']')) return true;
    Damaged("\"entries\" is cut off or malformed");
    return false;
  }
  void ReadEntry(const Json& json) {
    FlightEntry entry;
    const Json& group = json["process_group"];
    if (group.is_array() && group.size() == 2) {
      entry.group = group[0].TextOrNothing();
      entry.description = group[1].TextOrNothing();
    }
    entry.name = json.TextOf("profiling_name");
    entry.in_sizes = SizesIn(json["input_sizes"]);
    entry.out_sizes = SizesIn(json["output_sizes"]);
    entry.in_types = JoinedTexts(json["input_dtypes"]);
    entry.out_types = JoinedTexts(json["output_dtypes"]);
    entry.state = json.TextOf("state");
    entry.is_retired = json["retired"] == true;
    entry.is_p2p = json["is_p2p"] == true;
    entry.collective = WholeIn(json["collective_seq_id"]);
    entry.p2p = WholeIn(json["p2p_seq_id"]);
    entry.entered_ns = static_cast<int64_t>(WholeIn(json["time_created_ns"]));
    tables_.AddEntry(entry);
  }
  static std::string SizesIn(const Json& list) {
    return list.is_array() && !list.empty() ? SpacedAsTorch(WriteJson(list)) : std::string();
  }

  TextWindow window_;
  Trace* trace_;
  FlightTables tables_;
};

// "nccl_trace_rank_13", "fr_13", "dump13.json".
std::optional<uint32_t> RankAtTheEnd(const std::string& path) {
  if (const std::optional<uint32_t> named = RankInName(path)) return named;
  std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view ending : {".gz", ".json", ".pickle", ".pkl"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  const size_t last = name.find_last_not_of("0123456789");
  const std::string_view digits =
      std::string_view(name).substr(last == std::string::npos ? 0 : last + 1);
  uint64_t rank = 0;
  const bool is_number = !digits.empty() && digits.size() < 8 && ParseUnsigned(digits, &rank);
  return is_number ? std::optional(static_cast<uint32_t>(rank)) : std::nullopt;
}

std::string ReadAll(ByteSource* source) {
  std::string bytes;
  while (bytes.size() < kLargestPickle) {
    const size_t before = bytes.size();
    bytes.resize(before + std::clamp<size_t>(before, 64u << 10, 8u << 20));
    const size_t got = source->Read(bytes.data() + before, bytes.size() - before);
    bytes.resize(before + got);
    if (got == 0) break;
  }
  return bytes;
}

bool ReadPickle(ByteSource* source, Trace* trace) {
  const std::string bytes = ReadAll(source);
  const Pickle pickle(bytes);
  if (pickle.damage()) trace->damage.push_back(*pickle.damage());
  if (bytes.size() >= kLargestPickle) {
    trace->damage.push_back({bytes.size(), 0, "more than 2 GiB; not read beyond"});
  }
  if (!source->damage().empty()) trace->damage.push_back({bytes.size(), 0, source->damage()});
  return PickledDump(pickle, bytes.size(), trace).Read();
}

bool ReadJson(ByteSource* source, Trace* trace) {
  const bool found = JsonDump(source, trace).Read();
  if (!source->damage().empty()) {
    trace->damage.push_back({source->file_bytes(), 0, source->damage()});
  }
  return found;
}

bool IsPickle(std::string_view head) {
  return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

}  // namespace

bool LooksLikeFlightRecorder(std::string_view head) {
  const auto has = [head](std::string_view key) { return head.find(key) != head.npos; };
  if (IsPickle(head)) return std::ranges::any_of(kFirstKeys, has);
  const size_t brace = FirstOfJson(head);
  if (brace == head.npos || head[brace] != '{') return false;
  const size_t quote = FirstOfJson(head, brace + 1);
  if (quote == head.npos || head[quote] != '"') return false;
  const std::string_view key = head.substr(quote + 1, head.find('"', quote + 1) - quote - 1);
  return key != "version" && std::ranges::find(kFirstKeys, key) != kFirstKeys.end();
}

Result<Trace> ImportFlightRecorder(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  if (!source) return Failure{source.message()};
  char first = 0;
  if (Result<ByteSource> peek = ByteSource::Open(path); peek) peek->Read(&first, 1);
  Trace trace;
  trace.path = path;
  trace.origin = TraceOrigin::kExecution;  // no times of its own
  const bool found = first == '\x80' ? ReadPickle(&*source, &trace) : ReadJson(&*source, &trace);
  const std::vector<GroupCall>& calls = GroupCallsOf(trace).list;
  if (!found || (calls.empty() && !trace.damage.empty())) {
    std::string message = fmt::format("{}: not a dump of PyTorch's Flight Recorder", path);
    for (const Damage& damage : trace.damage) {
      message += fmt::format("; offset {}: {}", damage.offset, damage.what);
    }
    return Failure{message};
  }
  trace.info.rank = RankAtTheEnd(path);
  if (trace.info.rank) trace.info.rank_origin = "file name";
  if (!calls.empty()) {
    const auto by = [](const GroupCall& a, const GroupCall& b) {
      return a.entered_ns < b.entered_ns;
    };
    trace.base_time_ns = std::ranges::min_element(calls, by)->entered_ns;
    trace.realtime_offset_ns = trace.base_time_ns;
  }
  CloseTrace("PyTorch's Flight Recorder", source->file_bytes(), &trace);
  return trace;
}

}  // namespace ranktap::collector
