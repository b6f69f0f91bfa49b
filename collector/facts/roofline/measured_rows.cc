#include "collector/facts/roofline/measured_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "collector/facts/framework/op_modules.h"
#include "collector/facts/roofline/roofline.h"
#include "collector/trace/sort_rows.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

// Beyond it counters and shapes tell of different work.
constexpr double kContradiction = 0.10, kReadAgain = 1.5;
constexpr size_t kContradictionsNamed = 3;

std::string MeasuredOperatorName(const Trace& trace, uint32_t op) {
  return op == kNone ? "" : std::string(trace.dictionary.String(trace.operators.name[op]));
}

class AddingMeasured {
 public:
  explicit AddingMeasured(std::string_view by) : by_(by) {}

  void Add(const Trace& trace, const MeasuredKernels& measured) {
    if (measured.kernels.empty()) return;
    const std::vector<OpPlace> places = PlaceOperators(trace);
    for (const MeasuredKernel& kernel : measured.kernels) {
      const uint32_t op = kernel.counted != kNone ? kernel.counted : kernel.innermost;
      const std::string module(op == kNone ? "" : trace.dictionary.String(places[op].module));
      MeasuredRow& row = RowOf(trace, kernel, op, module);
      row.work.Add(kernel.work);
      ++row.launches;
    }
    if (by_ == "operator" || by_ == "module") AddAnalytic(trace, measured, places);
  }
  std::vector<MeasuredRow> Take() {
    if (by_ != "launch") {
      SortRows(&rows_, [](const MeasuredRow& a, const MeasuredRow& b) {
        return a.work.Flops().value_or(0) > b.work.Flops().value_or(0);
      });
    }
    return std::move(rows_);
  }

 private:
  MeasuredRow& RowOf(const Trace& trace, const MeasuredKernel& kernel, uint32_t op,
                     const std::string& module) {
    const std::string name = by_ == "operator" ? MeasuredOperatorName(trace, op)
                             : by_ == "module" ? module
                                               : ReadableKernelName(kernel.name);
    if (by_ != "launch") {
      const auto [at, is_new] = by_name_.try_emplace({&trace, name}, rows_.size());
      if (!is_new) return rows_[at->second];
    }
    MeasuredRow& row = rows_.emplace_back();
    row.trace = &trace;
    row.name = name;
    row.innermost = MeasuredOperatorName(trace, kernel.innermost);
    row.outermost = MeasuredOperatorName(trace, kernel.outermost);
    row.module = module;
    return row;
  }

  // Each operator once, however many kernels it launched.
  void AddAnalytic(const Trace& trace, const MeasuredKernels& measured,
                   const std::vector<OpPlace>& places) {
    std::map<uint32_t, const RooflinePoint*> points;
    std::map<uint32_t, int64_t> kernels;
    for (const MeasuredKernel& kernel : measured.kernels) {
      points.try_emplace(kernel.counted);
      ++kernels[kernel.counted];
    }
    for (const RooflinePoint& point : MeasureRoofline(trace).points) {
      // ncu measures the kernels that it was asked for, and an operator may have launched others.
      const bool is_partly = measured.of_another_run && kernels[point.op] < point.kernels;
      if (const auto at = points.find(point.op);
          at != points.end() && point.op != kNone && !is_partly) {
        at->second = &point;
      }
    }
    for (const auto& [op, point] : points) {
      if (point == nullptr) continue;
      const std::string name = by_ == "operator"
                                   ? MeasuredOperatorName(trace, op)
                                   : std::string(trace.dictionary.String(places[op].module));
      MeasuredRow& row = rows_[by_name_.at({&trace, name})];
      row.flops = row.flops.value_or(0) + point->flops;
      row.moved = row.moved.value_or(0) + point->bytes.read + point->bytes.written;
    }
  }

  std::string_view by_;
  std::vector<MeasuredRow> rows_;
  std::map<std::pair<const Trace*, std::string>, size_t> by_name_;
};

void NoteFlops(const MeasuredRow& row, std::vector<std::string>* notes) {
  const std::optional<double> flops = row.work.Flops();
  if (!flops || row.flops.value_or(0) == 0 || row.lacks_tensor_flops()) return;
  const double share = *flops / static_cast<double>(*row.flops);
  if (std::abs(share - 1) <= kContradiction) return;
  notes->push_back(fmt::format(
      "{}: the device did {:.0f} % of the FLOPs that the shapes say{}", row.name, 100 * share,
      share < 1 ? ": an algorithm with fewer (Winograd, FFT), or tensor cores, which the "
                  "counters leave out"
                : ": padding, or arithmetic beside the products"));
}

// The least of the shapes is exceeded; below it lies what a cache held, which is no contradiction.
void NoteBytes(const MeasuredRow& row, std::vector<std::string>* notes) {
  const std::optional<double>& bytes = row.work.device.sum();
  if (!bytes || row.moved.value_or(0) == 0) return;
  const double share = *bytes / static_cast<double>(*row.moved);
  if (share <= kReadAgain) return;
  notes->push_back(fmt::format(
      "{}: the device's memory moved {:.1f} times the bytes that the shapes say: tensors are read "
      "again, or a workspace is written",
      row.name, share));
}

template <typename NoteOne>
void NoteFirst(const std::vector<MeasuredRow>& rows, NoteOne note,
               std::vector<std::string>* notes) {
  std::vector<std::string> all;
  for (const MeasuredRow& row : rows) note(row, &all);
  if (all.size() > kContradictionsNamed) all.resize(kContradictionsNamed);
  notes->insert(notes->end(), all.begin(), all.end());
}

}  // namespace

std::optional<double> MeasuredRow::Flops() const {
  if (!lacks_tensor_flops()) return work.Flops();
  return flops ? std::optional(static_cast<double>(*flops)) : std::nullopt;
}

std::optional<double> MeasuredRow::TimeNs() const {
  return work.own_ns.sum() ? work.own_ns.sum() : work.duration_ns.sum();
}

MeasuredRows SummarizeMeasured(const Run& run, std::string_view by) {
  MeasuredRows measured;
  AddingMeasured rows(by);
  for (const Trace& trace : run.traces) {
    const MeasuredKernels kernels = JoinKernelCounters(trace);
    rows.Add(trace, kernels);
    if (kernels.kernels.empty() || kernels.is_joined) continue;
    measured.unjoined.push_back({&trace, kernels.kernels.size(), kernels.launches});
  }
  measured.rows = rows.Take();
  const auto lacking = std::ranges::count_if(measured.rows, &MeasuredRow::lacks_tensor_flops);
  if (lacking > 0) {
    measured.contradictions.push_back(
        fmt::format("{} rows worked on tensor cores, whose FLOPs nobody counted: those that the "
                    "shapes say stand for them in intensities",
                    lacking));
  }
  NoteFirst(measured.rows, &NoteFlops, &measured.contradictions);
  NoteFirst(measured.rows, &NoteBytes, &measured.contradictions);
  return measured;
}

}  // namespace ranktap::collector
