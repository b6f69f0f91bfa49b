#include "collector/report/steps/throughput.h"
#include "collector/report/capture/origin_advice.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "collector/facts/flops/op_flops.h"
#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/framework/op_modules.h"
#include "collector/facts/framework/timed_steps.h"
#include "collector/facts/roofline/device_peaks.h"
#include "collector/facts/roofline/roofline.h"
#include "collector/report/cells.h"
#include "collector/report/claims/claim.h"
#include "collector/report/columns.h"
#include "collector/report/framework/custom_flops.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

constexpr double kNsPerSecond = 1e9;

// Arithmetic of the recorded steps.
struct Work {
  std::vector<OpPlace> places;
  std::vector<FlopCount> counts;
  std::array<int64_t, kPasses> flops{};  // of one step
  std::map<std::string, double> by_type;
  double tf32 = 0;   // of 32-bit floats, what kernels did on tensor cores as their names say
  std::string root;  // the root module with most arithmetic
};

// "float" of ["float", "float", "Scalar"]
std::string FirstType(std::string_view types) {
  const size_t from = types.find('"');
  const size_t to = from == std::string_view::npos ? from : types.find('"', from + 1);
  return to == std::string_view::npos ? "" : std::string(types.substr(from + 1, to - from - 1));
}

Work Count(const Trace& trace) {
  Work work{.places = PlaceOperators(trace), .counts = CountFlops(trace, FlopRule::kCounter)};
  std::map<std::string, int64_t> by_root;
  for (size_t i = 0; i < work.counts.size(); ++i) {
    const int64_t flops = work.counts[i].flops;
    if (flops == 0 || work.places[i].in_evaluation) continue;
    AddCapped(flops, &work.flops[static_cast<size_t>(work.places[i].pass)]);
    work.by_type[FirstType(trace.dictionary.String(trace.operators.types.At(i)))] +=
        static_cast<double>(flops);
    const std::string_view module = trace.dictionary.String(work.places[i].module);
    AddCapped(flops, &by_root[std::string(module.substr(0, module.find('.')))]);
  }
  for (const RooflinePoint& point : MeasureCounted(trace).points) {
    const bool is_tf32 =
        point.unit.known == UnitKnown::kByKernel && point.unit.unit == ComputeUnit::kTf32;
    if (is_tf32 && point.type == MathType::kFp32) work.tf32 += static_cast<double>(point.flops);
  }
  const int64_t steps = CountRecordedSteps(trace, work.places);
  for (int64_t& flops : work.flops) flops /= steps;
  int64_t most = 0;
  for (const auto& [root, flops] : by_root) {
    if (flops <= most || root.empty()) continue;
    most = flops;
    work.root = root;
  }
  return work;
}

// The first dimension of what the root's first layer gets.
int64_t FirstLayersBatch(const Trace& trace, const Work& work) {
  struct Layer {
    std::string_view name;
    size_t data;  // which input
  };
  static constexpr Layer kLayers[] = {{"aten::embedding", 1},       {"aten::linear", 0},
                                      {"aten::conv1d", 0},          {"aten::conv2d", 0},
                                      {"aten::conv3d", 0},          {"aten::matmul", 0},
                                      {"aten::conv_transpose2d", 0}};
  const std::string prefix = work.root + ".";
  for (size_t i = 0; i < work.places.size(); ++i) {
    const std::string_view module = trace.dictionary.String(work.places[i].module);
    if (work.places[i].pass != Pass::kForward || work.places[i].in_evaluation ||
        (module != work.root && !module.starts_with(prefix))) {
      continue;
    }
    const std::string_view name = trace.dictionary.String(trace.operators.name[i]);
    const auto* const layer = std::find_if(std::begin(kLayers), std::end(kLayers),
                                           [name](const Layer& of) { return of.name == name; });
    if (layer == std::end(kLayers)) continue;
    const OpInputs inputs(trace.dictionary.String(trace.operators.shapes.At(i)), "");
    const Dims* const data = inputs.Tensor(layer->data, 1);
    return data == nullptr ? 0 : data->front();
  }
  return 0;
}

