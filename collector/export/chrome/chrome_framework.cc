// A framework's own records in a Kineto trace: operators, Python calls, autograd's arrows,
// allocations, annotations on streams, counters.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/export/chrome/chrome_events.h"
#include "collector/export/recorded_inputs.h"
#include "collector/facts/activity_counters.h"
#include "collector/facts/framework/tensor_arrows.h"
#include "collector/facts/gloo_calls.h"
#include "collector/file/json.h"

namespace ranktap::collector {
namespace {

// JSON texts of the dictionary's strings, made once each.
class JsonTexts {
 public:
  explicit JsonTexts(const Dictionary& dictionary)
      : dictionary_(dictionary), names_(dictionary.strings()), values_(dictionary.strings()) {}

  const std::string& Name(uint32_t id) {
    std::string& text = At(&names_, id);
    if (text.empty()) text = Quoted(SanitizedName(dictionary_.String(id)));
    return text;
  }
  // A list as it is, anything else as a string.
  const std::string& Value(uint32_t id) {
    std::string& text = At(&values_, id);
    if (!text.empty()) return text;
    const std::string_view value = dictionary_.String(id);
    const bool is_list = value.starts_with("[") && IsJson(value);
    return text = is_list ? std::string(value) : Quoted(value);
  }

 private:
  static std::string Quoted(std::string_view value) {
    JsonText text;
    text.Text(value);
    return text.str();
  }
  static std::string& At(std::vector<std::string>* texts, uint32_t id) {
    if (id >= texts->size()) texts->resize(id + 1);
    return (*texts)[id];
  }

  const Dictionary& dictionary_;
  std::vector<std::string> names_, values_;
};

class FrameworkWriter {
 public:
  FrameworkWriter(const Trace& trace, ChromeEvents* events)
      : trace_(trace), events_(events), texts_(trace.dictionary) {}

  void Write() {
    WriteOperators();
    WritePython();
    WriteDeviceAnnotations();
    WriteAllocations();
    WriteCounters();
    WriteArrows();
    if (events_->options().tensor_arrows) WriteTensorArrows();
  }

 private:
  bool Kept(int64_t start, int64_t end) const { return events_->options().Keeps(start, end); }

  void ValueArg(std::string_view name, uint32_t text) {
    if (text == 0) return;
    events_->Separate();
    events_->json().Raw("\"").Raw(name).Raw("\":").Raw(texts_.Value(text));
  }

  void WriteOperators() {
    const Operators& ops = trace_.operators;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!Kept(ops.start[i], ops.end[i])) continue;
      const bool is_operator = ops.kind[i] == static_cast<uint8_t>(OperatorKind::kOperator);
      const int32_t thread = ThreadOf(trace_, ops.writer[i]);
      const int64_t track = across_[i]
                                ? events_->TrackApart("operators across ranges of", trace_.info.pid,
                                                      thread, ops.start[i], ops.end[i])
                                : thread;
      events_->BeginSlice(is_operator ? "cpu_op" : "user_annotation", texts_.Name(ops.name[i]),
                          trace_.info.pid, track, ops.start[i], ops.end[i]);
      if (ops.external_id.At(i) != 0) events_->Arg("External id", ops.external_id.At(i));
      const auto recorded = recorded_.find(static_cast<uint32_t>(i));
      const uint64_t record_function = recorded == recorded_.end()
                                           ? ops.record_function.At(i)
                                           : recorded->second.record_function;
      if (record_function != 0) events_->Arg("Record function id", record_function);
      if (ops.sequence.At(i) != 0) events_->Arg("Sequence number", ops.sequence.At(i) - 1);
      if (ops.forward_thread.At(i) != 0) events_->Arg("Fwd thread id", ops.forward_thread.At(i));
      ValueArg("Input Dims", ops.shapes.At(i));
      ValueArg("Input Strides", ops.strides.At(i));
      if (recorded != recorded_.end() && !recorded->second.strides.empty()) {
        events_->Separate();
        events_->json().Raw("\"Input Strides\":").Raw(recorded->second.strides);
      }
      ValueArg("Input type", ops.types.At(i));
      ValueArg("Concrete Inputs", ops.values.At(i));
      ValueArg("Output Dims", ops.output_shapes.At(i));
      ValueArg("Output type", ops.output_types.At(i));
      ValueArg("Call stack", ops.stack.At(i));
      ValueArg("Module Hierarchy", ops.module_hierarchy.At(i));
      if (ops.flops.At(i) != 0) events_->Arg("flops", ops.flops.At(i));
      if (ops.stream.At(i) != 0) events_->Arg("stream", ops.stream.At(i) - 1);
      WriteCollectiveArgs(trace_, ops.collective.At(i), events_);
      WriteCollectiveArgs(gloo_calls_.OfOperator(static_cast<uint32_t>(i)), events_);
      events_->EndArgs();
    }
  }

