#include "collector/facts/samples/host_samples.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "collector/file/json.h"
#include "collector/trace/marked_lines.h"
#include "proto/redact.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kFewestLooks = 3;  // two may be chance

bool IsOfPackage(std::string_view file) {
  if (file.empty() || file[0] == '<') return true;  // "<frozen importlib._bootstrap>", "<string>"
  for (const std::string_view part : {"/site-packages/", "/dist-packages/", "/lib/python3"}) {
    if (file.find(part) != file.npos) return true;
  }
  return false;
}

// Where a process that `multiprocessing` forked begins: what stands above it is its parent's.
bool BeginsProcess(const SampledFrame& frame) {
  return frame.function.ends_with("_bootstrap") &&
         frame.file.ends_with("/multiprocessing/process.py");
}

// "[1,2,3]", with as many numbers, or the first `fewest`.
template <size_t kCount>
bool ReadNumbers(std::string_view line, std::array<uint64_t, kCount>* numbers,
                 size_t fewest = kCount) {
  const char* at = line.data();
  const char* const end = at + line.size();
  for (size_t i = 0; i < kCount; ++i) {
    if (at == end) return i >= fewest;
    const auto [rest, error] = std::from_chars(at + 1, end, (*numbers)[i]);
    if (error != std::errc()) return i >= fewest;
    at = rest;
  }
  return true;
}

std::pair<uint32_t, int64_t> PlaceOf(const ChildRead& child) {
  return {child.process, child.read.time};
}

}  // namespace

std::string ShortFile(std::string_view file) {
  if (file.starts_with('<')) return std::string(file);
  for (const std::string_view part : {"/site-packages/", "/dist-packages/"}) {
    if (const size_t at = file.find(part); at != file.npos) {
      return std::string(file.substr(at + part.size()));
    }
  }
  if (const size_t at = file.find("/lib/python3"); at != file.npos) {
    const size_t folder = file.find('/', at + std::string_view("/lib/").size());
    if (folder != file.npos) return std::string(file.substr(folder + 1));
  }
  return std::string(file.substr(file.rfind('/') + 1));
}

HostSamples::HostSamples(const Trace& trace) : main_thread_(trace.hello.process().pid()) {
  ReadFrames(trace);
  ReadChildren(trace);
  ReadSamples(trace);
  ReadReads(trace);
  ReadChildReads(trace);
  std::ranges::copy_if(all_, std::back_inserter(main_), [this](const HostSample& sample) {
    return sample.thread == main_thread_ && sample.start < sample.end;
  });
  std::ranges::stable_sort(main_, {}, &HostSample::start);
  int64_t end = INT64_MIN;
  std::erase_if(main_, [&end](const HostSample& sample) {
    if (sample.start < end) return true;
    end = sample.end;
    return false;
  });
}

void HostSamples::ReadFrames(const Trace& trace) {
  struct Code {
    std::string file, function;
  };
  std::unordered_map<uint64_t, Code> codes;
  for (const std::string_view line :
       MarkedLines(trace, proto::kSampleDomain, proto::kSampledCodesMark)) {
    const Json row = ParseJson(line);
    if (!row.is_array() || row.size() < 3 || !row[0].is_number_unsigned() || !row[1].is_string() ||
        !row[2].is_string()) {
      continue;
    }
    Code code{row[1].get<std::string>(), row[2].get<std::string>()};
    proto::RedactText(code.file);
    proto::RedactText(code.function);
    codes[row[0].get<uint64_t>()] = std::move(code);
  }
  for (const std::string_view line :
       MarkedLines(trace, proto::kSampleDomain, proto::kSampledFramesMark)) {
    std::array<uint64_t, 4> numbers;
    if (!ReadNumbers(line, &numbers)) continue;
    const auto [number, parent, code_number, source_line] = numbers;
    SampledFrame& frame = frames_[static_cast<uint32_t>(number)];
    // A caller is told before what it calls; else a hostile file could make a ring of them.
    frame.parent = parent < number ? static_cast<uint32_t>(parent) : 0;
    frame.line = static_cast<uint32_t>(source_line);
    if (const auto code = codes.find(code_number); code != codes.end()) {
      frame.file = code->second.file;
      frame.function = code->second.function;
    }
    frame.is_package = IsOfPackage(frame.file);
    if (BeginsProcess(frame)) frame.parent = 0;
  }
}

void HostSamples::ReadChildren(const Trace& trace) {
  for (const std::string_view line :
       MarkedLines(trace, proto::kSampleDomain, proto::kSampledChildrenMark)) {
    std::array<uint64_t, 2> numbers;
    if (!ReadNumbers(line, &numbers)) continue;
    children_[static_cast<uint32_t>(numbers[0])] = static_cast<uint32_t>(numbers[1]);
  }
}

uint32_t HostSamples::ProcessOf(uint32_t thread) const {
  const auto found = children_.find(thread);
  return found == children_.end() ? main_thread_ : found->second;
}