// The median over the steps of the forwards of this root module.
int64_t ForwardsPerStep(const Trace& trace, const TimedSteps& steps, const std::string& root) {
  std::map<int64_t, int64_t> by_step;
  for (const Step& step : steps.list) by_step[step.start] = 0;
  for (const uint32_t row : RangesIn(trace, kModuleDomain)) {
    const int64_t time = trace.ranges.start[row];
    if (trace.dictionary.String(trace.ranges.name[row]) != root || !steps.Has(time)) continue;
    ++std::prev(by_step.upper_bound(time))->second;
  }
  std::vector<int64_t> counts;
  for (const auto& [start, count] : by_step) counts.push_back(count);
  std::sort(counts.begin(), counts.end());
  return counts.empty() ? 0 : counts[counts.size() / 2];
}

// The devices that this rank works on. One listed and one used is that one, whatever its number.
std::vector<std::string> DeviceNames(const Trace& trace) {
  std::set<uint32_t> used;
  for (const Lane& lane : trace.lanes) used.insert(lane.device);
  if (used.size() == 1 && trace.hello.devices_size() == 1) return {trace.hello.devices(0).name()};
  std::vector<std::string> names;
  for (const v1::Device& device : trace.hello.devices()) {
    if (used.contains(device.id())) names.push_back(device.name());
  }
  return names;
}

std::string WhyNoDevice(const Trace& trace) {
  if (!trace.lanes.empty()) return "the file does not name the device: --peak-flops gives it";
  if (trace.hello.devices_size() > 0) return "no GPU was used: --peak-flops gives it";
  return "there is no GPU: --peak-flops gives it";
}

// 0: not known of one of them.
double Tf32Peak(const std::vector<std::string>& devices) {
  double sum = 0;
  for (const std::string& device : devices) {
    const DevicePeaks* const peaks = FindDevicePeaks(device);
    if (peaks == nullptr || peaks->flops(ComputeUnit::kTf32) <= 0) return 0;
    sum += peaks->flops(ComputeUnit::kTf32);
  }
  return sum;
}

// Where several types are multiplied, what a step would need at the peak of each decides.
void FindPeak(const Trace& trace, const Work& work, double given, Throughput* to) {
  for (const auto& [type, flops] : work.by_type) {
    to->types += (to->types.empty() ? "" : " + ") + type;
    if (type == "float" && work.tf32 > 0) to->types += " (TF32)";
  }
  if (given > 0) {
    to->peak_flops = given;
    to->peak_known = "given";
    return;
  }
  const std::vector<std::string> devices = DeviceNames(trace);
  if (devices.empty()) {
    to->peak_known = WhyNoDevice(trace);
    return;
  }
  double flops = 0, seconds = 0;
  for (auto [type, of_type] : work.by_type) {
    double peak = 0;
    for (const std::string& device : devices) peak += PeakFlops(device, type);
    if (const double tf32 = type == "float" ? Tf32Peak(devices) : 0; work.tf32 > 0 && tf32 > 0) {
      const double there = std::min(work.tf32, of_type);
      flops += there;
      seconds += there / tf32;
      of_type -= there;
    }
    if (peak == 0) {
      to->peak_known =
          fmt::format("no peak is known of {} for {}: --peak-flops gives it", devices[0], type);
      return;
    }
    flops += of_type;
    seconds += of_type / peak;
  }
  if (seconds > 0) to->peak_flops = flops / seconds;
  to->peak_known = fmt::format("data sheet of {}", devices[0]);
}

std::optional<double> Utilisation(const Throughput& of, int64_t flops) {
  if (of.peak_flops <= 0 || of.step_ns <= 0 || of.forward_flops == 0) return std::nullopt;
  return static_cast<double>(flops) * kNsPerSecond / static_cast<double>(of.step_ns) /
         of.peak_flops;
}

