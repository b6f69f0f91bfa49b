// Ranges, marks and names for our Python sources.
// Runs on: threads that hold the interpreter's lock.  May not: raise, allocate in steady state,
// lock.
#include "agent/sources/torch/torch_functions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "agent/core/agent_state.h"
#include "agent/core/announcements.h"
#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/log.h"
#include "agent/core/writer.h"
#include "agent/sources/torch/python_functions.h"
#include "agent/sources/torch/python_injection.h"
#include "agent/sources/torch/text_mark.h"
#include "agent/sources/torch/torch_config.h"
#include "agent/sources/torch/torch_gloo.h"
#include "agent/sources/torch/torch_gloo_groups.h"
#include "agent/sources/torch/torch_label_calls.h"
#include "agent/sources/torch/torch_labels.h"
#include "agent/sources/torch/torch_lightning.h"
#include "agent/sources/torch/torch_marks.h"
#include "agent/sources/torch/torch_memory.h"
#include "agent/sources/torch/torch_modules.h"
#include "agent/sources/torch/torch_operator_values.h"
#include "agent/sources/torch/torch_operators.h"
#include "agent/sources/torch/torch_ranges.h"
#include "agent/sources/torch/torch_signature.h"
#include "agent/sources/torch/torch_stacks.h"
#include "agent/sources/torch/torch_steps.h"
#include "agent/sources/torch/torch_tensors.h"

namespace ranktap::agent {
namespace {

using proto::ArenaRef;
using proto::EntryKind;

PyObject* Number(uint64_t value) { return g_python.PyLong_FromUnsignedLongLong(value); }

uint64_t ToNumber(PyObject* object) { return g_python.PyLong_AsUnsignedLongLongMask(object); }

std::string_view ToText(PyObject* object) {
  intptr_t size = 0;
  const char* text = g_python.PyUnicode_AsUTF8AndSize(object, &size);
  if (text != nullptr) return {text, static_cast<size_t>(size)};
  g_python.PyErr_Clear();
  return {};
}

proto::NvtxAttributes Named(uint64_t domain, uint64_t name, uint64_t payload, bool has_payload) {
  return {.domain = static_cast<ArenaRef>(domain),
          .name = static_cast<ArenaRef>(name),
          .payload = payload,
          .payload_type = has_payload ? kUnsignedPayload : 0};
}

// start() -> 1: the agent runs here, and full may come.
PyObject* Start(PyObject*, PyObject*) {
  const bool started = InstalledPythonInjection().start();
  return Number(started ? 1 : 0);
}

PyObject* RefreshRank(PyObject*, PyObject*) {
  InstalledPythonInjection().refresh_rank();
  return None();
}

// tell_rank(rank, world size)
PyObject* TellRank(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 2 || !Capturing(kCaptureAlive)) return None();
  InstalledPythonInjection().tell_rank(static_cast<uint32_t>(ToNumber(arguments[0])),
                                       static_cast<uint32_t>(ToNumber(arguments[1])));
  return None();
}

// capturing() -> 1: what is recorded now is kept.
PyObject* IsCapturing(PyObject*, PyObject*) { return Number(Capturing(kCaptureFramework) ? 1 : 0); }

PyObject* InternAs(EntryKind kind, PyObject* text) {
  if (!Capturing(kCaptureAlive)) return Number(0);
  const std::string_view name = ToText(text).substr(0, 4096);
  return Number(Names().Intern(kind, std::as_bytes(std::span(name))));
}

// domain(name) -> id; name(text) -> id; 0: no room.
PyObject* Domain(PyObject*, PyObject* text) { return InternAs(EntryKind::kNvtxDomain, text); }
PyObject* Name(PyObject*, PyObject* text) { return InternAs(EntryKind::kString, text); }

PyObject* SetDomainOfModules(PyObject*, PyObject* domain) {
  SetModuleDomain(static_cast<ArenaRef>(ToNumber(domain)));
  return None();
}

// enter(module, name), exit(module): its forward, on this thread. exit() -> 1: it was a root.
PyObject* EnterModule(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count >= 2 && EnterCall(arguments[0])) {
    BeginModule(static_cast<ArenaRef>(ToNumber(arguments[1])));
  }
  return None();
}

PyObject* ExitModule(PyObject*, PyObject* module) {
  return Number(LeaveCall(module) && EndModule() ? 1 : 0);
}

