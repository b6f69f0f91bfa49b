#include "collector/facts/roofline/measured_work.h"

#include <string_view>
#include <unordered_set>

#include "collector/facts/framework/operator_around.h"
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

MeasuredWork WorkOf(const Trace& trace, const std::vector<CounterReading>& readings) {
  MeasuredWork work;
  bool has_all_bytes = false;
  for (const CounterReading& reading : readings) {
    has_all_bytes |= trace.dictionary.String(reading.metric) == "dram__bytes.sum";
  }
  for (const CounterReading& reading : readings) {
    const std::string_view metric = trace.dictionary.String(reading.metric);
    if (AddInstructions(metric, reading.value, &work)) continue;
    if (metric.starts_with("sm__ops_path_tensor_src") && metric.ends_with(".sum")) {
      work.tensor_flops.Add(reading.value);
      continue;
    }
    if (has_all_bytes && metric.starts_with("dram__bytes_")) continue;  // parts of that
    for (const NamedMetric& known : kMetrics) {
      if (metric == known.name) (work.*known.sum).Add(reading.value);
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

}  // namespace

void MeasuredWork::Add(const MeasuredWork& other) {
  for (Measured MeasuredWork::*const sum :
       {&MeasuredWork::fp16, &MeasuredWork::fp32, &MeasuredWork::fp64, &MeasuredWork::tensor_flops,
        &MeasuredWork::tensor_instructions, &MeasuredWork::l1, &MeasuredWork::l2,
        &MeasuredWork::device, &MeasuredWork::duration_ns, &MeasuredWork::occupancy,
        &MeasuredWork::occupied, &MeasuredWork::tensor_busy, &MeasuredWork::tensors}) {
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

MeasuredKernels JoinKernelCounters(const Trace& trace) {
  MeasuredKernels measured;
  const KernelCounters& counters = trace.kernel_counters;
  if (counters.size() == 0) return measured;
  const std::vector<uint32_t> launches = LaunchCalls(trace);
  measured.launches = launches.size();
  measured.is_joined = launches.size() == counters.size();
  std::unordered_set<uint32_t> formulas;
  for (const RooflinePoint& point : MeasureRoofline(trace).points) {
    if (point.kind == PointKind::kCounted && point.flops > 0) formulas.insert(point.op);
  }
  const OperatorAround around(trace);
  const Operators& ops = trace.operators;
  for (uint32_t row = 0; row < counters.size(); ++row) {
    MeasuredKernel& kernel = measured.kernels.emplace_back();
    kernel.row = row;
    kernel.work = WorkOf(trace, counters.readings[row]);
    if (!measured.is_joined) continue;
    kernel.launch = launches[row];
    const ApiCalls& calls = trace.api_calls;
    uint32_t op = around.InnermostAt(calls.writer[kernel.launch], calls.start[kernel.launch]);
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
