// What is open before a process is known to record, and the callback at the user's scope.
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
// The same of one that is in a list of open labels.
struct Listed final : RecordContext {
  static void operator delete(void*) {}
};
alignas(Begun) std::array<std::byte, sizeof(Begun)> g_begun_memory;
alignas(Listed) std::array<std::byte, sizeof(Listed)> g_listed_memory;
RecordContext* g_begun = nullptr;
RecordContext* g_listed = nullptr;

RecordName g_name = nullptr;
bool (*g_is_async)(const void* function) = nullptr;  // at::RecordFunction::isAsync
// With the interpreter's lock. 0: no callback.
uint64_t g_handle = 0;
bool g_sees_labels = false;
std::atomic<ArenaRef> g_label_domain{0};
// Counts times of recording. A range that was open at the end of one is over in the trace.
std::atomic<uint32_t> g_time_of_recording{1};

// A label that a thread is inside of, recorded or not: it may be open as recording begins. A list
// is longer than anybody nests.
struct OpenLabel {
  const void* function;
  uint64_t start_ticks;
  uint32_t recorded_in;  // a time of recording; 0: none
  bool is_operator;      // the callback of operators has its range
  std::array<char, 64> name;
};
struct OpenLabels {
  std::array<OpenLabel, 16> open;
  size_t count = 0;
};
// Threads of gloo and autograd have labels beside the main one. A thread without a list has only
// the labels that begin while it records.
std::array<OpenLabels, 16> g_open_labels;
// Whose each list is; 0: nobody's. In a place of their own, since each label looks through them:
// with the lists they were 16 lines of the cache, and an optimizer's step has two labels.
alignas(64) std::array<std::atomic<uintptr_t>, g_open_labels.size()> g_list_owners;

uintptr_t ThisThread() { return reinterpret_cast<uintptr_t>(__builtin_thread_pointer()); }

OpenLabels* LabelsOfThread() {
  const uintptr_t self = ThisThread();
  for (size_t i = 0; i < g_list_owners.size(); ++i) {
    if (g_list_owners[i].load(std::memory_order_relaxed) == self) return &g_open_labels[i];
  }
  return nullptr;
}

OpenLabels* ListForThread() {
  if (OpenLabels* const own = LabelsOfThread()) return own;
  for (size_t i = 0; i < g_list_owners.size(); ++i) {
    uintptr_t nobody = 0;
    if (g_list_owners[i].compare_exchange_strong(nobody, ThisThread())) return &g_open_labels[i];
  }
  return nullptr;
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

// nullptr: the list is full.
OpenLabel* AddTo(OpenLabels& labels, const void* function, std::string_view name) {
  if (labels.count == labels.open.size()) return nullptr;
  OpenLabel& label = labels.open[labels.count++];
  label = {.function = function,
           .start_ticks = NowTicks(),
           .recorded_in = 0,
           .is_operator = false,
           .name = {}};
  std::copy_n(name.begin(), std::min(name.size(), label.name.size() - 1), label.name.begin());
  return &label;
}

// Labels that this time of recording does not have. In the first one they began when they did; no
// range reaches back over a time without recording.
void RecordOpen(ThreadState& thread, OpenLabels& labels, ArenaRef domain) {
  const uint32_t time = g_time_of_recording.load(std::memory_order_relaxed);
  const uint64_t now = NowTicks();
  for (OpenLabel& label : std::span(labels.open).first(labels.count)) {
    if (label.recorded_in == time) continue;
    Push(thread, time == 1 ? label.start_ticks : now, label.name.data(), domain);
    label.recorded_in = time;
    label.is_operator = false;
  }
}

// Ends come in the reverse order of begins, but for a label that another outlives. False: no list
// has it.
bool EndListed(const void* function) {
  OpenLabels* const labels = LabelsOfThread();
  if (labels == nullptr) return false;
  for (size_t i = labels->count; i-- > 0;) {
    const OpenLabel& label = labels->open[i];
    if (label.function != function) continue;
    if (!label.is_operator &&
        label.recorded_in == g_time_of_recording.load(std::memory_order_relaxed)) {
      PopRange(g_label_domain.load(std::memory_order_relaxed));
    }
    std::copy(labels->open.begin() + static_cast<ptrdiff_t>(i) + 1,
              labels->open.begin() + static_cast<ptrdiff_t>(labels->count),
              labels->open.begin() + static_cast<ptrdiff_t>(i));
    if (--labels->count == 0) {
      const auto list = static_cast<size_t>(labels - g_open_labels.data());
      g_list_owners[list].store(0, std::memory_order_release);
    }
    return true;
  }
  return false;
}

enum class Kept { kNowhere, kAsRange, kInList };

Kept Begin(const void* function, const char* name, bool stays) {
  OpenLabels* const labels = stays ? ListForThread() : nullptr;
  const ArenaRef domain = g_label_domain.load(std::memory_order_relaxed);
  ThreadState* const thread = domain == 0 ? nullptr : RecordingThread();
  if (thread != nullptr && labels != nullptr) RecordOpen(*thread, *labels, domain);
  OpenLabel* const label = labels == nullptr ? nullptr : AddTo(*labels, function, name);
  if (thread == nullptr) return label == nullptr ? Kept::kNowhere : Kept::kInList;
  const bool is_operator = RecordsLabelsOfThread();
  if (!is_operator) Push(*thread, NowTicks(), name, domain);
  if (label == nullptr) return is_operator ? Kept::kNowhere : Kept::kAsRange;
  label->recorded_in = g_time_of_recording.load(std::memory_order_relaxed);
  label->is_operator = is_operator;
  return Kept::kInList;
}

std::unique_ptr<RecordContext> OnLabel(const void* function) {
  // Another thread may end one that is asynchronous: it would stay in this thread's list.
  const bool stays = g_is_async == nullptr || !g_is_async(function);
  switch (Begin(function, g_name(function), stays)) {
    case Kept::kNowhere:
      return nullptr;
    case Kept::kAsRange:
      return std::unique_ptr<RecordContext>(g_begun);
    case Kept::kInList:
      break;
  }
  return std::unique_ptr<RecordContext>(g_listed);
}

void OnLabelEnd(const void* function, RecordContext* context) {
  if (context == nullptr) return;
  if (context == g_listed) {
    (void)EndListed(function);
  } else {
    PopRange(g_label_domain.load(std::memory_order_relaxed));
  }
}

// Labels of this thread that its list has no room for. Their ends come in the reverse order.
struct Unlisted {
  static constexpr uint32_t kMost = 1024;  // more than CPython nests calls; others have no range

  bool Has(uint32_t at) const { return (has_range[at / 64] >> at % 64 & 1) != 0; }
  void Set(uint32_t at, bool has) {
    has_range[at / 64] = (has_range[at / 64] & ~(uint64_t{1} << at % 64)) | uint64_t{has}
                                                                                << at % 64;
  }

  std::array<uint64_t, kMost / 64> has_range{};
  uint32_t count = 0;
  uint32_t recorded_in = 0;  // the time of recording of those that have one
};
constinit thread_local Unlisted t_unlisted;

void* TorchLibrary() { return dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD); }

}  // namespace