void HostSamples::ReadSamples(const Trace& trace) {
  ClockMap::Line clock = trace.host_clock.LineOf(0);
  for (const std::string_view line :
       MarkedLines(trace, proto::kSampleDomain, proto::kSamplesMark)) {
    constexpr size_t kOfOlderAgents = 7;
    std::array<uint64_t, 10> numbers{};
    if (!ReadNumbers(line, &numbers, kOfOlderAgents)) continue;
    const auto [thread, frame, state, looks, start, end, cpu_ns, queued_ns, faults, read_bytes] =
        numbers;
    all_.push_back({.thread = static_cast<uint32_t>(thread),
                    .frame = static_cast<uint32_t>(frame),
                    .state = static_cast<proto::SampleState>(state),
                    .looks = static_cast<uint32_t>(looks),
                    .start = trace.host_clock.Map(start, &clock),
                    .end = trace.host_clock.Map(end, &clock),
                    .cpu_ns = static_cast<int64_t>(cpu_ns),
                    .queued_ns = static_cast<int64_t>(queued_ns),
                    .major_faults = static_cast<int64_t>(faults),
                    .read_bytes = static_cast<int64_t>(read_bytes)});
  }
}

void HostSamples::ReadReads(const Trace& trace) {
  ClockMap::Line clock = trace.host_clock.LineOf(0);
  for (const std::string_view line :
       MarkedLines(trace, proto::kSampleDomain, proto::kReadFilesMark)) {
    const Json row = ParseJson(line);
    if (!row.is_array() || row.size() < 3 || !row[0].is_number_unsigned() ||
        !row[1].is_number_unsigned() || !row[2].is_string()) {
      continue;
    }
    if (row[0].get<uint64_t>() != main_thread_) continue;
    FileRead read{.time = trace.host_clock.Map(row[1].get<uint64_t>(), &clock),
                  .path = row[2].get<std::string>()};
    proto::RedactText(read.path);
    reads_.push_back(std::move(read));
  }
  std::ranges::stable_sort(reads_, {}, &FileRead::time);
}

void HostSamples::ReadChildReads(const Trace& trace) {
  // A hostile file's numbers may not make a sum overflow.
  constexpr uint64_t kMostNs = 10'000'000'000;
  ClockMap::Line clock = trace.host_clock.LineOf(0);
  for (const std::string_view line :
       MarkedLines(trace, proto::kSampleDomain, proto::kChildReadsMark)) {
    const Json row = ParseJson(line);
    if (!row.is_array() || row.size() < 4 || !row[3].is_string()) continue;
    const auto is_number = [&row](size_t i) { return row[i].is_number_unsigned(); };
    if (!is_number(0) || !is_number(1) || !is_number(2)) continue;
    ChildRead child{.process = row[0].get<uint32_t>(),
                    .read = {.time = trace.host_clock.Map(row[1].get<uint64_t>(), &clock),
                             .path = row[3].get<std::string>()},
                    .ns = static_cast<int64_t>(std::min(row[2].get<uint64_t>(), kMostNs))};
    proto::RedactText(child.read.path);
    child_reads_.push_back(std::move(child));
  }
  std::ranges::stable_sort(child_reads_, {}, PlaceOf);
}

std::span<const ChildRead> HostSamples::ReadsOf(const HostSample& sample) const {
  const auto behind = [this, &sample](int64_t time) {
    return std::ranges::upper_bound(child_reads_, std::pair(sample.thread, time), {}, PlaceOf);
  };
  if (child_reads_.empty()) return {};
  return {behind(sample.start), behind(sample.end)};
}

const SampledFrame* HostSamples::Frame(uint32_t number) const {
  const auto found = frames_.find(number);
  return found == frames_.end() ? nullptr : &found->second;
}

ProgramLine HostSamples::LineOf(uint32_t frame) const {
  uint32_t below = 0;
  for (uint32_t at = frame; at != 0;) {
    const SampledFrame* const known = Frame(at);
    if (known == nullptr) break;
    if (!known->is_package) return {.line = at, .below = below};
    // Our own hook lies between the program and what it called.
    if (!known->file.starts_with("<ranktap/")) below = at;
    at = known->parent;
  }
  return {};
}

std::string HostSamples::Describe(const ProgramLine& line) const {
  const SampledFrame* const own = Frame(line.line);
  if (own == nullptr) return "";
  std::string text = fmt::format("{}:{} ({})", ShortFile(own->file), own->line, own->function);
  if (const SampledFrame* const below = Frame(line.below)) {
    text += fmt::format(", in {} ({})", ShortFile(below->file), below->function);
  }
  return text;
}

const HostSamples& SamplesOf(const Trace& trace) {
  return trace.memo.Get<HostSamples>([&trace] { return HostSamples(trace); });
}

void LineTally::Add(const HostSamples& samples, int64_t start, int64_t end) {
  total_ns_ += end - start;
  samples.ForEachLookAtMain(start, end, [&](const HostSample& sample, int64_t looks) {
    const int64_t ns = (sample.end - sample.start) / sample.looks * looks;
    looked_ns_ += ns;
    const std::string text = samples.Describe(samples.LineOf(sample.frame));
    if (text.empty()) return;
    by_line_[text].ns += ns;
    by_line_[text].looks += looks;
  });
}

void LineTally::Add(const LineTally& other) {
  total_ns_ += other.total_ns_;
  looked_ns_ += other.looked_ns_;
  for (const auto& [text, seen] : other.by_line_) {
    by_line_[text].ns += seen.ns;
    by_line_[text].looks += seen.looks;
  }
}

std::string LineTally::Most() const {
  for (const auto& [text, seen] : by_line_) {
    if (seen.looks >= kFewestLooks && seen.ns * 2 > std::max(total_ns_, looked_ns_)) return text;
  }
  return "";
}

}  // namespace ranktap::collector