// module_call(class, original, first seen, root done) -> its new __call__, or None.
PyObject* NewModuleCall(PyObject*, PyObject* const* arguments, intptr_t count) {
  PyObject* const call =
      count < 4 ? nullptr : MakeModuleCall(arguments[0], arguments[1], arguments[2], arguments[3]);
  return call == nullptr ? None() : call;
}

// name_module(module's id, name), forget_module(module's id)
PyObject* NameModuleById(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count >= 2) {
    NameModule(reinterpret_cast<const PyObject*>(ToNumber(arguments[0])),
               static_cast<ArenaRef>(ToNumber(arguments[1])));
  }
  return None();
}
PyObject* ForgetModuleById(PyObject*, PyObject* module) {
  ForgetModule(reinterpret_cast<const PyObject*>(ToNumber(module)));
  return None();
}

// now() -> the host clock; gap(start, end, text): another profiler's time.
PyObject* Now(PyObject*, PyObject*) { return Number(NowTicks()); }

PyObject* Gap(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 3 || !Capturing(kCaptureAlive)) return None();
  AnnounceGap({.reason = proto::GapReason::kOtherProfiler,
               .source = "torch",
               .start_ticks = ToNumber(arguments[0]),
               .end_ticks = ToNumber(arguments[1]),
               .detail = ToText(arguments[2])});
  return None();
}

// depth() -> how many modules this thread is inside of.
PyObject* Depth(PyObject*, PyObject*) {
  ThreadState* thread = RecordingThread();
  return Number(thread == nullptr ? 0 : thread->module_depth);
}

// push(domain, name[, payload]), pop(domain): a range of this thread.
PyObject* Push(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 2) return None();
  if (ThreadState* thread = RecordingThread()) {
    const uint64_t payload = count > 2 ? ToNumber(arguments[2]) : 0;
    thread->Emit(proto::RangePushEvent{
        .time_ticks = NowTicks(),
        .nvtx = Named(ToNumber(arguments[0]), ToNumber(arguments[1]), payload, count > 2)});
  }
  return None();
}

PyObject* Pop(PyObject*, PyObject* domain) {
  PopRange(static_cast<ArenaRef>(ToNumber(domain)));
  return None();
}

// open(domain, name, payload) -> range; close(range): may be closed by another thread.
PyObject* Open(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 3) return Number(0);
  return Number(OpenRange(static_cast<ArenaRef>(ToNumber(arguments[0])),
                          static_cast<ArenaRef>(ToNumber(arguments[1])), ToNumber(arguments[2])));
}

PyObject* Close(PyObject*, PyObject* range) {
  CloseRange(ToNumber(range));
  return None();
}

// mark(domain, name, bytes): at most 60 KB.
PyObject* Mark(PyObject*, PyObject* const* arguments, intptr_t count) {
  ThreadState* thread = count < 3 ? nullptr : RecordingThread();
  char* data = nullptr;
  intptr_t size = 0;
  if (thread == nullptr) return None();
  if (g_python.PyBytes_AsStringAndSize(arguments[2], &data, &size) != 0) {
    g_python.PyErr_Clear();
    return None();
  }
  EmitTextMark(*thread, static_cast<ArenaRef>(ToNumber(arguments[0])),
               static_cast<ArenaRef>(ToNumber(arguments[1])), {data, static_cast<size_t>(size)});
  return None();
}

// watch_memory(domain) -> 1: PyTorch's CPU allocator is watched from now on; domain 0: no longer.
PyObject* WatchCpuMemory(PyObject*, PyObject* domain) {
  if (!InstallMemoryHooks()) return Number(0);
  WatchMemory(static_cast<ArenaRef>(ToNumber(domain)));
  return Number(1);
}

// watch_out_of_memory(domain, name) -> 1: allocations of the CPU that fail are recorded.
PyObject* WatchFailedAllocations(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 2 || !Capturing(kCaptureAlive)) return Number(0);
  const bool watched = WatchOutOfMemory(static_cast<ArenaRef>(ToNumber(arguments[0])),
                                        static_cast<ArenaRef>(ToNumber(arguments[1])));
  return Number(watched ? 1 : 0);
}

