// Differences between readings.
// Runs on: see count_spans.h.  May not: see there.
#include "agent/sources/samples/count_spans.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace ranktap::agent::samples {

void CountSpans::BeginRound(uint64_t now_ns, uint64_t now_ticks) {
  now_ns_ = now_ns;
  now_ticks_ = now_ticks;
  threads_.BeginRound();
  for (Span& span : spans_) span.is_there = false;
}

LookCounts CountSpans::Look(int32_t thread) {
  ThreadCounts counts;
  if (!threads_.Read(thread, &counts)) return {};
  Span* span = std::ranges::find(spans_, thread, &Span::thread);
  if (span == spans_.end()) {
    span = std::ranges::find(spans_, 0, &Span::thread);
    if (span != spans_.end()) *span = {.thread = thread};
  }
  if (span != spans_.end()) {
    span->is_there = true;
    span->now = counts;
  }
  return {counts.ran_ns, counts.queued_ns, counts.major_faults, counts.read_bytes};
}

void CountSpans::Tell(Span* span, SampleLines& lines) {
  std::array<char, 16> name;
  threads_.ReadRest(span->thread, &span->now, &name);
  const ThreadCounts &at = span->at, &now = span->now;
  if (span->start_ticks != 0) {
    const uint64_t numbers[] = {static_cast<uint32_t>(span->thread),
                                span->start_ticks,
                                now_ticks_,
                                now.ran_ns - at.ran_ns,
                                now.queued_ns - at.queued_ns,
                                now.major_faults - at.major_faults,
                                now.read_bytes - at.read_bytes,
                                now.written_bytes - at.written_bytes,
                                now.voluntary - at.voluntary,
                                now.forced - at.forced,
                                now.cpu};
    lines.AddThread(numbers, std::string_view(name.data()));
  }
  span->start_ticks = now_ticks_;
  span->at = now;
}

void CountSpans::TellHost(SampleLines& lines) {
  const HostCounts now = host_.Read();
  const CpuList cpus = CpusOf(getpid());
  const ThreadReadings::Others others = threads_.ReadOthers();
  if (host_start_ticks_ != 0) {
    const uint64_t numbers[] = {host_start_ticks_,
                                now_ticks_,
                                now.throttled_ns - host_at_.throttled_ns,
                                now.throttled_periods - host_at_.throttled_periods,
                                others.ran_ns - others_at_.ran_ns,
                                others.queued_ns - others_at_.queued_ns,
                                others.read,
                                others.threads,
                                now.cpu_pressure_us - host_at_.cpu_pressure_us,
                                now.io_pressure_us - host_at_.io_pressure_us,
                                now.memory_pressure_us - host_at_.memory_pressure_us,
                                cpus.count,
                                host_.lacks() | threads_.lacks()};
    lines.AddHost(numbers, std::string_view(cpus.text.data()));
  }
  host_start_ticks_ = now_ticks_;
  host_at_ = now;
  others_at_ = others;
}

void CountSpans::EndRound(SampleLines& lines) {
  constexpr uint64_t kPeriodNs = 250'000'000;
  const bool is_due = IsDue();
  for (Span& span : spans_) {
    if (!span.is_there) span = {};
    if (span.thread != 0 && (is_due || span.start_ticks == 0)) Tell(&span, lines);
  }
  threads_.EndRound();
  if (!is_due) return;
  due_ns_ = now_ns_ + kPeriodNs;
  if (!nodes_are_told_) {
    for (const auto& [node, cpus] : host_.nodes()) lines.AddNode(node, cpus);
    for (const auto& [node, bus] : host_.bus_nodes()) lines.AddBusNode(node, bus);
  }
  nodes_are_told_ = true;
  TellHost(lines);
}

void CountSpans::Close() {
  threads_.Close();
  spans_.fill({});
  host_start_ticks_ = 0;
}

void CountSpans::CloseInForkChild() {
  threads_.CloseInForkChild();
  host_.CloseInForkChild();
}

}  // namespace ranktap::agent::samples
