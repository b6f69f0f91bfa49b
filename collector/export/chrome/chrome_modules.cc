// The calls of modules in a Kineto trace, as torch.profiler writes them with with_stack=True: what
// TensorBoard's module view is made of.
#include <fmt/core.h>

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/export/chrome/chrome_events.h"
#include "collector/facts/framework/backward_spans.h"
#include "collector/facts/framework/model_tree.h"
#include "collector/facts/framework/module_spans.h"
#include "collector/facts/framework/python_functions.h"

namespace ranktap::collector {
namespace {

// "nn.Module: Linear_3": torch counts the instances of a class.
struct Instance {
  std::string quoted_name;
  size_t number = 0;
};

class ModuleCalls {
 public:
  explicit ModuleCalls(const Trace& trace) : trace_(trace) {
    for (const ModelModule& module : DescribeModel(trace)) {
      instances_.try_emplace(module.name, Next(module.type));
    }
  }

  void Write(ChromeEvents* events) {
    struct Open {
      int64_t end;
      size_t id;
    };
    std::unordered_map<uint16_t, std::vector<Open>> open;  // by writer
    const std::vector<ModuleSpan>& spans = ModuleSpans(trace_);
    for (size_t id = 0; id < spans.size(); ++id) {
      const ModuleSpan& span = spans[id];
      std::vector<Open>& around = open[span.writer];
      while (!around.empty() && around.back().end <= span.start) around.pop_back();
      if (events->options().Keeps(span.start, span.end)) {
        const Instance& instance = InstanceOf(span.name);
        events->BeginSlice("python_function", instance.quoted_name, trace_.info.pid,
                           ThreadOf(trace_, span.writer), span.start, span.end);
        events->Arg("Python id", id);
        events->Separate();
        if (around.empty()) {
          events->json().Raw("\"Python parent id\":null");
        } else {
          events->json().Raw("\"Python parent id\":").Number(around.back().id);
        }
        events->Arg("Python module id", instance.number);
        events->TextArg("module", SanitizedName(trace_.dictionary.String(span.name)));
        events->EndArgs();
      }
      around.push_back({span.end, id});
    }
  }

 private:
  Instance Next(std::string_view type) {
    const size_t number = of_class_[std::string(type)]++;
    JsonText name;
    name.Text(SanitizedName(fmt::format("nn.Module: {}_{}", type, number)));
    return {name.str(), number};
  }
  // A module that nobody described goes by the last part of its path.
  const Instance& InstanceOf(uint32_t name) {
    const std::string_view path = trace_.dictionary.String(name);
    const auto known = instances_.find(path);
    if (known != instances_.end()) return known->second;
    return instances_.emplace(path, Next(path.substr(path.rfind('.') + 1))).first->second;
  }

  const Trace& trace_;
  std::map<std::string, size_t> of_class_;
  std::map<std::string, Instance, std::less<>> instances_;  // by path
};

// Their backwards, on tracks of their own: a stretch of operators begins and ends inside of
// autograd's slices.
void WriteBackwards(const Trace& trace, ChromeEvents* events) {
  for (const BackwardSpan& span : BackwardSpans(trace)) {
    if (!events->options().Keeps(span.start, span.end)) continue;
    JsonText name;
    name.Text(SanitizedName(fmt::format("backward: {}", trace.dictionary.String(span.module))));
    const int64_t track = events->TrackApart("backward on", trace.info.pid,
                                             ThreadOf(trace, span.writer), span.start, span.end);
    events->BeginSlice("user_annotation", name.str(), trace.info.pid, track, span.start, span.end);
    events->EndArgs();
  }
}

// On tracks of their own, as they begin and end with operators. Their ids come after the modules'.
void WriteFunctions(const Trace& trace, ChromeEvents* events) {
  const size_t first_id = ModuleSpans(trace).size();
  const std::vector<PythonFunction> functions = PythonFunctions(trace);
  for (size_t row = 0; row < functions.size(); ++row) {
    const PythonFunction& function = functions[row];
    if (!events->options().Keeps(function.start, function.end)) continue;
    JsonText name;
    name.Text(SanitizedName(function.name));
    const int64_t track =
        events->TrackApart("Python functions of", trace.info.pid, ThreadOf(trace, function.writer),
                           function.start, function.end);
    events->BeginSlice("python_function", name.str(), trace.info.pid, track, function.start,
                       function.end);
    events->Arg("Python id", first_id + row);
    if (function.parent == kNone) {
      events->Separate();
      events->json().Raw("\"Python parent id\":null");
    } else {
      events->Arg("Python parent id", first_id + function.parent);
    }
    if (function.line != 0) events->Arg("line", function.line);
    events->EndArgs();
  }
}

}  // namespace

void WriteModuleCalls(const Trace& trace, ChromeEvents* events) {
  if (!trace.is_ours()) return;  // a file of torch.profiler has its Python calls
  ModuleCalls(trace).Write(events);
  WriteFunctions(trace, events);
  WriteBackwards(trace, events);
}

}  // namespace ranktap::collector