Cell OrNothing(std::optional<double> value) { return value ? Cell(*value) : Cell(); }
Cell PercentCell(std::optional<double> share) { return share ? Cell(100 * *share) : Cell(); }
Cell CountCell(int64_t value) { return value == 0 ? Cell() : Cell(value); }
Cell Rounded(std::optional<double> value) { return value ? Cell(std::llround(*value)) : Cell(); }

std::optional<double> FlopsPerSecond(const Throughput& of) {
  if (of.model_flops() == 0 || of.step_ns <= 0) return std::nullopt;
  return static_cast<double>(of.model_flops()) * kNsPerSecond / static_cast<double>(of.step_ns);
}

struct ThroughputLine {
  const Trace* trace = nullptr;
  Throughput of;
  bool is_decided = true;
};

const ColumnsOf<ThroughputLine> kThroughputColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const ThroughputLine& line) { return RankCell(*line.trace); }},
    {"steps", Unit::kCount, "The steps that ranktap measured.",
     [](const ThroughputLine& line) { return static_cast<int64_t>(line.of.steps); }},
    {"step_ns", Unit::kNs, "The mean length of a step.",
     [](const ThroughputLine& line) { return line.of.step_ns; }},
    {"batch", Unit::kCount, "The samples in a step, of all ranks.",
     [](const ThroughputLine& line) { return CountCell(line.of.batch); }},
    {"micro_batches", Unit::kCount, "The forwards in a step.",
     [](const ThroughputLine& line) { return CountCell(line.of.micro_batches); }, Shown::kDetail},
    {"data_parallel", Unit::kCount, "The ranks that train on different data.",
     [](const ThroughputLine& line) { return CountCell(line.of.parallel.data); }, Shown::kDetail},
    {"model_parallel", Unit::kCount, "The ranks that share a model.",
     [](const ThroughputLine& line) {
       return line.of.parallel.data == 0 ? Cell() : Cell(line.of.parallel.model());
     },
     Shown::kDetail},
    {"samples_per_second", Unit::kCount,
     "The samples that all ranks together train on in a second.",
     [](const ThroughputLine& line) { return OrNothing(line.of.SamplesPerSecond()); }},
    {"step_flops", Unit::kFlops, "The forward and backward operations of a rank in a step.",
     [](const ThroughputLine& line) { return CountCell(line.of.model_flops()); }, Shown::kDetail},
    {"recompute_flops", Unit::kFlops,
     "The operations a step of forwards that activation checkpointing ran again.",
     [](const ThroughputLine& line) { return line.of.recompute_flops; }, Shown::kDetail},
    {"flops_per_second", Unit::kFlopsPerSecond,
     "The rate of a rank's forward and backward operations.",
     [](const ThroughputLine& line) { return Rounded(FlopsPerSecond(line.of)); }},
    {"types", Unit::kText, "The types that the rank multiplies.",
     [](const ThroughputLine& line) { return line.of.types; }, Shown::kDetail},
    {"peak_flops", Unit::kFlopsPerSecond,
     "The highest rate of a rank's device for these types, a second.",
     [](const ThroughputLine& line) {
       return line.of.peak_flops == 0 ? Cell() : Rounded(line.of.peak_flops);
     },
     Shown::kDetail},
    {"mfu_percent", Unit::kPercent,
     "The rate of forward and backward operations as a share of the peak (MFU).",
     [](const ThroughputLine& line) {
       return line.is_decided ? PercentCell(line.of.Mfu()) : Cell();
     }},
    {"hfu_percent", Unit::kPercent, "The same with the operations that are computed again (HFU).",
     [](const ThroughputLine& line) {
       return line.is_decided ? PercentCell(line.of.Hfu()) : Cell();
     }},
};

}  // namespace