// probe_operators(ids of the tensors of a LayoutProbe) -> 1: the caller may run its operators, then
// call probed_operators(their sequence numbers) -> 1: start_operators works here.
template <size_t kCount, typename Function>
PyObject* CallWithNumbers(PyObject* const* arguments, intptr_t count, Function function) {
  if (count != kCount) return Number(0);
  std::array<uint64_t, kCount> numbers{};
  std::transform(arguments, arguments + count, numbers.begin(), ToNumber);
  return Number(function(numbers) ? 1 : 0);
}
PyObject* ProbeOperators(PyObject*, PyObject* const* arguments, intptr_t count) {
  return CallWithNumbers<6>(arguments, count, BeginOperatorProbe);
}
PyObject* ProbedOperators(PyObject*, PyObject* const* arguments, intptr_t count) {
  return CallWithNumbers<2>(arguments, count, EndOperatorProbe);
}

// Before probed_operators: probed_tensors(the numbers of a ProbedTensors), probed_values(the
// tensors of a ValueProbe).
PyObject* ProbedTensorsAre(PyObject*, PyObject* const* arguments, intptr_t count) {
  return CallWithNumbers<8>(arguments, count, ProbeTensors);
}
PyObject* ProbedValuesAre(PyObject*, PyObject* const* arguments, intptr_t count) {
  return CallWithNumbers<4>(arguments, count, ProbeValueTensors);
}

// start_operators(domain, name of signatures, a TensorDetail) -> 1: it is with these tensors.
// stop_operators(). Those of this thread.
PyObject* StartOwnOperators(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 3 || !Capturing(kCaptureAlive)) return Number(0);
  const bool with_tensors = StartOperators(
      static_cast<ArenaRef>(ToNumber(arguments[0])), static_cast<ArenaRef>(ToNumber(arguments[1])),
      static_cast<proto::TensorDetail>(ToNumber(arguments[2])));
  return Number(with_tensors ? 1 : 0);
}
PyObject* StopOwnOperators(PyObject*, PyObject*) {
  StopOperators();
  for (const std::string& missing : {TakeWhatIsNotDescribed(), TakeTensorsLeftOut()}) {
    if (!missing.empty() && Capturing(kCaptureAlive)) AnnounceNote(missing);
  }
  return None();
}

// operator_names() -> "name\noverload\0..." of the operators with values since the last call, while
// none are observed. values_not_found() -> what values lack here, "": nothing.
PyObject* Text(const std::string& text) {
  return g_python.PyUnicode_FromStringAndSize(text.data(), static_cast<intptr_t>(text.size()));
}
PyObject* OperatorNames(PyObject*, PyObject*) { return Text(TakeOperatorNames()); }
PyObject* TellValuesNotFound(PyObject*, PyObject*) { return Text(ValuesNotFound()); }

// start_stacks(domain, name of stacks, prefixes of files) -> 1: operators have Python stacks until
// stop_stacks() -> how many were not taken.
PyObject* StartStacks(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 3 || !Capturing(kCaptureAlive)) return Number(0);
  const bool started =
      StartPythonStacks(static_cast<ArenaRef>(ToNumber(arguments[0])),
                        static_cast<ArenaRef>(ToNumber(arguments[1])), ToText(arguments[2]));
  return Number(started ? 1 : 0);
}
PyObject* StopStacks(PyObject*, PyObject*) { return Number(StopPythonStacks()); }

// watch_gloo(domain) -> 1: its collectives are recorded from now on.
PyObject* WatchGlooIn(PyObject*, PyObject* domain) {
  if (!Capturing(kCaptureAlive)) return Number(0);
  return Number(WatchGloo(static_cast<ArenaRef>(ToNumber(domain))) ? 1 : 0);
}

PyObject* WatchGlooGroupsIn(PyObject*, PyObject*) { return Number(WatchGlooGroups() ? 1 : 0); }
PyObject* GlooContexts(PyObject*, PyObject*) { return Text(TakeGlooContexts()); }
// note(text): what this process lacks and why, into the trace's hello and the log.
PyObject* Note(PyObject*, PyObject* text) {
  const std::string_view note = ToText(text);
  Log("torch", note);
  if (Capturing(kCaptureAlive)) AnnounceNote(note);
  return None();
}

// contained(text): an exception of ours was stopped; counted.
PyObject* Contained(PyObject*, PyObject* text) {
  Log("contained in Python", ToText(text));
  if (Capturing(kCaptureAlive)) ThreadStates::LoseWithoutWriter(proto::Loss::kContained);
  return None();
}

}  // namespace