void ExpectLabels() {
  ChooseHostClock();  // as at the start, before which labels may come
  g_sees_labels = true;
}

void BeginLabel(const void* label, const char* name) {
  Unlisted& unlisted = t_unlisted;
  if (unlisted.count >= Unlisted::kMost) {
    ++unlisted.count;
    return;
  }
  const Kept kept = Begin(label, name, true);
  if (kept == Kept::kInList) return;
  const uint32_t time = g_time_of_recording.load(std::memory_order_relaxed);
  if (unlisted.recorded_in != time) unlisted.has_range = {};
  unlisted.recorded_in = time;
  unlisted.Set(unlisted.count++, kept == Kept::kAsRange);
}

void EndLabel(const void* label) {
  if (EndListed(label)) return;
  Unlisted& unlisted = t_unlisted;
  if (unlisted.count == 0 || --unlisted.count >= Unlisted::kMost) return;
  if (unlisted.Has(unlisted.count) &&
      unlisted.recorded_in == g_time_of_recording.load(std::memory_order_relaxed)) {
    PopRange(g_label_domain.load(std::memory_order_relaxed));
  }
}

PyObject* WatchLabels(PyObject*, PyObject*) {
  void* const library = TorchLibrary();
  if (library == nullptr || g_handle != 0) return None();
  const auto add = reinterpret_cast<AddRecordCallback>(
      dlsym(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"));
  g_name = reinterpret_cast<RecordName>(dlsym(library, "_ZNK2at14RecordFunction4nameEv"));
  if (add == nullptr || g_name == nullptr) return None();
  g_is_async =
      reinterpret_cast<decltype(g_is_async)>(dlsym(library, "_ZNK2at14RecordFunction7isAsyncEv"));
  ExpectLabels();
  if (g_begun == nullptr) {
    g_begun = new (g_begun_memory.data()) Begun;
    g_listed = new (g_listed_memory.data()) Listed;
  }
  RecordCallback callback{.start = &OnLabel, .end = &OnLabelEnd};
  callback.needs_inputs = false;
  callback.scopes[kUser] = true;
  g_handle = add(callback);
  return None();
}

PyObject* RecordLabels(PyObject*, PyObject* domain) {
  const auto id = static_cast<ArenaRef>(g_python.PyLong_AsUnsignedLongLongMask(domain));
  ThreadState* const thread = RecordingThread();
  OpenLabels* const labels = LabelsOfThread();
  if (thread == nullptr) EndTimeOfLabels();
  if (thread != nullptr && labels != nullptr && id != 0) RecordOpen(*thread, *labels, id);
  g_label_domain.store(id, std::memory_order_relaxed);
  return g_python.PyLong_FromUnsignedLongLong(g_sees_labels ? 1 : 0);
}

void EndTimeOfLabels() { g_time_of_recording.fetch_add(1, std::memory_order_relaxed); }

}  // namespace ranktap::agent
