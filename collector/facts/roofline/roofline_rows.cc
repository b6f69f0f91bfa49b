#include "collector/facts/roofline/roofline_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "collector/facts/device_timeline.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/steps.h"

namespace ranktap::collector {
namespace {

constexpr double kNsPerSecond = 1e9;

FlopKind KindOf(const RooflinePoint& point) {
  switch (point.type) {
    case MathType::kFp64:
      return FlopKind::kFp64;
    case MathType::kFp32:
      return point.unit.unit == ComputeUnit::kTf32 ? FlopKind::kTf32 : FlopKind::kFp32;
    case MathType::kFp16:
      return FlopKind::kFp16;
    case MathType::kBf16:
      return FlopKind::kBf16;
    case MathType::kFp8:
      return FlopKind::kFp8;
    case MathType::kInt8:
      return FlopKind::kInt8;
    default:
      return FlopKind::kOther;
  }
}

std::string CutBelow(std::string_view module, int depth) {
  size_t end = 0;
  for (int parts = 0; depth >= 0 && parts <= depth && end < module.size(); ++parts) {
    end = std::min(module.find('.', parts == 0 ? 0 : end + 1), module.size());
  }
  return std::string(depth < 0 ? module : module.substr(0, end));
}

// The part of a point that is added: all of it, or a kernel's share.
struct Part {
  double share = 1;  // of what its roof says
  int64_t time_ns = 0, kernel_ns = 0, kernels = 0, flops = 0, read = 0, written = 0;
  bool is_extra = false;  // a kernel beside those that compute
};

class Adding {
 public:
  Adding(const Trace& trace, const RooflineQuestion& question)
      : trace_(trace),
        question_(question),
        line_(MeasureRoofline(trace)),
        spans_(DeviceTimeline(trace)),
        roofs_(trace, question.roofs) {}

  void AddTo(std::map<std::string, RooflineRow>* rows) {
    rows_ = rows;
    for (const RooflinePoint& point : line_.points) {
      if (question_.by == RooflineBy::kKernel) {
        AddWorkOf(point);
      } else {
        AddPoint(point);
      }
    }
  }
  const RoofsOfTrace& roofs() const { return roofs_; }
  const Roofline& line() const { return line_; }
  bool on_host() const { return !line_.on_device && roofs_.Of(kNone).measured != nullptr; }

 private:
  void AddPoint(const RooflinePoint& point) {
    const Roofs& roofs = roofs_.Of(point.device);
    const RoofJudgement judged = JudgePoint(point, roofs, line_.on_device);
    Add(point, roofs, judged,
        {.time_ns = on_host() ? point.host_ns : point.time_ns,
         .kernel_ns = point.kernel_ns,
         .kernels = point.kernels,
         .flops = point.flops,
         .read = point.bytes.read,
         .written = point.bytes.written},
        &RowOf(point));
  }

  void AddWorkOf(const RooflinePoint& point) {
    const Roofs& roofs = roofs_.Of(point.device);
    const RoofJudgement judged = JudgePoint(point, roofs, line_.on_device);
    int64_t pieces = 0;
    for (uint32_t i = 0; i < point.works; ++i) {
      const RooflineWork& work = line_.work[point.first_work + i];
      pieces += work.computes ? 1 : 0;
    }
    for (uint32_t i = 0; i < point.works; ++i) {
      const RooflineWork& work = line_.work[point.first_work + i];
      const RooflineShare share = line_.ShareOf(point, i);
      const int64_t ns = LengthOf(work);
      const bool is_kernel = spans_[work.span].table == DeviceSpan::Table::kKernel;
      Part part{.share = 0,
                .time_ns = ns,
                .kernel_ns = is_kernel ? ns : 0,
                .kernels = is_kernel ? 1 : 0,
                .flops = share.flops,
                .read = share.read,
                .written = share.written,
                .is_extra = !work.computes};
      if (work.computes) {
        part.share = point.computing_ns > 0
                         ? static_cast<double>(ns) / static_cast<double>(point.computing_ns)
                         : 1 / static_cast<double>(pieces);
      }
      Add(point, roofs, judged, part, &RowNamed(KernelName(work)));
    }
  }