  void WritePython() {
    const PythonCalls& calls = trace_.python_calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (!Kept(calls.start[i], calls.end[i])) continue;
      events_->BeginSlice("python_function", texts_.Name(calls.name[i]), trace_.info.pid,
                          ThreadOf(trace_, calls.writer[i]), calls.start[i], calls.end[i]);
      const auto one_less = [&](std::string_view name, uint32_t value) {
        if (value != 0) events_->Arg(name, value - 1);
      };
      one_less("Python id", calls.id.At(i));
      one_less("Python parent id", calls.parent_id.At(i));
      one_less("Python module id", calls.module_id.At(i));
      events_->EndArgs();
    }
  }

  void WriteDeviceAnnotations() {
    const DeviceAnnotations& annotations = trace_.device_annotations;
    for (size_t i = 0; i < annotations.size(); ++i) {
      if (!Kept(annotations.start[i], annotations.end[i])) continue;
      const Lane& lane = trace_.lanes[annotations.lane[i]];
      events_->BeginSlice("gpu_user_annotation", texts_.Name(annotations.name[i]), lane.device,
                          StreamNumber(lane.stream), annotations.start[i], annotations.end[i]);
      if (annotations.external_id.At(i) != 0) {
        events_->Arg("External id", annotations.external_id.At(i));
      }
      events_->EndArgs();
    }
  }

  void WriteAllocations() {
    const Allocations& all = trace_.allocations;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!events_->options().KeepsMoment(all.start[i])) continue;
      events_->Begin().Raw("{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",");
      events_->json().Raw("\"name\":\"[memory]\",\"pid\":").Number(trace_.info.pid);
      events_->json().Raw(",\"tid\":").Number(ThreadOf(trace_, all.writer[i])).Raw(",");
      events_->Time(all.start[i]);
      events_->json().Raw(",\"args\":{");
      if (all.allocated.At(i) != 0) events_->Arg("Total Allocated", all.allocated.At(i));
      if (all.reserved.At(i) != 0) events_->Arg("Total Reserved", all.reserved.At(i));
      events_->Arg("Bytes", all.bytes[i]);
      events_->Arg("Addr", all.address.At(i));
      events_->Arg("Device Id", int{all.device.At(i)} - 1);
      events_->Arg("Device Type", int{all.device_type.At(i)});
      events_->EndArgs();
    }
  }

  void WriteCounters() {
    const CounterSamples& samples = trace_.counters;
    for (size_t i = 0; i < samples.size(); ++i) {
      WriteSample(texts_.Name(samples.name[i]), samples.device[i], samples.start[i],
                  samples.value[i]);
    }
    if (!trace_.is_ours()) return;  // torch.profiler's events, and none besides
    for (const ActivityCounter& counter : ActivityCounters(trace_)) {
      const std::string name = '"' + counter.name + '"';
      for (const auto& [time, value] : counter.points) {
        WriteSample(name, counter.device, time, value);
      }
    }
  }

  void WriteSample(const std::string& quoted_name, uint32_t device, int64_t time, double value) {
    if (!events_->options().KeepsMoment(time)) return;
    events_->Begin().Raw("{\"ph\":\"C\",\"name\":").Raw(quoted_name);
    events_->json().Raw(",\"pid\":").Number(device == kNone ? trace_.info.pid : device);
    events_->json().Raw(",");
    events_->Time(time);
    events_->json().Raw(",\"args\":{");
    events_->Arg("value", value);
    events_->EndArgs();
  }

  // Ids of arrows are told apart by their category.
  void WriteArrows() {
    const Flows& flows = trace_.flows;
    for (size_t i = 0; i < flows.size(); ++i) {
      if (!events_->options().KeepsMoment(flows.start[i]) ||
          !events_->options().KeepsMoment(flows.end[i])) {
        continue;
      }
      const std::string_view category =
          flows.kind[i] == static_cast<uint8_t>(FlowKind::kForwardBackward) ? "fwdbwd" : "async";
      events_->Flow("s", flows.id[i], trace_.info.pid, ThreadOf(trace_, flows.from_writer[i]),
                    flows.start[i], category);
      events_->Flow("f", flows.id[i], trace_.info.pid, ThreadOf(trace_, flows.to_writer[i]),
                    flows.end[i], category);
    }
  }

  void WriteTensorArrows() {
    const Operators& ops = trace_.operators;
    const auto write = [&](std::string_view phase, uint64_t id, uint32_t op) {
      events_->Flow(phase, id, trace_.info.pid, ThreadOf(trace_, ops.writer[op]), ops.start[op],
                    "tensor");
    };
    uint64_t id = 0;
    for (const TensorArrow& arrow : TensorArrows(trace_)) {
      if (!Kept(ops.start[arrow.from], ops.end[arrow.from]) ||
          !Kept(ops.start[arrow.to], ops.end[arrow.to])) {
        continue;
      }
      write("s", ++id, arrow.from);
      write("f", id, arrow.to);
    }
  }

  const Trace& trace_;
  ChromeEvents* events_;
  JsonTexts texts_;
  std::unordered_map<uint32_t, RecordedInputs> recorded_ = FindRecordedInputs(trace_);
  std::vector<bool> across_ = OperatorsAcrossRanges(trace_);
  GlooCalls gloo_calls_{trace_};
};

