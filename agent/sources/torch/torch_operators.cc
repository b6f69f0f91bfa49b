// The callbacks at at::RecordFunction.
// Runs on: threads that run operators.  May not: allocate but at a signature's first time, lock,
// wait, call Python.
#include "agent/sources/torch/torch_operators.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>

#include "agent/core/agent_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/writer.h"
#include "agent/sources/torch/torch_operator_values.h"
#include "agent/sources/torch/torch_ranges.h"
#include "agent/sources/torch/torch_record_function.h"
#include "agent/sources/torch/torch_signature.h"
#include "agent/sources/torch/torch_stacks.h"
#include "agent/sources/torch/torch_tensors.h"
#include "proto/operator_payload.h"

namespace ranktap::agent {
namespace {

using proto::ArenaRef;

using UncaughtFunction = int (*)();

// Written with the interpreter's lock, before a callback is added.
struct Observer {
  AddRecordCallback add = nullptr;
  RemoveRecordCallback remove = nullptr;
  RecordName name = nullptr;
  // The program's std::uncaught_exceptions: ours is linked statically and knows of our own only.
  UncaughtFunction uncaught = nullptr;
  bool (*has_own)() = nullptr;  // at::hasThreadLocalCallbacks
  TorchLayout layout;
  ArenaRef domain = 0;
  ArenaRef signatures = 0;
  ArenaRef raised = 0;
  std::array<uint64_t, 3> handles{};
  const void* thread = nullptr;  // that has the callbacks of these
};
constinit Observer g_observer{};
constinit LayoutProbe* g_probe = nullptr;
constinit std::atomic<bool> g_records_labels{false};

// Whether the marks of an operator's tensors, and of all values, go with it: a set of callbacks of
// its own.
enum class Content : uint8_t { kOperators, kTensors, kValues };

template <RecordScope scope, Content content>
std::unique_ptr<RecordContext> OnStart(const void* function) {
  ThreadState* const thread = RecordingThread();
  if (thread == nullptr) return nullptr;
  const Observer& observer = g_observer;
  const uint64_t now = NowTicks();
  const char* const text = observer.name(function);
  const EventNameRef name = NameOfRecord(*thread, text);
  const TorchInputs inputs{
      .values = ReadTorch<const std::byte*>(function, observer.layout.inputs),
      .count = ReadTorch<size_t>(function, observer.layout.inputs + sizeof(void*)),
      .layout = &observer.layout,
  };
  const uint64_t signature =
      SignatureOf(*thread, inputs, text, observer.domain, observer.signatures);
  const auto sequence =
      static_cast<uint64_t>(ReadTorch<int64_t>(function, observer.layout.sequence) + 1);
  const proto::RangePushEvent event{
      .time_ticks = now,
      .nvtx = {.domain = observer.domain,
               .name = name.ref,
               .payload = uint64_t{scope} << proto::kOperatorScopeShift |
                          PythonStack(*thread) << proto::kOperatorStackShift | signature,
               .category = static_cast<uint32_t>(sequence),
               .color = static_cast<uint32_t>(sequence >> 32),
               .payload_type = proto::kDescribedOperatorPayload}};
  if (name.ref != 0) {
    thread->Emit(event);
  } else {
    thread->EmitWith(event, std::as_bytes(std::span(name.text)), {});
  }
  if constexpr (content != Content::kOperators) {
    EmitTensors(*thread, inputs, TensorSide::kInput, observer.domain, now);
  }
  if constexpr (content == Content::kValues) {
    EmitValues(*thread, {function, text, inputs, TensorSide::kInput, now});
  }
  return nullptr;
}

// An operator that raised has no outputs.
template <Content content>
void EmitOutputs(ThreadState& thread, const void* function, uint64_t now) {
  const Observer& observer = g_observer;
  const TorchLayout& layout = observer.layout;
  const auto* const begin = ReadTorch<const std::byte*>(function, layout.outputs);
  const auto* const end = ReadTorch<const std::byte*>(function, layout.outputs + sizeof(void*));
  if (begin == end) return;
  const TorchInputs outputs{
      .values = begin, .count = static_cast<size_t>(end - begin) / kIValueBytes, .layout = &layout};
  const uint64_t id = layout.handle == 0 ? 0 : ReadTorch<uint64_t>(function, layout.handle);
  const uint64_t signature = SignatureOf(thread, outputs, "", observer.domain, observer.signatures);
  thread.Emit(proto::MarkEvent{.time_ticks = now,
                               .nvtx = {.domain = observer.domain,
                                        .payload = signature,
                                        .category = static_cast<uint32_t>(id),
                                        .color = static_cast<uint32_t>(id >> 32),
                                        .payload_type = proto::kOutputsPayload}});
  EmitTensors(thread, outputs, TensorSide::kOutput, observer.domain, now);
  if constexpr (content == Content::kValues) {
    EmitValues(thread, {function, nullptr, outputs, TensorSide::kOutput, now});
  }
}

template <Content content>
void OnEnd([[maybe_unused]] const void* function, RecordContext*) {
  ThreadState* const thread = RecordingThread();
  if (thread == nullptr) return;
  const Observer& observer = g_observer;
  const uint64_t now = NowTicks();
  if (observer.uncaught != nullptr && observer.uncaught() != 0) [[unlikely]] {
    thread->Emit(proto::MarkEvent{.time_ticks = now,
                                  .nvtx = {.domain = observer.domain,
                                           .name = observer.raised,
                                           .payload_type = proto::kRaisedOperatorPayload}});
  }
  if constexpr (content != Content::kOperators) EmitOutputs<content>(*thread, function, now);
  thread->Emit(proto::RangePopEvent{.time_ticks = now, .domain = observer.domain});
}

std::unique_ptr<RecordContext> OnProbe(const void* function) {
  const char* const name = g_observer.name(function);
  if (g_probe == nullptr || name == nullptr) return nullptr;
  ++g_probe->operators;
  if (std::strcmp(name, "aten::convolution") == 0) ProbeConvolution(function, *g_probe);
  if (std::strcmp(name, "aten::dropout") == 0) ProbeDropout(function, *g_probe);
  if (g_probe->seen != 0) ProbeValues(name, function, g_probe->inputs, g_probe->values);
  return nullptr;
}

void OnProbeEnd(const void* function, RecordContext*) {
  const char* const name = g_observer.name(function);
  if (g_probe == nullptr || name == nullptr) return;
  if (std::strcmp(name, "aten::convolution") == 0) ProbeConvolutionsEnd(function, *g_probe);
}

uint64_t Add(RecordStart start, RecordEnd end, std::initializer_list<RecordScope> scopes,
             Content content) {
  RecordCallback callback{.start = start, .end = end};
  callback.needs_outputs = callback.needs_ids = content != Content::kOperators;
  for (const RecordScope scope : scopes) callback.scopes[scope] = true;
  return g_observer.add(callback);
}

template <Content content>
void AddCallbacks() {
  g_observer.handles = {
      Add(&OnStart<kFunction, content>, &OnEnd<content>, {kFunction, kScript}, content),
      Add(&OnStart<kBackward, content>, &OnEnd<content>, {kBackward}, content),
      Add(&OnStart<kUser, content>, &OnEnd<content>, {kUser}, content)};
}

template <typename Function>
bool Find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

bool FindFunctions() {
  void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (void* const standard = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD)) {
    (void)Find(standard, "_ZSt19uncaught_exceptionsv", g_observer.uncaught);
  }
  if (library != nullptr) {
    (void)Find(library, "_ZN2at23hasThreadLocalCallbacksEv", g_observer.has_own);
  }
  return library != nullptr &&
         Find(library, "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE",
              g_observer.add) &&
         Find(library, "_ZN2at14removeCallbackEm", g_observer.remove) &&
         Find(library, "_ZNK2at14RecordFunction4nameEv", g_observer.name);
}

}  // namespace