  void Add(const RooflinePoint& point, const Roofs& roofs, const RoofJudgement& judged,
           const Part& part, RooflineRow* row) const {
    ++row->calls;
    row->kernels += part.kernels;
    row->time_ns += part.time_ns;
    row->kernel_ns += part.kernel_ns;
    AddCapped(part.flops, &row->flops);
    AddCapped(part.flops, &row->flops_of[static_cast<size_t>(KindOf(point))]);
    AddCapped(part.read, &row->read);
    AddCapped(part.written, &row->written);
    if (part.flops > 0 && point.unit.known != UnitKnown::kNone) {
      row->units |= 1u << static_cast<unsigned>(roofs.UnitThere(point.unit.unit));
      row->unit_unsaid |= point.unit.known == UnitKnown::kUnsaid;
    }
    if (point.bytes.known == BytesKnown::kAtLeast) ++row->at_least;
    if (point.bytes.is_counted() && point.bytes.total() > 0 && !part.is_extra) ++row->told;
    AddJudgement(judged, part, row);
  }

  void AddJudgement(const RoofJudgement& judged, const Part& part, RooflineRow* row) const {
    const double least = judged.least_ns * part.share;
    const RoofBound bound = part.is_extra && judged.is_counted ? RoofBound::kExtra : judged.bound;
    row->bound_ns[static_cast<size_t>(bound)] +=
        line_.on_device || on_host() ? static_cast<double>(part.time_ns) : least;
    if (!judged.is_counted) return;
    if (judged.is_timed) row->counted_ns += part.time_ns;
    AddCapped(part.flops, &row->counted_flops);
    AddCapped(part.read + part.written, &row->counted_bytes);
    row->least_ns += least;
    row->least_at_base += judged.least_at_base * part.share;
    row->least_at_measured += judged.least_at_measured * part.share;
    row->has_base &= judged.least_at_base > 0 || judged.least_ns == 0;
    row->has_measured &= judged.least_at_measured > 0 || judged.least_ns == 0;
    row->saved_ns += judged.saved_ns * part.share;
    row->above += judged.is_above && !part.is_extra ? 1 : 0;
  }

  RooflineRow& RowNamed(const std::string& name) {
    RooflineRow& row = (*rows_)[name];
    if (row.name.empty()) row.name = name;
    return row;
  }

  RooflineRow& RowOf(const RooflinePoint& point) {
    switch (question_.by) {
      case RooflineBy::kModule:
        return RowNamed(point.module == 0 ? "(in no module)"
                                          : CutBelow(Text(point.module), question_.depth));
      case RooflineBy::kPhase:
        return RowNamed(std::string(NameOf(point.phase)));
      case RooflineBy::kStep:
        return StepRow(point.step);
      case RooflineBy::kRank:
        return RankRow();
      default:
        return RowNamed(OperatorName(point));
    }
  }

  std::string OperatorName(const RooflinePoint& point) const {
    if (point.name == 0) {
      return point.kind == PointKind::kUncounted ? "(kernels of no operator)"
                                                 : "(copies of no operator)";
    }
    const std::string_view name = Text(point.name);
    return name.starts_with("ProfilerStep#") ? "ProfilerStep*" : std::string(name);
  }

  RooflineRow& StepRow(int64_t step) {
    const StepList& steps = DetectSteps(trace_);
    if (step < 0 || static_cast<size_t>(step) >= steps.list.size()) {
      return RowNamed("(outside of steps)");
    }
    const int64_t number = steps.list[static_cast<size_t>(step)].number;
    RooflineRow& row = RowNamed(fmt::format("{} {}", steps.noun(), number));
    row.number = number;
    return row;
  }

  RooflineRow& RankRow() {
    if (!trace_.info.rank) {
      return RowNamed(fmt::format("({})", trace_.path.substr(trace_.path.rfind('/') + 1)));
    }
    RooflineRow& row = RowNamed(fmt::format("rank {}", *trace_.info.rank));
    row.number = *trace_.info.rank;
    return row;
  }

  std::string KernelName(const RooflineWork& work) {
    const DeviceSpan& span = spans_[work.span];
    if (span.table != DeviceSpan::Table::kKernel) return NameOf(trace_, span);
    std::string& name = kernels_[span.name];
    if (name.empty()) name = NameOf(trace_, span);
    return name;
  }

  std::string_view Text(uint32_t id) const { return trace_.dictionary.String(id); }
  int64_t LengthOf(const RooflineWork& work) const {
    return spans_[work.span].end - spans_[work.span].start;
  }

