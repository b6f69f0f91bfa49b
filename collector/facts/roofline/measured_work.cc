#include "collector/facts/roofline/measured_work.h"

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "collector/facts/framework/operator_around.h"
#include "collector/facts/roofline/join_readings.h"
#include "collector/facts/roofline/roofline.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kThreadInstructions = "__sass_thread_inst_executed_op_";

struct NamedMetric {
  std::string_view name;
  Measured MeasuredWork::*sum;
};
constexpr NamedMetric kMetrics[] = {
    {"l1tex__t_bytes.sum", &MeasuredWork::l1},
    {"lts__t_bytes.sum", &MeasuredWork::l2},
    // What ncu's own roofline of a cache level takes.
    {"derived__l1tex__lsu_writeback_bytes_mem_lgds.sum", &MeasuredWork::l1},
    {"derived__lts__lts2xbar_bytes.sum", &MeasuredWork::l2},
    {"dram__bytes.sum", &MeasuredWork::device},
    {"dram__bytes_read.sum", &MeasuredWork::device},
    {"dram__bytes_write.sum", &MeasuredWork::device},
    {"gpu__time_duration.sum", &MeasuredWork::duration_ns},
    {"sm__inst_executed_pipe_tensor.sum", &MeasuredWork::tensor_instructions},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", &MeasuredWork::occupancy},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", &MeasuredWork::tensor_busy},
    {"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", &MeasuredWork::tensor_busy},
};

// "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"; also of sm__, the same at another level.
bool AddInstructions(std::string_view metric, double value, MeasuredWork* work) {
  metric.remove_prefix(metric.starts_with("smsp__") ? 4 : metric.starts_with("sm__") ? 2 : 0);
  if (!metric.starts_with(kThreadInstructions)) return false;
  metric.remove_prefix(kThreadInstructions.size());
  if (metric.size() < 4 || !metric.ends_with("_pred_on.sum")) return false;
  const std::string_view what = metric.substr(1, 3);
  if (what != "add" && what != "mul" && what != "fma") return false;
  const double flops = what == "fma" ? 2 * value : value;
  if (metric[0] == 'h') work->fp16.Add(flops);
  if (metric[0] == 'f') work->fp32.Add(flops);
  if (metric[0] == 'd') work->fp64.Add(flops);
  return true;
}

// False: no field is made of it.
bool AddReading(std::string_view metric, double value, MeasuredWork* work) {
  if (AddInstructions(metric, value, work)) return true;
  if (metric.starts_with("sm__ops_path_tensor_src") && metric.ends_with(".sum")) {
    work->tensor_flops.Add(value);
    return true;
  }
  for (const NamedMetric& known : kMetrics) {
    if (metric != known.name) continue;
    (work->*known.sum).Add(value);
    return true;
  }
  return false;
}

// ncu's sets (--set roofline, full) have rates where its --metrics have sums.
constexpr std::string_view kCycles = "smsp__cycles_elapsed.avg";
constexpr std::string_view kASecond = ".per_second", kACycle = ".per_cycle_elapsed";

// The sum that a rate is of, and by what to multiply it; of a multiprocessor's the rate by its
// cycles alone, since the same is there by seconds too. Empty: none.
std::pair<std::string_view, double> SumOf(std::string_view metric, double seconds, double cycles) {
  const bool is_of_cycles = metric.starts_with("sm");
  const std::string_view end = is_of_cycles ? kACycle : kASecond;
  if (!metric.ends_with(end)) return {};
  metric.remove_suffix(end.size());
  return {metric.ends_with(".sum") ? metric : "", is_of_cycles ? cycles : seconds};
}

// `of`: a metric's name and value.
template <typename Readings, typename Of>
MeasuredWork WorkOf(const Readings& readings, const Of& of) {
  MeasuredWork work;
  std::unordered_set<std::string_view> names;
  double seconds = 0, cycles = 0;
  for (const auto& reading : readings) {
    const auto [metric, value] = of(reading);
    names.insert(metric);
    if (metric == "gpu__time_duration.sum") seconds = value / 1e9;
    if (metric == kCycles) cycles = value;
  }
  const bool has_all_bytes = names.contains("dram__bytes.sum");
  for (const auto& reading : readings) {
    const auto [metric, value] = of(reading);
    if (has_all_bytes && metric.starts_with("dram__bytes_")) continue;  // parts of that
    const auto [sum, times] = SumOf(metric, seconds, cycles);
    if (sum.empty()) {
      AddReading(metric, value, &work);
    } else if (times > 0 && !names.contains(sum)) {
      AddReading(sum, value * times, &work);
    }
  }
  if (work.occupancy.sum()) work.occupied.Add(1);
  if (work.tensor_busy.sum()) work.tensors.Add(1);
  return work;
}