EventNameRef NameOfRecord(ThreadState& thread, const char* text) {
  if (text == nullptr) return {};
  if (const ArenaRef known = thread.names.Find(text)) [[likely]]
    return {.ref = known, .text = {}};
  const std::string_view name = std::string_view(text).substr(0, 4096);
  const ArenaRef ref = Names().InternText(name);
  if (ref == 0) return {.ref = 0, .text = name};
  thread.names.Remember(text, Names().Find(ref), ref);
  return {.ref = ref, .text = {}};
}

bool BeginOperatorProbe(std::span<const uint64_t> tensors) {
  if (!FindFunctions()) return false;
  static LayoutProbe& probe = *new LayoutProbe;
  probe = {};
  if (tensors.size() != probe.tensors.size()) return false;
  std::copy(tensors.begin(), tensors.end(), probe.tensors.begin());
  g_probe = &probe;
  g_observer.handles[0] = Add(&OnProbe, &OnProbeEnd, {kFunction}, Content::kTensors);
  return true;
}

bool ProbeTensors(std::span<const uint64_t> made) {
  if (g_probe == nullptr || made.size() != 8) return false;
  g_probe->made = {.outputs = {made[0], made[1]},
                   .own = made[2],
                   .own_storage = made[3],
                   .own_data = made[4],
                   .borrowed = made[5],
                   .borrowed_storage = made[6],
                   .borrowed_data = made[7]};
  return true;
}

