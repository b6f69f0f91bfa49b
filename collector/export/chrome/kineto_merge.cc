#include "collector/export/chrome/kineto_merge.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "collector/export/chrome/kineto_walk.h"
#include "collector/export/json_text.h"
#include "collector/file/json.h"
#include "collector/import/byte_source.h"
#include "collector/import/json_scan.h"

namespace ranktap::collector {
namespace {

// Linux' pids end at 2^22; 400 ranks of them still fit 31 bits.
constexpr int64_t kPidsOfAnInput = 5'000'000;
// Ids up to 2^40 in 8192 inputs stay below 2^53, which JavaScript can count to.
constexpr uint64_t kIdsOfAnInput = uint64_t{1} << 40;
// Where Kineto sorts GPUs behind processes; until 2022 the first.
constexpr int64_t kDevicesSortFrom = 5'000'000, kDevicesSortFromNow = 16'777'216;

struct Member {
  std::string_view key, value;
};

// The members of an object whose text is whole.
void Members(std::string_view object, std::vector<Member>* members) {
  members->clear();
  const char* const end = object.data() + object.size();
  const char* p = object.data() + 1;
  while (true) {
    p = SkipSpace(p);
    if (*p == ',') {
      ++p;
      continue;
    }
    if (*p != '"') return;
    const char* const key_end = SkipValue(p, end);
    if (key_end == nullptr) return;
    const std::string_view key(p + 1, static_cast<size_t>(key_end - p) - 2);
    p = SkipSpace(key_end);
    if (*p != ':') return;
    p = SkipSpace(p + 1);
    const char* const after = SkipValue(p, end);
    if (after == nullptr) return;
    members->push_back({key, {p, static_cast<size_t>(after - p)}});
    p = after;
  }
}

class Rewriter {
 public:
  Rewriter(const MergeInput& input, size_t index, int64_t shift_ns, JsonText* out)
      : input_(input), index_(static_cast<int64_t>(index)), shift_ns_(shift_ns), out_(*out) {}

  // False: it is not an object with members.
  bool Event(std::string_view event) {
    Members(event, &members_);
    if (members_.empty()) return false;
    const std::string_view phase = Find("ph"), name = Find("name");
    const bool names_process = phase == "M" && name == "process_name";
    if (names_process) named_.insert(std::string(Value("pid")));
    pids_.insert(std::string(Value("pid")));
    const char* separator = "{";
    for (const Member& member : members_) {
      out_.Raw(separator).Raw("\"").Raw(member.key).Raw("\":");
      separator = ",";
      if (member.key == "pid") {
        Pid(member.value);
      } else if (member.key == "id" || member.key == "bind_id") {
        Id(member.value);
      } else if (member.key == "ts" && shift_ns_ != 0) {
        Time(member.value);
      } else if (member.key == "args" && names_process) {
        Args(member.value, "name");
      } else if (member.key == "args" && phase == "M" && name == "process_sort_index") {
        Args(member.value, "sort_index");
      } else {
        out_.Raw(member.value);
      }
    }
    out_.Raw("}");
    return true;
  }

