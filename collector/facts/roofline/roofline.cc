#include "collector/facts/roofline/roofline.h"

#include <algorithm>
#include <compare>
#include <map>
#include <tuple>
#include <utility>

#include "collector/facts/device_timeline.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/framework/op_modules.h"
#include "collector/facts/range_instances.h"
#include "collector/facts/roofline/list_types.h"
#include "collector/facts/roofline/operator_phases.h"
#include "collector/facts/steps.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

using Table = DeviceSpan::Table;

// CUPTI's kinds of copies that stay in the memory of one device: array or device to either.
bool StaysOnDevice(uint8_t copy_kind) { return copy_kind >= 5 && copy_kind <= 8; }

// The innermost NVTX range open on a thread.
class RangeAround {
 public:
  explicit RangeAround(const Trace& trace)
      : trace_(trace), ranges_(FindRangeInstances(trace)), by_writer_(trace.writers.size()) {
    for (uint32_t i = 0; i < ranges_.size(); ++i) {
      if (ranges_[i].nests && ranges_[i].writer < by_writer_.size()) {
        by_writer_[ranges_[i].writer].rows.push_back(i);
      }
    }
  }
  // Dictionary::String; 0: none.
  uint32_t Of(const DeviceSpan& span) {
    if (span.launch == kNone) return 0;
    const uint16_t writer = trace_.api_calls.writer[span.launch];
    const int64_t time = trace_.api_calls.start[span.launch];
    if (writer >= by_writer_.size()) return 0;
    const std::vector<uint32_t>& rows = by_writer_[writer].rows;
    size_t& after = by_writer_[writer].after;
    const auto is_before = [&](size_t i) { return ranges_[rows[i]].start <= time; };
    // Work comes nearly in the order of its launches, each stream's.
    constexpr int kNear = 8;
    for (int i = 0; i < kNear && after < rows.size() && is_before(after); ++i) ++after;
    for (int i = 0; i < kNear && after > 0 && !is_before(after - 1); ++i) --after;
    if ((after > 0 && !is_before(after - 1)) || (after < rows.size() && is_before(after))) {
      after = static_cast<size_t>(
          std::ranges::upper_bound(rows, time, {},
                                   [this](uint32_t range) { return ranges_[range].start; }) -
          rows.begin());
    }
    uint32_t at = after == 0 ? kNone : rows[after - 1];
    while (at != kNone && ranges_[at].end < time) at = ranges_[at].parent;
    return at == kNone ? 0 : ranges_[at].name;
  }

 private:
  struct OfWriter {
    std::vector<uint32_t> rows;  // by start
    size_t after = 0;  // of the time asked for last: the first of `rows` that starts later
  };
  const Trace& trace_;
  const std::vector<RangeInstance> ranges_;
  std::vector<OfWriter> by_writer_;
};

// A share of `total` that ends at `part` of `whole`, so that shares add up to it.
int64_t ShareUpTo(int64_t total, int64_t part, int64_t whole) {
  if (total == 0) return 0;  // most of all, and a division of this width is a call
  __extension__ using Wide = __int128;
  return static_cast<int64_t>(static_cast<Wide>(total) * part / whole);
}

class Measuring {
 public:
  Measuring(const Trace& trace, bool with_kernels)
      : trace_(trace),
        with_kernels_(with_kernels),
        ops_(trace.operators),
        spans_(DeviceTimeline(trace)),
        flops_(CountFlops(trace, FlopRule::kCounter)),
        bytes_(CountBytes(trace, ListElementBytes(trace))),
        places_(PlaceOperators(trace)),
        phases_(OperatorPhases(trace, places_)),
        steps_(DetectSteps(trace)),
        math_(trace.dictionary.strings() + 1),
        math_known_(math_.size()) {}

  Roofline Take() {
    if (with_kernels_) out_.work.reserve(spans_.size());
    FindRoots();
    JoinWork();
    AddOperators();
    AddUncounted();
    CountWhatIsMissing();
    out_.on_device = !spans_.empty() || trace_.kernels.size() > 0;
    for (const int64_t start : trace_.kernels.start) out_.untimed += start == kUntimed ? 1 : 0;
    return std::move(out_);
  }