// Calls that launch one kernel, by their start: "cudaLaunchKernel", "cudaLaunchKernelExC", ...
std::vector<uint32_t> LaunchCalls(const Trace& trace) {
  std::vector<uint32_t> calls;
  for (uint32_t i = 0; i < trace.api_calls.size(); ++i) {
    const ApiFunction& api = trace.dictionary.Api(trace.api_calls.api[i]);
    if (api.domain == proto::ApiDomain::kRuntime && api.name.starts_with("cudaLaunchKernel")) {
      calls.push_back(i);
    }
  }
  return calls;
}

void AddCounters(const Trace& trace, MeasuredKernels* measured) {
  const KernelCounters& counters = trace.kernel_counters;
  const std::vector<uint32_t> launches = LaunchCalls(trace);
  measured->launches = launches.size();
  measured->is_joined = launches.size() == counters.size();
  const auto of = [&trace](const CounterReading& reading) {
    return std::pair(trace.dictionary.String(reading.metric), reading.value);
  };
  for (uint32_t row = 0; row < counters.size(); ++row) {
    MeasuredKernel& kernel = measured->kernels.emplace_back();
    kernel.name = trace.dictionary.String(counters.name[row]);
    kernel.work = WorkOf(counters.readings[row], of);
    if (measured->is_joined) kernel.launch = launches[row];
  }
}

void AddReadings(const JoinedReadings& readings, const Trace& trace, MeasuredKernels* measured) {
  const Kernels& kernels = trace.kernels;
  measured->is_joined = true;
  const auto of = [](const std::pair<std::string, double>& reading) {
    return std::pair(std::string_view(reading.first), reading.second);
  };
  for (const auto& [read, own] : readings.kernels) {
    MeasuredKernel& kernel = measured->kernels.emplace_back();
    kernel.name = read.name;
    kernel.work = WorkOf(read.readings, of);
    if (own == kNone) continue;
    kernel.launch = kernels.launch[own];
    if (const uint32_t op = kernels.op.At(own); op > 0) kernel.innermost = op - 1;
    kernel.work.own_ns.Add(static_cast<double>(kernels.end[own] - kernels.start[own]));
  }
}

}  // namespace

void MeasuredWork::Add(const MeasuredWork& other) {
  for (Measured MeasuredWork::*const sum :
       {&MeasuredWork::fp16, &MeasuredWork::fp32, &MeasuredWork::fp64, &MeasuredWork::tensor_flops,
        &MeasuredWork::tensor_instructions, &MeasuredWork::l1, &MeasuredWork::l2,
        &MeasuredWork::device, &MeasuredWork::duration_ns, &MeasuredWork::own_ns,
        &MeasuredWork::occupancy, &MeasuredWork::occupied, &MeasuredWork::tensor_busy,
        &MeasuredWork::tensors}) {
    (this->*sum).Add(other.*sum);
  }
}

std::optional<double> MeasuredWork::Flops() const {
  Measured all = fp16;
  all.Add(fp32);
  all.Add(fp64);
  all.Add(tensor_flops);
  return all.sum();
}

std::vector<std::string_view> MetricsOfWork() {
  return {"gpu__time_duration.sum",
          "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum",
          "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum",
          "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum",
          "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
          "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
          "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
          "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
          "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
          "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
          "sm__inst_executed_pipe_tensor.sum",
          "l1tex__t_bytes.sum",
          "lts__t_bytes.sum",
          "dram__bytes.sum",
          "sm__warps_active.avg.pct_of_peak_sustained_active",
          "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"};
}

bool TellsOfWork(std::string_view metric) {
  MeasuredWork ignored;
  const std::string_view sum = SumOf(metric, 0, 0).first;
  return metric == kCycles || AddReading(sum.empty() ? metric : sum, 0, &ignored);
}

MeasuredKernels JoinKernelCounters(const Trace& trace) {
  MeasuredKernels measured;
  const JoinedReadings* const other = KnownReadingsOf(trace);
  if (other == nullptr && trace.kernel_counters.size() == 0) return measured;
  measured.of_another_run = other != nullptr;
  if (other != nullptr) {
    AddReadings(*other, trace, &measured);
  } else {
    AddCounters(trace, &measured);
  }
  std::unordered_set<uint32_t> formulas;
  for (const RooflinePoint& point : MeasureRoofline(trace).points) {
    if (point.kind == PointKind::kCounted && point.flops > 0) formulas.insert(point.op);
  }
  const OperatorAround around(trace);
  const Operators& ops = trace.operators;
  const ApiCalls& calls = trace.api_calls;
  for (MeasuredKernel& kernel : measured.kernels) {
    uint32_t op = std::exchange(kernel.innermost, kNone);
    if (op == kNone && kernel.launch < calls.size()) {
      op = around.InnermostAt(calls.writer[kernel.launch], calls.start[kernel.launch]);
    }
    for (; op != kNone; op = ops.parent[op]) {
      if (ops.kind[op] != static_cast<uint8_t>(OperatorKind::kOperator)) continue;
      if (kernel.innermost == kNone) kernel.innermost = op;
      kernel.outermost = op;
      if (kernel.counted == kNone && formulas.contains(op)) kernel.counted = op;
    }
  }
  return measured;
}

}  // namespace ranktap::collector