  // Names for processes that had none.
  template <typename Begin>
  void NameTheRest(Begin begin) {
    for (const std::string& pid : pids_) {
      if (pid.empty() || named_.contains(pid)) continue;
      begin();
      out_.Raw("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":");
      Pid(pid);
      out_.Raw(",\"tid\":0,\"args\":{\"name\":").Text(input_.label).Raw("}}");
    }
  }

 private:
  std::string_view Value(std::string_view key) const {
    for (const Member& member : members_) {
      if (member.key == key) return member.value;
    }
    return {};
  }
  std::string_view Find(std::string_view key) const { return WithoutQuotes(Value(key)); }

  void Pid(std::string_view value) {
    int64_t pid = 0;
    if (value.starts_with('"') || !ParseInteger(value, &pid)) return Labelled(value);
    // Kineto's -1 is "no process".
    out_.Number(index_ * kPidsOfAnInput + (pid < 0 ? kPidsOfAnInput + pid : pid));
  }

  void Id(std::string_view value) {
    uint64_t id = 0;
    if (!value.starts_with('"') && ParseUnsigned(value, &id) && id < kIdsOfAnInput) {
      out_.Number(static_cast<uint64_t>(index_) * kIdsOfAnInput + id);
    } else {
      Labelled(value);
    }
  }

  void Time(std::string_view value) {
    int64_t ns = 0, shifted = 0;
    if (!ParseMicroseconds(WithoutQuotes(value), &ns) ||
        __builtin_add_overflow(ns, shift_ns_, &shifted)) {
      out_.Raw(value);
    } else {
      out_.Microseconds(shifted);
    }
  }

  // "python" -> "rank 3: python"; the text keeps its escapes.
  void Labelled(std::string_view value) {
    JsonText label;
    label.Text(input_.label);
    out_.Raw(label.view().substr(0, label.size() - 1));
    out_.Raw(": ").Raw(WithoutQuotes(value)).Raw("\"");
  }

  void Args(std::string_view object, std::string_view changed) {
    Members(object, &args_);
    const char* separator = "{";
    if (args_.empty()) out_.Raw(separator);
    for (const Member& arg : args_) {
      out_.Raw(separator).Raw("\"").Raw(arg.key).Raw("\":");
      separator = ",";
      int64_t order = 0;
      if (arg.key != changed) {
        out_.Raw(arg.value);
      } else if (changed == "name") {
        Labelled(arg.value);
      } else if (ParseInteger(arg.value, &order)) {
        // Rank after rank; within one the process, its GPUs, the rest.
        const int64_t device =
            order - (order < kDevicesSortFromNow ? kDevicesSortFrom : kDevicesSortFromNow);
        const int64_t within =
            order < kDevicesSortFrom ? 0 : 1 + std::clamp<int64_t>(device, 0, 900);
        out_.Number(index_ * 1000 + within);
      } else {
        out_.Raw(arg.value);
      }
    }
    out_.Raw("}");
  }

  const MergeInput& input_;
  int64_t index_, shift_ns_;
  JsonText& out_;
  std::vector<Member> members_, args_;
  std::set<std::string> pids_, named_;
};

int64_t CommonBase(const std::vector<MergeInput>& inputs) {
  int64_t base = 0;
  for (const MergeInput& input : inputs) {
    if (input.base_ns != 0) base = base == 0 ? input.base_ns : std::min(base, input.base_ns);
  }
  return base;
}

}  // namespace

Result<MergeInput> DescribeMergeInput(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  if (!source) return Failure{source.message()};
  MergeInput input{.path = path};
  KinetoWalk walk(&*source);
  bool has_base = false, has_events = false;
  walk.Walk(
      [&](const std::string& key, std::string_view value) {
        if (key == "traceEvents") {
          has_events = true;
          return !has_base;
        }
        if (key == "baseTimeNanoseconds") has_base = ParseInteger(value, &input.base_ns);
        if (key == "deviceProperties") input.device_properties = value;
        if (key == "distributedInfo") {
          const Json info = ParseJson(value);
          const Json& rank = info["rank"];
          if (rank.is_number_unsigned()) input.rank = rank.get<uint32_t>();
        }
        return !(has_base && has_events);
      },
      [&](std::string_view) { return has_events = true; });
  if (!has_events)
    return Failure{fmt::format("{}: no \"traceEvents\" in it; is it torch.profiler's JSON?", path)};
  return input;
}

void MergeKineto(std::vector<MergeInput>* inputs, OutputFile* file) {
  const int64_t base = CommonBase(*inputs);
  JsonText out;
  out.Raw("{\n\"schemaVersion\": 1,\n\"displayTimeUnit\": \"ms\",\n");
  if (base != 0) out.Raw("\"baseTimeNanoseconds\": ").Number(base).Raw(",\n");
  out.Raw("\"mergedRanks\": [");
  for (size_t i = 0; i < inputs->size(); ++i) {
    const MergeInput& input = (*inputs)[i];
    out.Raw(i == 0 ? "\n" : ",\n").Raw("  {\"label\": ").Text(input.label);
    out.Raw(", \"file\": ").Text(input.path.substr(input.path.rfind('/') + 1));
    if (!input.device_properties.empty()) {
      out.Raw(", \"deviceProperties\": ").Raw(input.device_properties);
    }
    out.Raw("}");
  }
  out.Raw("\n],\n\"traceEvents\": [");
  bool first = true;
  const auto begin = [&] {
    out.Raw(first ? "\n" : ",\n");
    first = false;
  };
  for (size_t i = 0; i < inputs->size(); ++i) {
    MergeInput& input = (*inputs)[i];
    Result<ByteSource> source = ByteSource::Open(input.path);
    if (!source) {
      input.damage.push_back(source.message());
      continue;
    }
    Rewriter rewriter(input, i, input.base_ns - base, &out);
    KinetoWalk walk(&*source);
    walk.Walk([](const std::string&, std::string_view) { return true; },
              [&](std::string_view event) {
                const size_t before = out.size();
                const bool was_first = first;
                begin();
                if (!rewriter.Event(event)) {
                  out.Truncate(before);
                  first = was_first;
                }
                if (out.size() > 64u << 10) {
                  file->Write(out.view());
                  out.Truncate(0);
                }
                return true;
              });
    rewriter.NameTheRest(begin);
    if (!walk.damage().empty()) {
      input.damage.push_back(fmt::format("{}: {}", input.path, walk.damage()));
    }
  }
  out.Raw("\n]\n}\n");
  file->Write(out.view());
}

}  // namespace ranktap::collector