 private:
  // The outermost operator that is counted, for each inside of it; kNone: none is.
  void FindRoots() {
    root_.assign(ops_.size(), kNone);
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      const uint32_t parent = ops_.parent[i];
      if (parent != kNone && root_[parent] != kNone) {
        root_[i] = root_[parent];
      } else if (flops_[i].flops > 0 || bytes_[i].is_counted()) {
        root_[i] = i;
      }
    }
  }

  struct NoOperator {
    uint32_t op, name, device;
    int64_t step;
    PointKind kind;
    auto operator<=>(const NoOperator&) const = default;
  };

  void JoinWork() {
    by_root_.resize(ops_.size());
    RangeAround ranges(trace_);
    StepFinder finder(trace_, steps_);
    // Work of a few kinds alternates within a step: a search for each piece took longer than the
    // rest.
    std::array<std::pair<const NoOperator, std::vector<uint32_t>>*, 8> last{};
    const auto join = [&](uint32_t i, const DeviceSpan& span) {
      const uint32_t op = ops_.size() == 0 ? kNone : LaunchingOperator(trace_, span);
      if (op != kNone && root_[op] != kNone) {
        by_root_[root_[op]].push_back(i);
        return;
      }
      const NoOperator key = {.op = op,
                              .name = op == kNone ? ranges.Of(span) : ops_.name[op],
                              .device = span.device,
                              .step = finder.IndexOf(span),
                              .kind = KindOf(span, op != kNone)};
      auto*& of = last[(static_cast<size_t>(key.kind) * 2 + (key.name & 1)) % last.size()];
      if (of == nullptr || of->first != key) of = &*uncounted_.try_emplace(key).first;
      of->second.push_back(i);
    };
    if (with_kernels_) {
      uint32_t i = 0;
      for (const DeviceSpan& span : spans_) join(i++, span);
    } else {
      spans_.ForEachKeptWhole([&](uint32_t i, const DeviceSpan& span) {
        if (span.table != Table::kKernel) join(i, span);
      });
    }
  }

  // The kind of work that no operator is counted for. Copies within a device and memsets say
  // themselves what they moved, if no operator is around. Inside an operator it would be a part of
  // what the operator moved.
  PointKind KindOf(const DeviceSpan& span, bool has_operator) const {
    if (span.kind == WorkKind::kCommunication) return PointKind::kCommunication;
    if (span.table == Table::kCopy && !StaysOnDevice(trace_.copies.copy_kind[span.row])) {
      return PointKind::kTransfer;
    }
    const bool has_bytes = span.table == Table::kCopy || span.table == Table::kMemset;
    return has_bytes && !has_operator ? PointKind::kCounted : PointKind::kUncounted;
  }

  void AddOperators() {
    std::vector<uint32_t> point_of(ops_.size(), kNone);
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      const uint32_t root = root_[i];
      if (root == kNone) continue;
      const bool adds = flops_[i].flops > 0 || bytes_[i].total() > 0;
      if (point_of[root] == kNone && (adds || (i == root && !by_root_[root].empty()))) {
        point_of[root] = static_cast<uint32_t>(out_.points.size());
        AddOperator(root);
      }
      if (point_of[root] != kNone && adds) AddCounts(i, &out_.points[point_of[root]]);
    }
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      if (point_of[i] != kNone) AddWork(by_root_[i], &out_.points[point_of[i]]);
    }
  }

  void AddOperator(uint32_t root) {
    RooflinePoint& point = out_.points.emplace_back();
    point.kind = PointKind::kCounted;
    point.op = root;
    point.name = ops_.name[root];
    point.module = places_[root].module;
    point.phase = phases_[root];
    point.bytes.known = bytes_[root].known;
    point.step = steps_.on_device ? -1 : StepIndexAt(steps_, ops_.start[root]);
    point.host_ns = ops_.end[root] - ops_.start[root];
  }

  void AddCounts(uint32_t op, RooflinePoint* point) {
    AddCapped(flops_[op].flops, &point->flops);
    AddCapped(bytes_[op].read, &point->bytes.read);
    AddCapped(bytes_[op].written, &point->bytes.written);
    // This operator's bytes are those of the operators that it calls.
    if (bytes_[op].is_counted() && !point->bytes.is_counted()) {
      point->bytes.known = bytes_[op].known;
    }
    if (flops_[op].flops > 0 && point->type == MathType::kNone) point->type = TypeOf(op);
  }

  // The type of the first tensor, which is multiplied or is added to a product.
  MathType TypeOf(uint32_t op) const {
    const OpInputs types("", trace_.dictionary.String(ops_.types.At(op)));
    return types.values.empty() || types.values[0].empty() ? MathType::kOther
                                                           : MathTypeOf(types.values[0]);
  }

  void AddWork(const std::vector<uint32_t>& spans, RooflinePoint* point) {
    point->first_work = static_cast<uint32_t>(out_.work.size());
    point->works = static_cast<uint32_t>(spans.size());
    std::vector<KernelMath> kernels;
    for (const uint32_t i : spans) {
      const DeviceSpan& span = spans_[i];
      point->time_ns += span.end - span.start;
      if (point->device == kNone) point->device = span.device;
      out_.work.emplace_back().span = i & INT32_MAX;
      if (span.table == Table::kCopy && !StaysOnDevice(trace_.copies.copy_kind[span.row])) {
        point->kind = PointKind::kTransfer;
      }
      if (span.table != Table::kKernel) continue;
      ++point->kernels;
      point->kernel_ns += span.end - span.start;
      if (point->flops > 0) kernels.push_back(MathOf(span.name));
    }
    if (point->step < 0 && !spans.empty() && steps_.on_device) {
      point->step = StepFinder(trace_, steps_).IndexOf(spans_[spans[0]]);
    }
    if (point->flops > 0) point->unit = UnitOf(point->type, kernels);
    point->computing_ns = ShareOut(point);
  }

  const KernelMath& MathOf(uint32_t name) {
    const size_t at = std::min<size_t>(name, math_.size() - 1);
    if (!math_known_[at]) {
      math_known_[at] = true;
      math_[at] = MathOfKernel(ReadableKernelName(trace_.dictionary.String(name)));
    }
    return math_[at];
  }

  // The time of the work that has a share.
  int64_t ShareOut(RooflinePoint* point) {
    const std::span<RooflineWork> work(out_.work.data() + point->first_work, point->works);
    const auto computes = [&](const RooflineWork& of) {
      const DeviceSpan& span = spans_[of.span];
      return span.table == Table::kKernel && MathOf(span.name).computes();
    };
    int64_t whole = point->time_ns;
    if (point->flops > 0 && std::ranges::any_of(work, computes)) {
      for (RooflineWork& of : work) {
        of.computes = computes(of);
        if (!of.computes) whole -= LengthOf(of);
      }
    }
    if (point->flops == 0 && point->bytes.read == 0 && point->bytes.written == 0) return whole;
    point->first_share = static_cast<uint32_t>(out_.shares.size());
    int64_t before = 0;
    for (const RooflineWork& of : work) {
      RooflineShare& its = out_.shares.emplace_back();
      if (!of.computes) continue;
      const int64_t until = whole == 0 ? 1 : before + LengthOf(of);
      const auto share = [&](int64_t total) {
        const int64_t of_whole = std::max<int64_t>(whole, 1);
        return ShareUpTo(total, until, of_whole) - ShareUpTo(total, before, of_whole);
      };
      its = {share(point->flops), share(point->bytes.read), share(point->bytes.written)};
      before = until;
    }
    return whole;
  }

  int64_t LengthOf(const RooflineWork& work) const {
    return spans_[work.span].end - spans_[work.span].start;
  }

  void AddUncounted() {
    for (const auto& [key, spans] : uncounted_) {
      RooflinePoint& point = out_.points.emplace_back();
      point.kind = key.kind;
      point.op = key.op;
      point.name = key.name;
      if (key.op != kNone) {
        point.module = places_[key.op].module;
        point.phase = phases_[key.op];
        point.bytes.known = bytes_[key.op].known;
      }
      point.step = key.step;
      if (key.kind == PointKind::kCounted) CountByRecords(spans, &point);
      AddWork(spans, &point);
      point.kind = key.kind;
    }
  }

  void CountByRecords(const std::vector<uint32_t>& spans, RooflinePoint* point) const {
    point->bytes.known = BytesKnown::kExactly;
    for (const uint32_t i : spans) {
      const DeviceSpan& span = spans_[i];
      const auto moved =
          static_cast<int64_t>(std::min<uint64_t>(BytesMoved(trace_, span), INT64_MAX / 4));
      if (span.table == Table::kCopy) AddCapped(moved, &point->bytes.read);
      AddCapped(moved, &point->bytes.written);
    }
  }

  // Looks at operators that launched something, or that, on the host, call no other.
  void CountWhatIsMissing() {
    for (const RooflinePoint& point : out_.points) {
      if (point.op == kNone || point.kind == PointKind::kCommunication) continue;
      ++out_.operators;
      if (point.bytes.known == BytesKnown::kAtLeast) ++out_.at_least;
      if (point.bytes.known == BytesKnown::kNoFormula) ++out_.no_formula;
      if (point.bytes.known == BytesKnown::kNoShapes) ++out_.no_shapes;
      if (point.bytes.known == BytesKnown::kNoType) ++out_.no_type;
    }
  }

  const Trace& trace_;
  const bool with_kernels_;
  const Operators& ops_;
  const DeviceSpans& spans_;
  const std::vector<FlopCount> flops_;
  const std::vector<ByteCount> bytes_;
  const std::vector<OpPlace> places_;
  const std::vector<RooflinePhase> phases_;
  const StepList& steps_;
  std::vector<KernelMath> math_;  // by name
  std::vector<bool> math_known_;
  std::vector<uint32_t> root_;
  std::vector<std::vector<uint32_t>> by_root_;  // spans
  std::map<NoOperator, std::vector<uint32_t>> uncounted_;
  Roofline out_;
};

}  // namespace

const Roofline& MeasureRoofline(const Trace& trace) {
  return trace.memo.Get<Roofline>([&trace] { return Measuring(trace, true).Take(); });
}

const Roofline& MeasureCounted(const Trace& trace) {
  struct WithoutKernels {
    Roofline of;
  };
  if (trace.operators.size() > 0) return MeasureRoofline(trace);
  return trace.memo
      .Get<WithoutKernels>([&trace] { return WithoutKernels{Measuring(trace, false).Take()}; })
      .of;
}

}  // namespace ranktap::collector
