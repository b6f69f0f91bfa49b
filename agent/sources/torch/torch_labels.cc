// The callback at the user's scope, and what is open before a process is known to record.
// Runs on: threads that run record_function.  May not: allocate, wait, log, call Python.
#include "agent/sources/torch/torch_labels.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "agent/core/host_clock.h"
#include "agent/sources/torch/torch_operators.h"
#include "agent/sources/torch/torch_ranges.h"
#include "agent/sources/torch/torch_record_function.h"

namespace ranktap::agent {
namespace {

using proto::ArenaRef;

// A start that was recorded has one, so that its end is. It lies here for good.
struct Begun final : RecordContext {
  static void operator delete(void*) {}
};
// The same of one that came before the process recorded.
struct Early final : RecordContext {
  static void operator delete(void*) {}
};
alignas(Begun) std::array<std::byte, sizeof(Begun)> g_begun_memory;
alignas(Early) std::array<std::byte, sizeof(Early)> g_early_memory;
RecordContext* g_begun = nullptr;
RecordContext* g_early = nullptr;

RecordName g_name = nullptr;
// With the interpreter's lock. 0: no callback.
uint64_t g_handle = 0;
std::atomic<ArenaRef> g_domain{0};

// Open labels of the thread that will start to record: the main one, in practice. More than
// anybody nests.
struct EarlyLabel {
  const void* function;
  uint64_t start_ticks;
  std::array<char, 64> name;
};
struct EarlyLabels {
  std::atomic<uintptr_t> thread{0};  // whose they are
  std::array<EarlyLabel, 16> open;
  size_t count = 0;
  size_t recorded = 0;  // of them, from the outermost
};
EarlyLabels g_early_labels;

uintptr_t ThisThread() { return reinterpret_cast<uintptr_t>(__builtin_thread_pointer()); }

// The first thread with a label owns the list.
bool OwnsEarlyLabels() {
  uintptr_t owner = 0;
  return g_early_labels.thread.compare_exchange_strong(owner, ThisThread()) ||
         owner == ThisThread();
}

void Push(ThreadState& thread, uint64_t ticks, const char* text, ArenaRef domain) {
  const EventNameRef name = NameOfRecord(thread, text);
  const proto::RangePushEvent event{.time_ticks = ticks,
                                    .nvtx = {.domain = domain, .name = name.ref}};
  if (name.ref != 0) {
    thread.Emit(event);
  } else {
    thread.EmitWith(event, std::as_bytes(std::span(name.text)), {});
  }
}

RecordContext* BeginEarly(const void* function) {
  EarlyLabels& early = g_early_labels;
  if (!OwnsEarlyLabels() || early.count == early.open.size()) return nullptr;
  EarlyLabel& label = early.open[early.count++];
  label = {.function = function, .start_ticks = NowTicks(), .name = {}};
  const std::string_view name = g_name(function);
  std::copy_n(name.begin(), std::min(name.size(), label.name.size() - 1), label.name.begin());
  return g_early;
}

// Ends come in the reverse order of begins, but for a label that another outlives.
void EndEarly(const void* function) {
  EarlyLabels& early = g_early_labels;
  if (!OwnsEarlyLabels()) return;
  for (size_t i = early.count; i-- > 0;) {
    if (early.open[i].function != function) continue;
    if (i < early.recorded) {
      PopRange(g_domain.load(std::memory_order_relaxed));
      --early.recorded;
    }
    std::copy(early.open.begin() + static_cast<ptrdiff_t>(i) + 1,
              early.open.begin() + static_cast<ptrdiff_t>(early.count),
              early.open.begin() + static_cast<ptrdiff_t>(i));
    --early.count;
    return;
  }
}

std::unique_ptr<RecordContext> OnLabel(const void* function) {
  const ArenaRef domain = g_domain.load(std::memory_order_relaxed);
  if (domain == 0) return std::unique_ptr<RecordContext>(BeginEarly(function));
  if (!Capturing(kCaptureFramework) || RecordsLabelsOfThread()) return nullptr;
  ThreadState* const thread = RecordingThread();
  if (thread == nullptr) return nullptr;
  Push(*thread, NowTicks(), g_name(function), domain);
  return std::unique_ptr<RecordContext>(g_begun);
}

void OnLabelEnd(const void* function, RecordContext* context) {
  if (context == nullptr) return;
  if (context == g_early) return EndEarly(function);
  PopRange(g_domain.load(std::memory_order_relaxed));
}

void* TorchLibrary() { return dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD); }

}  // namespace

PyObject* WatchLabels(PyObject*, PyObject*) {
  void* const library = TorchLibrary();
  if (library == nullptr || g_handle != 0) return None();
  const auto add = reinterpret_cast<AddRecordCallback>(
      dlsym(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"));
  g_name = reinterpret_cast<RecordName>(dlsym(library, "_ZNK2at14RecordFunction4nameEv"));
  if (add == nullptr || g_name == nullptr) return None();
  ChooseHostClock();  // as at the start, before which labels may come
  if (g_begun == nullptr) {
    g_begun = new (g_begun_memory.data()) Begun;
    g_early = new (g_early_memory.data()) Early;
  }
  RecordCallback callback{.start = &OnLabel, .end = &OnLabelEnd};
  callback.needs_inputs = false;
  callback.scopes[kUser] = true;
  g_handle = add(callback);
  return None();
}

PyObject* IgnoreLabels(PyObject*, PyObject*) {
  void* const library = TorchLibrary();
  if (library == nullptr || g_handle == 0) return None();
  const auto remove =
      reinterpret_cast<RemoveRecordCallback>(dlsym(library, "_ZN2at14removeCallbackEm"));
  if (remove == nullptr) return None();
  remove(g_handle);
  g_handle = 0;
  return None();
}

PyObject* RecordLabels(PyObject*, PyObject* domain) {
  const auto id = static_cast<ArenaRef>(g_python.PyLong_AsUnsignedLongLongMask(domain));
  EarlyLabels& early = g_early_labels;
  ThreadState* const thread = RecordingThread();
  if (thread != nullptr && id != 0 && OwnsEarlyLabels()) {
    for (size_t i = 0; i < early.count; ++i) {
      Push(*thread, early.open[i].start_ticks, early.open[i].name.data(), id);
    }
    early.recorded = early.count;
  }
  g_domain.store(id, std::memory_order_relaxed);
  return g_python.PyLong_FromUnsignedLongLong(g_begun == nullptr ? 0 : 1);
}

}  // namespace ranktap::agent