// The ends of pushed ranges on each thread: when, and when the other end is.
using RangeEdges = std::map<int32_t, std::vector<std::pair<int64_t, int64_t>>>;

RangeEdges EdgesOfRanges(const Trace& trace) {
  const Ranges& ranges = trace.ranges;
  RangeEdges edges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (static_cast<RangeKind>(ranges.kind[i]) != RangeKind::kPushPop) continue;
    std::vector<std::pair<int64_t, int64_t>>& own = edges[ThreadOf(trace, ranges.writer[i])];
    own.emplace_back(ranges.start[i], ranges.end[i]);
    own.emplace_back(ranges.end[i], ranges.start[i]);
  }
  for (auto& [thread, own] : edges) std::sort(own.begin(), own.end());
  return edges;
}

}  // namespace

std::vector<bool> OperatorsAcrossRanges(const Trace& trace) {
  const Operators& ops = trace.operators;
  std::vector<bool> across(ops.size());
  if (!trace.is_ours()) return across;  // torch.profiler's file keeps its tids
  const RangeEdges edges = EdgesOfRanges(trace);
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto own = edges.find(ThreadOf(trace, ops.writer[i]));
    if (own == edges.end()) continue;
    const int64_t start = ops.start[i], end = ops.end[i];
    auto edge =
        std::upper_bound(own->second.begin(), own->second.end(), std::pair(start, INT64_MAX));
    for (; edge != own->second.end() && edge->first < end && !across[i]; ++edge) {
      across[i] = edge->second < start || edge->second > end;
    }
  }
  return across;
}

void WriteCollectiveArgs(const Trace& trace, uint32_t number, ChromeEvents* events) {
  if (number == 0 || number > trace.collectives.size()) return;
  WriteCollectiveArgs(&trace.collectives[number - 1], events);
}

void WriteCollectiveArgs(const Collective* described, ChromeEvents* events) {
  if (described == nullptr) return;
  const Collective& call = *described;
  events->TextArg("Collective name", call.name);
  if (!call.dtype.empty()) {
    events->Arg("In msg nelems", call.in_elements);
    events->Arg("Out msg nelems", call.out_elements);
  }
  if (call.group_size != 0) events->Arg("Group size", call.group_size);
  if (!call.dtype.empty()) events->TextArg("dtype", call.dtype);
  const auto text = [events](std::string_view name, const std::string& value) {
    if (!value.empty()) events->TextArg(name, value);
  };
  text("In split size", call.in_split);
  text("Out split size", call.out_split);
  text("Process Group Name", call.group);
  text("Process Group Description", call.group_description);
  text("Process Group Ranks", call.group_ranks);
  text("Comms Id", call.communicator);
  if (call.sequence != 0) events->Arg("Seq", call.sequence - 1);
  if (call.source_rank >= 0) events->Arg("Src Rank", call.source_rank);
  if (call.destination_rank >= 0) events->Arg("Dst Rank", call.destination_rank);
}

void WriteFrameworkEvents(const Trace& trace, ChromeEvents* events) {
  FrameworkWriter(trace, events).Write();
}

}  // namespace ranktap::collector