PyObject* MakeTorchFunctions() {
  // Kept for good: a PyCFunction points to its definition.
  static std::array methods = {
      Define<&Start>("start", kMethNoArgs),
      Define<&ConfigForPython>("config", kMethNoArgs),
      Define<&RefreshRank>("refresh_rank", kMethNoArgs),
      Define<&TellRank>("tell_rank", kMethFastcall),
      Define<&IsCapturing>("capturing", kMethNoArgs),
      Define<&Domain>("domain", kMethO),
      Define<&Name>("name", kMethO),
      Define<&SetDomainOfModules>("set_module_domain", kMethO),
      Define<&EnterModule>("enter", kMethFastcall),
      Define<&ExitModule>("exit", kMethO),
      Define<&NewModuleCall>("module_call", kMethFastcall),
      Define<&NewStepCall>("step_call", kMethO),
      Define<&WatchRoots>("watch_roots", kMethO),
      Define<&RootBegins>("root_begins", kMethO),
      Define<&NameModuleById>("name_module", kMethFastcall),
      Define<&ForgetModuleById>("forget_module", kMethO),
      Define<&Depth>("depth", kMethNoArgs),
      Define<&OnSteps>("on_steps", kMethFastcall),
      Define<&BeforeStep>("before_step", kMethFastcall),
      Define<&AfterStep>("after_step", kMethFastcall),
      Define<&BeginSteps>("begin_steps", kMethFastcall),
      Define<&OpenStep>("open_step", kMethO),
      Define<&CloseStep>("close_step", kMethNoArgs),
      Define<&StepNumber>("step_number", kMethNoArgs),
      Define<&SetPlainSteps>("plain_steps", kMethFastcall),
      Define<&LookAtNextStep>("look_at_next_step", kMethNoArgs),
      Define<&SetLastOptimizer>("last_optimizer", kMethO),
      Define<&WakeBy>("wake_by", kMethO),
      Define<&EndsStep>("ends_step", kMethNoArgs),
      Define<&TakeSkippedSteps>("skipped_steps", kMethNoArgs),
      Define<&Push>("push", kMethFastcall),
      Define<&Pop>("pop", kMethO),
      Define<&NewBackwardCall>("backward_call", kMethFastcall),
      Define<&Open>("open", kMethFastcall),
      Define<&Close>("close", kMethO),
      Define<&Now>("now", kMethNoArgs),
      Define<&Gap>("gap", kMethFastcall),
      Define<&Mark>("mark", kMethFastcall),
      Define<&WatchCpuMemory>("watch_memory", kMethO),
      Define<&WatchFailedAllocations>("watch_out_of_memory", kMethFastcall),
      Define<&ProbeOperators>("probe_operators", kMethFastcall),
      Define<&ProbedOperators>("probed_operators", kMethFastcall),
      Define<&ProbedTensorsAre>("probed_tensors", kMethFastcall),
      Define<&ProbedValuesAre>("probed_values", kMethFastcall),
      Define<&OperatorNames>("operator_names", kMethNoArgs),
      Define<&TellValuesNotFound>("values_not_found", kMethNoArgs),
      Define<&StartOwnOperators>("start_operators", kMethFastcall),
      Define<&StopOwnOperators>("stop_operators", kMethNoArgs),
      Define<&StartStacks>("start_stacks", kMethFastcall),
      Define<&StopStacks>("stop_stacks", kMethNoArgs),
      Define<&WatchLabels>("watch_labels", kMethNoArgs),
      Define<&NewLabelCall>("label_call", kMethFastcall),
      Define<&RecordLabels>("record_labels", kMethO),
      Define<&WatchGlooIn>("watch_gloo", kMethO),
      Define<&WatchGlooGroupsIn>("watch_gloo_groups", kMethNoArgs),
      Define<&GlooContexts>("gloo_contexts", kMethNoArgs),
      Define<&Note>("note", kMethO),
      Define<&Contained>("contained", kMethO),
  };
  PyObject* functions = g_python.PyDict_New();
  if (functions == nullptr || !AddMarks(functions)) return nullptr;
  for (PyMethodDef& method : methods) {
    PyObject* function = g_python.PyCFunction_NewEx(&method, nullptr, nullptr);
    if (function == nullptr || g_python.PyDict_SetItemString(functions, method.name, function)) {
      return nullptr;
    }
    g_python.Py_DecRef(function);
  }
  return functions;
}

}  // namespace ranktap::agent
