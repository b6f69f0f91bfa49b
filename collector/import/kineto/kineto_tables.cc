#include "collector/import/kineto/kineto_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "collector/import/cuda_names.h"
#include "collector/import/finish_trace.h"
#include "collector/import/kineto/kineto_category.h"
#include "collector/import/kineto/kineto_counters.h"
#include "collector/import/optional_values.h"

namespace ranktap::collector {

namespace {

// Seven days in one event are a damaged file (HTA draws the same line).
constexpr int64_t kLongestEvent = int64_t{7} * 24 * 3600 * 1'000'000'000;
constexpr int64_t kFarthest = int64_t{1} << 62;

// A few repeat where a counter wraps; of two ranks that begin alike most do.
bool MostRepeat(std::vector<uint32_t> ids) {
  std::erase(ids, 0u);
  const size_t given = ids.size();
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return given >= 16 && ids.size() * 4 < given * 3;
}

}  // namespace

bool KinetoTables::Skip(std::string why) {
  ++skipped_[std::move(why)];
  return false;
}

bool KinetoTables::SkipCategory(const KinetoEvent& event) {
  if (tool_ == nullptr && !event.pid.empty()) tool_ = ForeignToolOfProcess(event.pid);
  const std::string_view of =
      event.has(Arg::kDevice) || event.has(Arg::kStream) ? "device events" : "events";
  if (event.category.empty()) return Skip(fmt::format("{} without a category", of));
  return Skip(fmt::format("{} of category {}", of, event.category.substr(0, 40)));
}

bool KinetoTables::Add(const KinetoEvent& event) {
  switch (event.phase) {
    case 'X':
      return AddSpan(event);
    case 'M':
      threads_.AddMetadata(event);
      devices_.Note(event);
      if (tool_ == nullptr && event.name == "process_name") {
        tool_ = ForeignToolOfProcess(event.text(Arg::kName));
      }
      return true;
    case 'i':
    case 'I':
    case 'R':
      return AddInstant(event);
    case 's':
    case 'f':
    case 't':
      return AddFlow(event);
    case 'C':
      return AddCounter(event);
    default:
      return Skip(event.phase == 0 ? "events without a phase" : "events of other phases");
  }
}

bool KinetoTables::AddSpan(const KinetoEvent& event) {
  const KinetoCategory category = KinetoCategoryNamed(event.category);
  if (category == KinetoCategory::kIgnored) return true;
  if (!event.has_ts || event.ts_ns < -kFarthest || event.ts_ns > kFarthest) {
    return Skip("events without a time");
  }
  const int64_t duration = event.has_dur ? event.dur_ns : 0;
  if (duration < 0 || duration > kLongestEvent) return Skip("events with an impossible duration");
  const Span span{event.ts_ns, event.ts_ns + duration};
  if (trace_->first_in_file == kUntimed) trace_->first_in_file = span.start;
  devices_.Note(event);
  switch (category) {
    case KinetoCategory::kOperator:
      AddOperator(event, span, OperatorKind::kOperator);
      break;
    case KinetoCategory::kAnnotation:
      AddOperator(event, span, OperatorKind::kAnnotation);
      break;
    case KinetoCategory::kPython:
      AddPython(event, span);
      break;
    case KinetoCategory::kRuntime:
      AddCall(event, span, proto::ApiDomain::kRuntime);
      break;
    case KinetoCategory::kDriver:
      AddCall(event, span, proto::ApiDomain::kDriver);
      break;
    case KinetoCategory::kKernel:
      AddKernel(event, span);
      break;
    case KinetoCategory::kCopy:
      AddCopy(event, span);
      break;
    case KinetoCategory::kMemset:
      AddMemset(event, span);
      break;
    case KinetoCategory::kSync:
      AddSync(event, span);
      break;
    case KinetoCategory::kDeviceAnnotation:
      AddDeviceAnnotation(event, span);
      break;
    case KinetoCategory::kOverhead:
      AddOverhead(span);
      break;
    case KinetoCategory::kCounters:
      if (!AddKernelCounters(event, &names_, trace_)) {
        return Skip("readings of counters without a number");
      }
      break;
    default:
      return SkipCategory(event);
  }
  ++trace_->events;
  return true;
}

bool KinetoTables::AddInstant(const KinetoEvent& event) {
  if (event.name != "[memory]") return true;  // marks of the profiler itself
  devices_.Note(event);
  if (!event.has_ts) return Skip("events without a time");
  Allocations& allocations = trace_->allocations;
  const size_t row = allocations.size();
  int64_t bytes = 0, device = -1;
  ParseInteger(event.text(Arg::kAllocationBytes), &bytes);
  ParseInteger(event.text(Arg::kDeviceId), &device);
  allocations.start.push_back(event.ts_ns);
  allocations.end.push_back(event.ts_ns);
  allocations.writer.push_back(threads_.WriterOf(event));
  allocations.bytes.push_back(bytes);
  SetOptional(&allocations.address, row, event.number(Arg::kAddress));
  SetOptional(&allocations.device_type, row, event.number(Arg::kDeviceType));
  SetOptional(&allocations.device, row,
              static_cast<uint8_t>(std::clamp<int64_t>(device + 1, 0, 255)));
  SetOptional(&allocations.allocated, row, event.number(Arg::kTotalAllocated));
  SetOptional(&allocations.reserved, row, event.number(Arg::kTotalReserved));
  ++trace_->events;
  return true;
}

bool KinetoTables::AddFlow(const KinetoEvent& event) {
  if (event.category == "ac2g" || event.name == "ac2g") return true;  // the correlation says it
  if (arrows_.Add(event)) return true;
  return Skip("arrows without an id or a time");
}

bool KinetoTables::AddCounter(const KinetoEvent& event) {
  double value = 0;
  if (!event.has_ts || !ParseReal(event.text(Arg::kValue), &value)) {
    return Skip("counters without a time or a value");
  }
  trace_->counters.start.push_back(event.ts_ns);
  trace_->counters.end.push_back(event.ts_ns);
  trace_->counters.name.push_back(names_.Intern(event.name));
  trace_->counters.device.push_back(kNone);
  trace_->counters.value.push_back(value);
  ++trace_->events;
  return true;
}

uint32_t KinetoTables::ExternalIdOf(const KinetoEvent& event) {
  const uint64_t id = event.number(Arg::kExternalId);
  // Kineto before 2024 repeats the correlation id where nothing is linked.
  return id == event.number(Arg::kCorrelation) ? 0 : Narrow(id);
}

void KinetoTables::AddOperator(const KinetoEvent& event, Span span, OperatorKind kind) {
  Operators& ops = trace_->operators;
  const size_t row = ops.size();
  ops.start.push_back(span.start);
  ops.end.push_back(span.end);
  ops.name.push_back(names_.Intern(event.name));
  ops.writer.push_back(threads_.WriterOf(event));
  ops.kind.push_back(static_cast<uint8_t>(kind));
  SetOptional(&ops.external_id, row, Narrow(event.number(Arg::kExternalId)));
  SetOptional(&ops.record_function, row, event.number(Arg::kRecordFunctionId));
  if (event.has(Arg::kSequence)) {
    int64_t sequence = -1;
    ParseInteger(event.text(Arg::kSequence), &sequence);
    if (sequence >= 0) SetOptional(&ops.sequence, row, static_cast<uint64_t>(sequence) + 1);
  }
  SetOptional(&ops.forward_thread, row, Narrow(event.number(Arg::kForwardThread)));
  SetOptional(&ops.shapes, row, names_.InternList(event.text(Arg::kShapes)));
  SetOptional(&ops.strides, row, names_.InternList(event.text(Arg::kStrides)));
  SetOptional(&ops.types, row, names_.InternList(event.text(Arg::kTypes)));
  SetOptional(&ops.values, row, names_.InternList(event.text(Arg::kValues)));
  SetOptional(&ops.stack, row, names_.Intern(event.text(Arg::kCallStack)));
  SetOptional(&ops.module_hierarchy, row, names_.Intern(event.text(Arg::kModuleHierarchy)));
  if (event.has(Arg::kCollective)) SetOptional(&ops.collective, row, names_.CollectiveOf(event));
  if (event.has(Arg::kStream)) {
    int64_t stream = -1;
    if (ParseInteger(event.text(Arg::kStream), &stream) && stream >= 0) {
      SetOptional(&ops.stream, row, Narrow(static_cast<uint64_t>(stream) + 1));
    }
  }
}

void KinetoTables::AddPython(const KinetoEvent& event, Span span) {
  PythonCalls& calls = trace_->python_calls;
  const size_t row = calls.size();
  calls.start.push_back(span.start);
  calls.end.push_back(span.end);
  calls.name.push_back(names_.Intern(event.name));
  calls.writer.push_back(threads_.WriterOf(event));
  const auto one_more = [&](Arg arg) { return Narrow(event.number(arg, ~uint64_t{0}) + 1); };
  SetOptional(&calls.id, row, one_more(Arg::kPythonId));
  SetOptional(&calls.parent_id, row, one_more(Arg::kPythonParentId));
  SetOptional(&calls.module_id, row, one_more(Arg::kPythonModuleId));
}

void KinetoTables::AddCall(const KinetoEvent& event, Span span, proto::ApiDomain domain) {
  ApiCalls& calls = trace_->api_calls;
  const size_t row = calls.size();
  calls.start.push_back(span.start);
  calls.end.push_back(span.end);
  calls.correlation.push_back(Narrow(event.number(Arg::kCorrelation)));
  calls.api.push_back(names_.ApiOf(event, domain));
  calls.writer.push_back(threads_.WriterOf(event));
  SetOptional(&calls.external_id, row, ExternalIdOf(event));
  // MTIA's devices record waits of their own in the category of the host's calls.
  if (event.has(Arg::kDevice) && event.args[static_cast<size_t>(Arg::kDevice)] == event.pid) {
    threads_.AddDevice(event);
  }
}

void KinetoTables::AddWork(const KinetoEvent& event, Span span, DeviceWork* work) {
  const size_t row = work->size();
  work->start.push_back(span.start);
  work->end.push_back(span.end);
  work->correlation.push_back(Narrow(event.number(Arg::kCorrelation)));
  work->lane.push_back(names_.LaneOf(event));
  SetOptional(&work->graph, row, Narrow(event.number(Arg::kGraphId)));
  SetOptional(&work->graph_node, row, event.number(Arg::kGraphNodeId));
  SetOptional(&work->channel, row, Narrow(event.number(Arg::kChannel)));
  SetOptional(&work->external_id, row, ExternalIdOf(event));
}

void KinetoTables::AddKernel(const KinetoEvent& event, Span span) {
  Kernels& kernels = trace_->kernels;
  const size_t row = kernels.size();
  AddWork(event, span, &kernels);
  kernels.name.push_back(names_.Intern(event.name));
  kernels.shape.push_back(names_.ShapeOf(event));
  if (event.has(Arg::kCollective))
    SetOptional(&kernels.collective, row, names_.CollectiveOf(event));
}

// "Memcpy HtoD (Pageable -> Device)"
void KinetoTables::AddCopy(const KinetoEvent& event, Span span) {
  Copies& copies = trace_->copies;
  const size_t row = copies.size();
  AddWork(event, span, &copies);
  copies.bytes.push_back(event.number(Arg::kBytes));
  SetOptional(&copies.bytes_unknown, row, event.has(Arg::kBytes) ? 0 : 1);
  std::string_view name = event.name;
  if (name.starts_with("Memcpy ")) name.remove_prefix(7);
  copies.copy_kind.push_back(CopyKindNamed(name));
  const size_t open = name.find('('), arrow = name.find(" -> "), close = name.rfind(')');
  const bool has_kinds = open != name.npos && arrow != name.npos && close != name.npos &&
                         open < arrow && arrow + 4 <= close;
  copies.src_kind.push_back(has_kinds ? MemoryKindNamed(name.substr(open + 1, arrow - open - 1))
                                      : 0);
  copies.dst_kind.push_back(has_kinds ? MemoryKindNamed(name.substr(arrow + 4, close - arrow - 4))
                                      : 0);
  SetOptional(&copies.src_device, row, Narrow(event.number(Arg::kFromDevice)));
  SetOptional(&copies.dst_device, row, Narrow(event.number(Arg::kToDevice)));
  double bandwidth = 0;
  if (ParseReal(event.text(Arg::kBandwidth), &bandwidth)) {
    SetOptional(&copies.reported_bandwidth, row, bandwidth);
  }
}

// "Memset (Device)"
void KinetoTables::AddMemset(const KinetoEvent& event, Span span) {
  Memsets& memsets = trace_->memsets;
  const size_t row = memsets.size();
  AddWork(event, span, &memsets);
  memsets.bytes.push_back(event.number(Arg::kBytes));
  SetOptional(&memsets.bytes_unknown, row, event.has(Arg::kBytes) ? 0 : 1);
  const size_t open = event.name.find('('), close = event.name.rfind(')');
  const bool has_kind = open != event.name.npos && close != event.name.npos && open < close;
  memsets.memory_kind.push_back(
      has_kind ? MemoryKindNamed(event.name.substr(open + 1, close - open - 1)) : 0);
  double bandwidth = 0;
  if (ParseReal(event.text(Arg::kBandwidth), &bandwidth)) {
    SetOptional(&memsets.reported_bandwidth, row, bandwidth);
  }
}

void KinetoTables::AddSync(const KinetoEvent& event, Span span) {
  Syncs& syncs = trace_->syncs;
  const size_t row = syncs.size();
  const auto number = [&](Arg arg) {
    int64_t value = -1;  // Kineto's "none"
    return ParseInteger(event.text(arg), &value) && value >= 0
               ? Narrow(static_cast<uint64_t>(value))
               : kNone;
  };
  syncs.start.push_back(span.start);
  syncs.end.push_back(span.end);
  syncs.correlation.push_back(Narrow(event.number(Arg::kCorrelation)));
  syncs.context.push_back(Narrow(event.number(Arg::kContext)));
  syncs.stream.push_back(number(Arg::kStream));
  syncs.cuda_event.push_back(number(Arg::kWaitOnEvent));
  syncs.type.push_back(SyncTypeNamed(event.name));
  SetOptional(&syncs.stream_as_unsigned, row, event.text(Arg::kStream) == "4294967295" ? 1 : 0);
  SetOptional(&syncs.record_correlation, row, Narrow(event.number(Arg::kWaitOnRecord)));
  SetOptional(&syncs.record_stream, row, number(Arg::kWaitOnStream) + 1);
}

void KinetoTables::AddDeviceAnnotation(const KinetoEvent& event, Span span) {
  DeviceAnnotations& annotations = trace_->device_annotations;
  const size_t row = annotations.size();
  annotations.start.push_back(span.start);
  annotations.end.push_back(span.end);
  annotations.name.push_back(names_.Intern(event.name));
  annotations.lane.push_back(names_.LaneOf(event));
  SetOptional(&annotations.external_id, row, Narrow(event.number(Arg::kExternalId)));
  SetOptional(&annotations.stream_unsaid, row, event.has(Arg::kStream) ? 0 : 1);
}

// Kineto's name is all it says; the kind stays 0.
void KinetoTables::AddOverhead(Span span) {
  proto::OverheadEvent overhead{};
  overhead.start_ns = static_cast<uint64_t>(span.start);
  overhead.end_ns = static_cast<uint64_t>(span.end);
  trace_->overheads.push_back(overhead);
}

void KinetoTables::Finish() {
  devices_.NameIn(trace_);
  if (const size_t halves = arrows_.AddTo(trace_); halves > 0) skipped_[kHalfArrows] += halves;
  threads_.NameAll();
  SortKernelCounters(trace_);
  FinishTrace(trace_);
  NameModules(trace_);
}

bool KinetoTables::RepeatsCorrelations() const {
  const auto repeat = [](const auto& column) {
    return MostRepeat(std::vector<uint32_t>(column.begin(), column.end()));
  };
  return repeat(trace_->api_calls.correlation) || repeat(trace_->operators.external_id);
}

}  // namespace ranktap::collector
