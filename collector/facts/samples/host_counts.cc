#include "collector/facts/samples/host_counts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "collector/file/json.h"
#include "collector/trace/marked_lines.h"
#include "proto/redact.h"

namespace ranktap::collector {
namespace {

// "[1,2,"text"]": numbers, and a text behind them.
template <size_t kCount>
bool ReadCountLine(std::string_view line, std::array<uint64_t, kCount>* numbers,
                   std::string* text) {
  const Json row = ParseJson(line);
  if (!row.is_array() || row.size() <= kCount || !row[kCount].is_string()) return false;
  for (size_t i = 0; i < kCount; ++i) {
    if (!row[i].is_number_unsigned()) return false;
    (*numbers)[i] = row[i].get<uint64_t>();
  }
  *text = row[kCount].get<std::string>();
  return true;
}

// A hostile file may say anything.
int64_t Sane(uint64_t count) { return static_cast<int64_t>(std::min<uint64_t>(count, 1ull << 53)); }

}  // namespace

std::vector<uint32_t> CpusIn(std::string_view list) {
  constexpr uint32_t kMostCpus = 8192;
  std::vector<uint32_t> cpus;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at != end) {
    uint32_t first = 0;
    auto [rest, error] = std::from_chars(at, end, first);
    if (error != std::errc() || first >= kMostCpus) return {};
    uint32_t last = first;
    if (rest != end && *rest == '-') {
      const auto more = std::from_chars(rest + 1, end, last);
      if (more.ec != std::errc() || last >= kMostCpus) return {};
      rest = more.ptr;
    }
    for (uint32_t cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (rest != end && *rest != ',') return {};
    at = rest == end ? end : rest + 1;
  }
  std::ranges::sort(cpus);
  return cpus;
}

HostCounts::HostCounts(const Trace& trace) {
  ClockMap::Line clock = trace.host_clock.LineOf(0);
  const auto time = [&](uint64_t ticks) { return trace.host_clock.Map(ticks, &clock); };
  std::string text;
  for (const std::string_view line :
       MarkedLines(trace, proto::kSampleDomain, proto::kThreadCountsMark)) {
    std::array<uint64_t, 11> of;
    if (!ReadCountLine(line, &of, &text)) continue;
    proto::RedactText(text);
    threads_.push_back({.thread = static_cast<uint32_t>(of[0]),
                        .name = text,
                        .start = time(of[1]),
                        .end = time(of[2]),
                        .ran_ns = Sane(of[3]),
                        .queued_ns = Sane(of[4]),
                        .major_faults = Sane(of[5]),
                        .read_bytes = Sane(of[6]),
                        .written_bytes = Sane(of[7]),
                        .voluntary = Sane(of[8]),
                        .forced = Sane(of[9]),
                        .cpu = static_cast<uint32_t>(of[10])});
  }
  for (const std::string_view line :
       MarkedLines(trace, proto::kSampleDomain, proto::kHostCountsMark)) {
    std::array<uint64_t, 13> of;
    if (!ReadCountLine(line, &of, &text)) continue;
    constexpr int64_t kMicrosecond = 1000;
    host_.push_back({.start = time(of[0]),
                     .end = time(of[1]),
                     .throttled_ns = Sane(of[2]),
                     .throttled_periods = Sane(of[3]),
                     .others_ran_ns = Sane(of[4]),
                     .others_queued_ns = Sane(of[5]),
                     .threads = Sane(of[7]),
                     .cpu_pressure_ns = kMicrosecond * Sane(of[8]),
                     .io_pressure_ns = kMicrosecond * Sane(of[9]),
                     .memory_pressure_ns = kMicrosecond * Sane(of[10]),
                     .cpus = text});
    lacks_ |= static_cast<uint32_t>(of[12]);
  }
  for (const std::string_view line : MarkedLines(trace, proto::kSampleDomain, proto::kNodesMark)) {
    std::array<uint64_t, 1> node;
    if (!ReadCountLine(line, &node, &text)) continue;
    nodes_.emplace_back(static_cast<uint32_t>(node[0]), CpusIn(text));
  }
  for (const std::string_view line :
       MarkedLines(trace, proto::kSampleDomain, proto::kBusNodesMark)) {
    std::array<uint64_t, 1> node;
    if (ReadCountLine(line, &node, &text)) bus_nodes_.emplace_back(node[0], text);
  }
  const auto is_empty = [](const auto& span) { return span.start >= span.end; };
  std::erase_if(threads_, is_empty);
  std::erase_if(host_, is_empty);
}

std::optional<uint32_t> HostCounts::NodeOf(uint32_t cpu) const {
  for (const auto& [node, cpus] : nodes_) {
    if (std::ranges::binary_search(cpus, cpu)) return node;
  }
  return std::nullopt;
}

std::optional<uint32_t> HostCounts::NodeOfBus(std::string_view bus) const {
  // CUDA writes "0000:3B:00.0".
  const auto is_same = [](char a, char b) { return a == std::tolower(b); };
  for (const auto& [node, address] : bus_nodes_) {
    if (std::ranges::equal(address, bus, is_same)) return node;
  }
  return std::nullopt;
}

std::vector<uint32_t> HostCounts::Cpus() const {
  return host_.empty() ? std::vector<uint32_t>() : CpusIn(host_.back().cpus);
}

const HostCounts& CountsOf(const Trace& trace) {
  return trace.memo.Get<HostCounts>([&trace] { return HostCounts(trace); });
}

}  // namespace ranktap::collector
