// What threads were found doing as a Parquet table: samples.
#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>

#include "collector/export/parquet/parquet_tables.h"
#include "collector/facts/samples/sample_pieces.h"
#include "collector/facts/samples/thread_purposes.h"

namespace ranktap::collector {
namespace {

std::string_view NameOf(proto::SampleState state) {
  switch (state) {
    case proto::SampleState::kOnCpu:
      return "on cpu";
    case proto::SampleState::kWantsGil:
      return "wants the GIL";
    default:
      return "waits";
  }
}

// "outermost;...;innermost"
std::string StackOf(const HostSamples& samples, uint32_t frame) {
  std::string text;
  for (const SampledFrame* at = samples.Frame(frame); at != nullptr;
       at = samples.Frame(at->parent)) {
    text.insert(
        0, fmt::format("{}({}): {}{}", at->file, at->line, at->function, text.empty() ? "" : ";"));
  }
  return text;
}

using Pieces = std::shared_ptr<const std::vector<SamplePiece>>;

Pieces PiecesIn(const ExportOptions& options, const SamplePieces& all) {
  std::vector<SamplePiece> pieces;
  all.ForEach(options.from, options.to,
              [&pieces](const SamplePiece& piece) { pieces.push_back(piece); });
  std::ranges::stable_sort(pieces, {}, &SamplePiece::start);
  return std::make_shared<const std::vector<SamplePiece>>(std::move(pieces));
}

void AddCounts(const Pieces& pieces, ParquetTable* table) {
  const auto of = [pieces](uint32_t row) -> const SamplePiece& { return (*pieces)[row]; };
  table->Integer("on_cpu_ns", [of](uint32_t row) { return of(row).CpuNs(); });
  table->Integer("no_cpu_ns", [of](uint32_t row) { return of(row).QueuedNs(); });
  table->Integer("major_faults",
                 [of](uint32_t row) { return of(row).PartOf(of(row).sample->major_faults); });
  table->Integer("read_bytes",
                 [of](uint32_t row) { return of(row).PartOf(of(row).sample->read_bytes); });
}

void AddFrames(const Trace& trace, const Pieces& pieces, ParquetTable* table) {
  const HostSamples& samples = SamplesOf(trace);
  const auto frame_of = [pieces](uint32_t row) {
    const uint32_t frame = (*pieces)[row].sample->frame;
    return frame == 0 ? kNone : frame;
  };
  const auto add = [&](std::string_view name, auto text_of) {
    table->Name(name, frame_of, [&samples, text_of](uint32_t frame) {
      const SampledFrame* const known = samples.Frame(frame);
      return known == nullptr ? std::string() : text_of(frame, *known);
    });
  };
  add("file", [](uint32_t, const SampledFrame& frame) { return frame.file; });
  table->Optional("line", [pieces, &samples](uint32_t row) -> std::optional<int64_t> {
    const SampledFrame* const frame = samples.Frame((*pieces)[row].sample->frame);
    if (frame == nullptr || frame->line == 0) return std::nullopt;
    return frame->line;
  });
  add("function", [](uint32_t, const SampledFrame& frame) { return frame.function; });
  add("program_line", [&samples](uint32_t frame, const SampledFrame&) {
    return samples.Describe(samples.LineOf(frame));
  });
  add("stack", [&samples](uint32_t frame, const SampledFrame&) { return StackOf(samples, frame); });
}

}  // namespace

void AddSampleTable(const Trace& trace, const ParquetTarget& target, const AddParquetTable& add) {
  const SamplePieces all(trace);
  const ThreadPurposes& purposes = PurposesOf(trace);
  const Pieces pieces = PiecesIn(target.options, all);
  ParquetTable table{.name = "samples", .rows = {}};
  for (uint32_t row = 0; row < pieces->size(); ++row) table.rows.push_back(row);
  const auto of = [pieces](uint32_t row) -> const SamplePiece& { return (*pieces)[row]; };
  table.Integer("start_ns",
                [of, shift = target.shift_ns](uint32_t row) { return of(row).start + shift; });
  table.Integer("duration_ns", [of](uint32_t row) { return of(row).length(); });
  table.Optional("step", [of](uint32_t row) { return of(row).step; });
  table.Integer(
      "thread", [of](uint32_t row) { return of(row).sample->thread; }, ParquetType::kInt32);
  table.Text("thread_name", [of, &purposes](uint32_t row) {
    return purposes.NameOfThread(of(row).sample->thread);
  });
  table.Text("phase", [of, &purposes](uint32_t row) {
    const SamplePiece& piece = of(row);
    return piece.phase.empty() ? ranktap::collector::NameOf(purposes.WorkOf(*piece.sample))
                               : piece.phase;
  });
  table.Text("state", [of](uint32_t row) { return NameOf(of(row).sample->state); });
  AddCounts(pieces, &table);
  AddFrames(trace, pieces, &table);
  add(table);
}

}  // namespace ranktap::collector
