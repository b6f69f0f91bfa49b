// The function that writes each format; registry.cc lists them. Each writes `traces` of the run to
// a new file at `path`, and returns why it could not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "collector/export/export_options.h"
#include "collector/file/result.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The JSON that Kineto writes, field by field (docs/formats: the Kineto dialect): what HTA,
// TensorBoard, chrome://tracing and Perfetto read. One trace a file. NVTX ranges are
// user_annotation; a start/end range, which may overlap others on its thread, is a pair of async
// events.
//
// ExportOptions::hta_compat: kernels of NCCL have the names of NCCL 2.18 and before
// (ncclKernel...), by which HTA's straggler analysis knows them, and our steps are annotations
// ProfilerStep#N, by which its analyses of iterations do, where the trace has none.
std::optional<Failure> WriteChrome(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path);

// Perfetto's protobuf trace, all ranks in one file: ui.perfetto.dev, trace_processor.
// Each rank is a process with its threads, and its GPUs with their streams below it. Times are
// CLOCK_REALTIME. A path that ends with ".tar" becomes an archive of a file for each rank, and a
// perfetto_manifest.json that says on which host each ran: trace_processor 58 and newer lay them
// onto one timeline, and hosts are machines.
std::optional<Failure> WritePerfetto(const Run& run, std::span<const Trace* const> traces,
                                     const ExportOptions& options, const std::string& path);

// One line for each thing that lasts (and each mark), all ranks in one file: what pandas, DuckDB
// and spreadsheets take without a schema. Times are nanoseconds after the run's first event.
std::optional<Failure> WriteCsv(const Run& run, std::span<const Trace* const> traces,
                                const ExportOptions& options, const std::string& path);

// An SQLite file with the tables and columns of `nsys export --type sqlite`, all ranks in one: the
// queries that people have for those run on it. Times are nanoseconds after the run's first event,
// which TARGET_INFO_SESSION_START_TIME gives; table RANKTAP_RANKS says which globalPid is which
// rank.
std::optional<Failure> WriteSqlite(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path);

// Tables of Parquet files in the folder `path`, which may hold other runs: path/TABLE/run=NAME/
// rank=R/part-0.parquet (parquet/data_set.h). Times are CLOCK_REALTIME in nanoseconds.
std::optional<Failure> WriteParquet(const Run& run, std::span<const Trace* const> traces,
                                    const ExportOptions& options, const std::string& path);

// Folded stacks, "outermost;...;innermost;[kernel] count" a line, for flamegraph.pl, speedscope and
// the like. Weights are nanoseconds: of the GPU work that a call launched, under its kernel's name,
// or of the call itself where it launched none. Calls without a stack are under "(no stack)".
// The ranks' stacks are under "rank N". Needs Trace::symbols.
std::optional<Failure> WriteFolded(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path);

// Speedscope's JSON: sampled profiles of GPU time by host stack, of operators, and of CUDA calls
// (weighted_stacks.h); all ranks in one. Needs Trace::symbols.
std::optional<Failure> WriteSpeedscope(const Run& run, std::span<const Trace* const> traces,
                                       const ExportOptions& options, const std::string& path);

// pprof's profile.proto, the same stacks with all weights; compressed where the path ends with
// ".gz". Needs Trace::symbols.
std::optional<Failure> WritePprof(const Run& run, std::span<const Trace* const> traces,
                                  const ExportOptions& options, const std::string& path);

// MegEngine's memory_flow.svg: time to the right, 100 us a unit, addresses downwards, 1 MB a unit;
// a rectangle for each block that the framework's allocator gave out, the darker the longer it
// lived. Addresses that no block ever had are left out, so that the heights above one moment sum up
// to what was held then; devices lie one below the other. `tag:` attributes as MegEngine's, and
// `tag:category`, `tag:device`. One trace; blocks with known addresses only.
std::optional<Failure> WriteMemoryFlow(const Run& run, std::span<const Trace* const> traces,
                                       const ExportOptions& options, const std::string& path);

// For the first device that is named, by the end of the file's name: ".html" a picture of the
// curves (SVG where torch has a PNG; at most a moment a pixel, that with most memory), ".raw..."
// rows of [ns, action, bytes, category], else [[us], [[0, bytes by category]]].
std::optional<Failure> WriteMemoryTimeline(const Run& run, std::span<const Trace* const> traces,
                                           const ExportOptions& options, const std::string& path);

// Segments hold what was alive at the end; an allocator's own are not known, so neighbours of less
// than kNeighbour bytes apart make one. Traces have every allocation and release, of what was there
// before the first only the release. The device of a GPU is its index; the CPU comes after them.
// Frames are the Python stack where there is one, else the operator, the module and the category.
inline constexpr uint64_t kNeighbour = 1 << 20;
std::optional<Failure> WriteMemorySnapshot(const Run& run, std::span<const Trace* const> traces,
                                           const ExportOptions& options, const std::string& path);

// PyTorch's execution trace, schema 1.1.1-chakra.0.0.4, as its ExecutionTraceObserver writes it:
// et_replay, chakra_trace_link. One trace, of a capture with --tensors=full: fails where no
// operator has values. The time is of UTC.
std::optional<Failure> WriteExecutionTrace(const Run& run, std::span<const Trace* const> traces,
                                           const ExportOptions& options, const std::string& path);

// A Python script that runs the operators again, with PyTorch alone, and collectives over gloo in a
// process a rank (docs/commands/export.md). Captures with --tensors=full: fails where no operator
// has values and a schema.
std::optional<Failure> WriteReplay(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path);

// A folder at `path`: rank.R.et for each trace, and comm_group.json (docs/commands/export.md). An
// imported .et is copied node by node.
std::optional<Failure> WriteChakra(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path);

// The graph of waits, in a format by the end of the name: .dot, .graphml, or .svg, which Graphviz
// draws where it is installed (1,000 nodes at most). One trace.
std::optional<Failure> WriteGraph(const Run& run, std::span<const Trace* const> traces,
                                  const ExportOptions& options, const std::string& path);

// What report RUN roofline says, drawn: an SVG, or a page with a table where `path` ends with
// ".html". All ranks added up. Fails where no point has a place in it.
std::optional<Failure> WriteRoofline(const Run& run, std::span<const Trace* const> traces,
                                     const ExportOptions& options, const std::string& path);

// A shell script with a command of Nsight Compute for each rank: the metrics of measured_work.h of
// the kernels that take most time, in one step.
std::optional<Failure> WriteNcu(const Run& run, std::span<const Trace* const> traces,
                                const ExportOptions& options, const std::string& path);

}  // namespace ranktap::collector
