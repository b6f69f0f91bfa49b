#include "collector/report/host/host_steps.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "collector/facts/samples/sample_pieces.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"

namespace ranktap::collector {
namespace {

struct StepTime {
  const Trace* trace = nullptr;
  int64_t step = 0;
  int64_t seen_ns = 0, cpu_ns = 0, queued_ns = 0, gil_ns = 0, faults = 0, read_bytes = 0;
  std::map<std::string, int64_t> lines;
  std::string line;  // that has most
  int64_t line_ns = 0;
};

void AddSteps(const Trace& trace, std::vector<StepTime>* to) {
  const HostSamples& samples = SamplesOf(trace);
  if (samples.empty()) return;
  std::map<int64_t, StepTime> steps;
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  SamplePieces(trace).ForEach(kFirst, kLast, [&](const SamplePiece& piece) {
    if (!piece.step || piece.sample->thread != samples.main_thread()) return;
    StepTime& row = steps[*piece.step];
    const int64_t cpu = piece.CpuNs(), queued = piece.QueuedNs();
    row.seen_ns += piece.length();
    row.cpu_ns += cpu;
    row.queued_ns += queued;
    if (piece.sample->state == proto::SampleState::kWantsGil) {
      row.gil_ns += piece.length() - cpu - queued;
    }
    row.faults += piece.PartOf(piece.sample->major_faults);
    row.read_bytes += piece.PartOf(piece.sample->read_bytes);
    row.lines[samples.Describe(samples.LineOf(piece.sample->frame))] += piece.length();
  });
  for (auto& [number, row] : steps) {
    row.trace = &trace;
    row.step = number;
    for (const auto& [line, ns] : row.lines) {
      if (line.empty() || ns <= row.line_ns) continue;
      row.line = line;
      row.line_ns = ns;
    }
    to->push_back(std::move(row));
  }
}

const ColumnsOf<StepTime> kHostStepsColumns = {
    {"rank", Unit::kCount, "The rank.", [](const StepTime& row) { return RankCell(*row.trace); }},
    {"step", Unit::kCount, "The step's number.", [](const StepTime& row) { return row.step; }},
    {"sampled_ns", Unit::kNs, "The part of the step in which its main thread was looked at.",
     [](const StepTime& row) { return row.seen_ns; }},
    {"on_cpu_ns", Unit::kNs, "The part of that in which a CPU ran it.",
     [](const StepTime& row) { return row.cpu_ns; }},
    {"no_cpu_ns", Unit::kNs, "The part in which it was ready to run and no CPU ran it.",
     [](const StepTime& row) { return row.queued_ns; }},
    {"waiting_ns", Unit::kNs, "The part in which it waited, and not for the interpreter's lock.",
     [](const StepTime& row) { return row.seen_ns - row.cpu_ns - row.queued_ns - row.gil_ns; }},
    {"gil_ns", Unit::kNs, "The part in which it waited for the interpreter's lock.",
     [](const StepTime& row) { return row.gil_ns; }},
    {"major_faults", Unit::kCount, "How often it met a page that was not in memory.",
     [](const StepTime& row) { return row.faults; }, Shown::kDetail},
    {"read_bytes", Unit::kBytes, "What it read from storage.",
     [](const StepTime& row) { return row.read_bytes; }, Shown::kDetail},
    {"line_ns", Unit::kNs, "The time at the line of the program that has most of it.",
     [](const StepTime& row) { return row.line_ns; }},
    {"line", Unit::kText, "That line, and the call of a package below it.",
     [](const StepTime& row) { return row.line.empty() ? Cell() : Cell(row.line); }},
};

}  // namespace

Table TabulateHostSteps(const Run& run, const ReportOptions&) {
  std::vector<StepTime> rows;
  bool was_sampled = false;
  for (const Trace& trace : run.traces) {
    was_sampled = was_sampled || !SamplesOf(trace).empty();
    AddSteps(trace, &rows);
  }
  Table table = TableOf("Where the main thread was, step by step", kHostStepsColumns, rows);
  if (rows.empty()) {
    table.notes.push_back(was_sampled ? "no steps were found"
                                      : "no thread was sampled; record with ranktap run --sample "
                                        "10ms");
  }
  return table;
}

}  // namespace ranktap::collector