bool ProbeValueTensors(std::span<const uint64_t> tensors) {
  if (g_probe == nullptr || tensors.size() != 4) return false;
  ValueProbe& values = g_probe->values;
  values.far_view = tensors[0];
  values.farther_view = tensors[1];
  values.turned = tensors[2];
  values.on_meta = tensors[3];
  return true;
}

bool EndOperatorProbe(std::span<const uint64_t> sequences) {
  if (g_probe == nullptr) return false;
  g_observer.remove(g_observer.handles[0]);
  if (sequences.size() != g_probe->sequences.size()) return false;
  std::copy(sequences.begin(), sequences.end(), g_probe->sequences.begin());
  g_observer.layout = FindLayout(*g_probe);
  g_probe = nullptr;
  return g_observer.layout.found;
}

bool StartOperators(ArenaRef domain, ArenaRef signatures, proto::TensorDetail detail) {
  if (!g_observer.layout.found) return false;
  if (g_observer.handles[0] != 0 && g_observer.thread == __builtin_thread_pointer()) {
    StopOperators();
  }
  g_observer.thread = __builtin_thread_pointer();
  g_observer.domain = domain;
  g_observer.signatures = signatures;
  g_observer.raised = Names().InternText("operator raised");
  ForgetSignatures();
  g_records_labels.store(true, std::memory_order_relaxed);
  if (detail == proto::TensorDetail::kNone || !g_observer.layout.finds_tensors) {
    AddCallbacks<Content::kOperators>();
    return false;
  }
  if (detail == proto::TensorDetail::kFull) {
    PrepareValues(domain, g_observer.layout);
    AddCallbacks<Content::kValues>();
  } else {
    AddCallbacks<Content::kTensors>();
  }
  return true;
}

bool RecordsLabelsOfThread() {
  return g_records_labels.load(std::memory_order_relaxed) &&
         (g_observer.has_own == nullptr || g_observer.has_own());
}

void StopOperators() {
  g_records_labels.store(false, std::memory_order_relaxed);
  // The program ends while another thread has them: PyTorch would say that it knows none.
  if (g_observer.thread != __builtin_thread_pointer()) return;
  for (uint64_t& handle : g_observer.handles) {
    if (handle != 0) g_observer.remove(handle);
    handle = 0;
  }
}

}  // namespace ranktap::agent