std::optional<double> Throughput::SamplesPerSecond() const {
  if (batch == 0 || micro_batches == 0 || parallel.data == 0 || step_ns <= 0) return std::nullopt;
  return static_cast<double>(batch) * static_cast<double>(micro_batches) *
         static_cast<double>(parallel.data) * kNsPerSecond / static_cast<double>(step_ns);
}

std::optional<double> Throughput::Mfu() const { return Utilisation(*this, model_flops()); }

std::optional<double> Throughput::Hfu() const {
  return Utilisation(*this, model_flops() + recompute_flops);
}

std::string WhyNoUtilisation(const Run& run, const ReportOptions& options) {
  for (const Claim claim : {Claim::kFlops, Claim::kPeak}) {
    if (claim == Claim::kPeak && options.peak_flops > 0) continue;
    const Ruling& ruling = RulingOn(run, claim);
    if (ruling.is_undecided()) return fmt::format("MFU is undecided: {}", ruling.why);
  }
  return "";
}

std::optional<Throughput> MeasureThroughput(const Run& run, const Trace& trace,
                                            const ReportOptions& options,
                                            std::optional<int64_t> step) {
  const Result<TimedSteps> timed = SelectTimedSteps(trace, step);
  if (!timed) return std::nullopt;
  const Work work = Count(trace);
  Throughput of{.steps = timed->list.size(),
                .step_ns = timed->mean_ns(),
                .micro_batches = ForwardsPerStep(trace, *timed, work.root),
                .parallel = SizeParallelism(run, trace, options.data_parallel),
                .forward_flops = work.flops[static_cast<size_t>(Pass::kForward)],
                .backward_flops = work.flops[static_cast<size_t>(Pass::kBackward)],
                .recompute_flops = work.flops[static_cast<size_t>(Pass::kRecompute)]};
  of.batch = options.batch_size > 0 ? options.batch_size : FirstLayersBatch(trace, work);
  of.batch_known = options.batch_size > 0 ? "given"
                   : of.batch > 0         ? "first dimension of the first layer's input"
                                          : "no layer's input was recorded: --batch-size gives it";
  if (options.batch_size > 0 && of.micro_batches == 0) {
    of.micro_batches = 1;
    of.batch_known = "given, of a whole step: no forward of a module is recorded";
  }
  FindPeak(trace, work, options.peak_flops, &of);
  return of;
}

Table TabulateThroughput(const Run& run, const ReportOptions& options) {
  std::vector<ThroughputLine> lines;
  std::set<std::string> notes;
  for (const Trace& trace : run.traces) {
    const std::optional<Throughput> of = MeasureThroughput(run, trace, options);
    if (!of) continue;
    lines.push_back({&trace, *of});
    notes.insert(fmt::format("data parallel size: {}", of->parallel.known));
    notes.insert(fmt::format("batch: {}", of->batch_known));
    notes.insert(fmt::format("peak: {}", of->peak_known));
  }
  const bool any = std::ranges::any_of(
      lines, [](const ThroughputLine& line) { return line.of.Mfu().has_value(); });
  if (std::string why = any ? WhyNoUtilisation(run, options) : ""; !why.empty()) {
    for (ThroughputLine& line : lines) line.is_decided = false;
    notes.insert(std::move(why));
  }
  Table table = TableOf("How fast the model is trained", kThroughputColumns, lines);
  if (lines.empty()) {
    table.notes.push_back(AdviceFor(
        run, {.ours = "no training step was seen; PyTorch's hooks see them, at --level full",
              .profiler = "no training step was seen; torch.profiler marks them where the program "
                          "calls its step()",
              .other = "no training step was seen"}));
  } else {
    table.notes.assign(notes.begin(), notes.end());
    table.notes.emplace_back("samples a second are of the whole job, the rest of each rank");
    for (std::string& note : NotesOfUnknownFlops(run)) table.notes.push_back(std::move(note));
  }
  return table;
}

}  // namespace ranktap::collector