  const Trace& trace_;
  const RooflineQuestion& question_;
  const Roofline& line_;
  const DeviceSpans& spans_;
  const RoofsOfTrace roofs_;
  std::map<std::string, RooflineRow>* rows_ = nullptr;
  std::unordered_map<uint32_t, std::string> kernels_;
};

void Sort(RooflineBy by, std::vector<RooflineRow>* rows) {
  const bool in_order = by == RooflineBy::kStep || by == RooflineBy::kRank;
  std::ranges::stable_sort(*rows, [in_order](const RooflineRow& a, const RooflineRow& b) {
    if (in_order && a.number && b.number) return *a.number < *b.number;
    if (in_order && (a.number || b.number)) return a.number.has_value();
    if (a.time_ns != b.time_ns) return a.time_ns > b.time_ns;
    if (a.least_ns != b.least_ns) return a.least_ns > b.least_ns;
    return std::pair(-a.flops, -a.bytes()) < std::pair(-b.flops, -b.bytes());
  });
}

void AddRoofs(const RoofsOfTrace& roofs, bool on_device, RooflineRows* to) {
  const auto add = [to](const Roofs& of) {
    to->is_where_it_ran &= of.is_where_it_ran;
    const bool is_known =
        std::ranges::any_of(to->roofs, [&of](const Roofs& known) { return known.name == of.name; });
    if (!is_known) to->roofs.push_back(of);
  };
  for (const auto& [device, of] : roofs.all()) add(of);
  if (!on_device && roofs.all().empty()) add(roofs.Of(kNone));
}

std::optional<double> PerSecond(int64_t amount, double ns) {
  if (ns <= 0) return std::nullopt;
  return static_cast<double>(amount) / ns * kNsPerSecond;
}

// The rest of a row says nothing if most of it is not counted.
std::optional<double> PercentOf(double least, const RooflineRow& row) {
  if (least <= 0 || row.counted_ns <= 0 || row.counted_ns < row.time_ns / 2) return std::nullopt;
  return 100 * least / static_cast<double>(row.counted_ns);
}

}  // namespace

std::optional<RooflineBy> RooflineByNamed(std::string_view name) {
  const auto* const found = std::ranges::find(kRooflineByNames, name);
  if (found == kRooflineByNames.end()) return std::nullopt;
  return static_cast<RooflineBy>(found - kRooflineByNames.begin());
}

std::optional<double> RooflineRow::Intensity() const {
  if (counted_bytes > 0) {
    return static_cast<double>(counted_flops) / static_cast<double>(counted_bytes);
  }
  if (bytes() == 0) return std::nullopt;
  return static_cast<double>(flops) / static_cast<double>(bytes());
}

std::optional<double> RooflineRow::Attained() const {
  if (counted_ns > 0) return PerSecond(counted_flops, static_cast<double>(counted_ns));
  return PerSecond(flops, static_cast<double>(time_ns));
}

std::optional<double> RooflineRow::AttainedBandwidth() const {
  if (counted_ns > 0) return PerSecond(counted_bytes, static_cast<double>(counted_ns));
  return PerSecond(bytes(), static_cast<double>(time_ns));
}

std::optional<double> RooflineRow::Roof() const {
  if (counted_flops == 0) return std::nullopt;
  return PerSecond(counted_flops, least_ns);
}

std::optional<double> RooflineRow::PercentOfRoof() const { return PercentOf(least_ns, *this); }

std::optional<double> RooflineRow::PercentAtBase() const {
  return has_base ? PercentOf(least_at_base, *this) : std::nullopt;
}

std::optional<double> RooflineRow::PercentAtMeasured() const {
  return has_measured ? PercentOf(least_at_measured, *this) : std::nullopt;
}

RoofBound RooflineRow::Bound() const {
  const auto* const most = std::ranges::max_element(bound_ns);
  return *most > 0 ? static_cast<RoofBound>(most - bound_ns.begin()) : RoofBound::kUnknown;
}

RooflineRows SummarizeRoofline(const Run& run, const RooflineQuestion& question) {
  std::map<std::string, RooflineRow> rows;
  RooflineRows out;
  for (const Trace& trace : run.traces) {
    Adding adding(trace, question);
    adding.AddTo(&rows);
    out.on_device |= adding.line().on_device;
    out.on_host |= adding.on_host();
    AddRoofs(adding.roofs(), adding.line().on_device, &out);
  }
  for (auto& [name, row] : rows) out.rows.push_back(std::move(row));
  Sort(question.by, &out.rows);
  return out;
}

}  // namespace ranktap::collector
