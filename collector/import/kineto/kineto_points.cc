// Events without a duration: allocations, arrows, counters, names.
#include <algorithm>
#include <utility>

#include "collector/import/kineto/kineto_tables.h"
#include "collector/import/optional_values.h"

namespace ranktap::collector {
bool KinetoTables::AddInstant(const KinetoEvent& event) {
  if (event.name != "[memory]") return true;  // marks of the profiler itself
  if (!event.has_ts) return Skip("events without a time");
  Allocations& allocations = trace_->allocations;
  const size_t row = allocations.size();
  int64_t bytes = 0, device = -1;
  ParseInteger(event.text(Arg::kAllocationBytes), &bytes);
  ParseInteger(event.text(Arg::kDeviceId), &device);
  allocations.start.push_back(event.ts_ns);
  allocations.end.push_back(event.ts_ns);
  allocations.writer.push_back(WriterOf(event));
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
  uint64_t id = 0;
  if (!event.has_ts || !ParseUnsigned(event.id, &id)) return Skip("arrows without an id or a time");
  const bool is_backward = event.category == "fwdbwd" || event.name == "fwdbwd";
  const FlowKind kind = is_backward ? FlowKind::kForwardBackward : FlowKind::kOther;
  OpenFlow& flow = flows_[{static_cast<uint8_t>(kind), id}];
  if (event.phase == 's') {
    flow.start = event.ts_ns;
    flow.writer = WriterOf(event);
    flow.has_start = true;
  } else {
    flow.end = event.ts_ns;
    flow.to_writer = WriterOf(event);
    flow.has_end = true;
  }
  return true;
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

std::set<std::string> KinetoTables::Processes() const {
  std::vector<bool> of_host(trace_->writers.size());
  const auto add = [&of_host](uint16_t writer) {
    if (writer < of_host.size()) of_host[writer] = true;
  };
  for (const uint16_t writer : trace_->api_calls.writer) add(writer);
  const Operators& ops = trace_->operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.kind[i] == static_cast<uint8_t>(OperatorKind::kOperator)) add(ops.writer[i]);
  }
  std::set<std::string> processes;
  for (const auto& [thread, writer] : writers_) {
    if (of_host[writer]) processes.insert(thread.substr(0, thread.find('/')));
  }
  for (const std::string& device : devices_) processes.erase(device);
  return processes;
}

namespace {

// A few repeat where a counter wraps; of two ranks that begin alike most do.
bool MostRepeat(std::vector<uint32_t> ids) {
  std::erase(ids, 0u);
  const size_t given = ids.size();
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return given >= 16 && ids.size() * 4 < given * 3;
}

}  // namespace

bool KinetoTables::RepeatsCorrelations() const {
  const auto repeat = [](const auto& column) {
    return MostRepeat(std::vector<uint32_t>(column.begin(), column.end()));
  };
  return repeat(trace_->api_calls.correlation) || repeat(trace_->operators.external_id);
}

void KinetoTables::AddMetadata(const KinetoEvent& event) {
  if (!event.has(Arg::kName)) return;
  if (event.name == "process_name" && process_names_.size() < 0xffff) {
    process_names_.try_emplace(std::string(event.pid), Unescaped(event.text(Arg::kName)));
  }
  if (event.name != "thread_name") return;
  // Before or after the thread's events.
  key_.assign(event.pid).append("/").append(event.tid);
  if (thread_names_.size() < 0xffff) thread_names_[key_] = Unescaped(event.text(Arg::kName));
}

}  // namespace ranktap::collector
