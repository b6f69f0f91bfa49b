// Walks of Python's frames, and what they are called.
// Runs on: threads that hold the interpreter's lock, which guards all that is written here; the
// hooks of PyEval_SaveThread and PyEval_RestoreThread in libtorch_python.so.  May not: see
// torch_stacks.h.
#include "agent/sources/torch/torch_stacks.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/core/capture_state.h"
#include "agent/core/contain.h"
#include "agent/interpose/got_patcher.h"
#include "agent/sources/torch/python_api.h"
#include "agent/sources/torch/text_mark.h"
#include "proto/framework_marks.h"
#include "proto/operator_payload.h"

namespace ranktap::agent {

constinit std::atomic<bool> g_python_stacks{false};

namespace {

constexpr size_t kMostFrames = 128, kSlots = 1 << 14, kMostProbes = 32, kMostBytes = 56'000;
constexpr size_t kMostTextBytes = 1024;  // of a frame

// NOLINTBEGIN: CPython's own names
struct FrameApi {
  PyObject* (*PyEval_GetFrame)();           // borrowed
  PyObject* (*PyFrame_GetCode)(PyObject*);  // from 3.9 on
  PyObject* (*PyFrame_GetBack)(PyObject*);  // from 3.9 on
  int (*PyFrame_GetLasti)(PyObject*);       // from 3.11 on
  int (*PyFrame_GetLineNumber)(PyObject*);
  int (*PyCode_Addr2Line)(PyObject*, int);
  PyObject* (*PyObject_GetAttrString)(PyObject*, const char*);
  void* (*PyGILState_GetThisThreadState)();
  void* (*UncheckedGet)();  // this thread's state, if it holds the lock
  int (*PyGC_Disable)();    // from 3.10 on, which is before frames are made
  int (*PyGC_Enable)();
  void* (*PyEval_SaveThread)();
  void (*PyEval_RestoreThread)(void*);
};
// NOLINTEND
constinit FrameApi g_api{};

// The place in a code object: the last instruction, or the line where CPython does not tell it.
struct Place {
  PyObject* code;
  int at;
  auto operator<=>(const Place&) const = default;
};

struct Frame {
  uint32_t number = 0;
  uint64_t told = 0;  // in which window
};

struct Slot {
  uint64_t hash = 0;
  uint32_t number = 0;
};

struct Stacks {
  std::array<Slot, kSlots> slots{};
  std::map<Place, Frame> frames;
  std::vector<std::string> prefixes;
  uint32_t last_stack = 0, last_frame = 0;
  uint64_t window = 0;
  proto::ArenaRef domain = 0, mark = 0;
};
constinit Stacks* g_stacks = nullptr;
constinit std::atomic<uint64_t> g_untaken_stacks{0};

struct Walk {
  std::array<Place, kMostFrames> places;
  size_t count = 0;
  bool complete = true;
  uint64_t hash = 0x243f'6a88'85a3'08d3;

  void Add(uint64_t value) {
    hash = (hash ^ value) * 0x9e37'79b9'7f4a'7c15;
    hash ^= hash >> 29;
  }
};

class CollectorPaused {
 public:
  CollectorPaused() : was_on_(g_api.PyGC_Disable != nullptr && g_api.PyGC_Disable() == 1) {}
  ~CollectorPaused() {
    if (was_on_) g_api.PyGC_Enable();
  }
  CollectorPaused(const CollectorPaused&) = delete;
  CollectorPaused& operator=(const CollectorPaused&) = delete;

 private:
  bool was_on_;
};

// No reference that we give back is the last: a frame's caller outlives it, and a frame its code.
void WalkFrames(Walk& walk) {
  const CollectorPaused paused;
  PyObject* frame = g_api.PyEval_GetFrame();
  PyObject* held = nullptr;
  while (frame != nullptr) {
    if (walk.count == kMostFrames) {
      walk.complete = false;
      break;
    }
    PyObject* const code = g_api.PyFrame_GetCode(frame);
    const int at = g_api.PyFrame_GetLasti != nullptr ? g_api.PyFrame_GetLasti(frame)
                                                     : g_api.PyFrame_GetLineNumber(frame);
    walk.places[walk.count++] = {.code = code, .at = at};
    walk.Add(reinterpret_cast<uintptr_t>(code));
    walk.Add(static_cast<uint32_t>(at));
    g_python.Py_DecRef(code);
    PyObject* const back = g_api.PyFrame_GetBack(frame);
    if (held != nullptr) g_python.Py_DecRef(held);
    held = frame = back;
  }
  if (held != nullptr) g_python.Py_DecRef(held);
}

// A text of a code object's; empty: it has none. Its attributes are CPython's own: no Python runs.
std::string TextOf(PyObject* code, const char* attribute) {
  std::string text;
  PyObject* const object = g_api.PyObject_GetAttrString(code, attribute);
  intptr_t size = 0;
  const char* const utf8 =
      object == nullptr ? nullptr : g_python.PyUnicode_AsUTF8AndSize(object, &size);
  if (utf8 == nullptr) {
    g_python.PyErr_Clear();
  } else {
    text.assign(utf8, static_cast<size_t>(size));
  }
  if (object != nullptr) g_python.Py_DecRef(object);
  return text;
}

void AppendQuoted(std::string_view text, std::string& line) {
  if (text.size() > kMostTextBytes) {
    text.remove_suffix(text.size() - kMostTextBytes);
    while (!text.empty() && (text.back() & 0x80) != 0) text.remove_suffix(1);  // no part of UTF-8
  }
  line += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') line += '\\';
    // ';' stands between frames.
    line += c == ';' ? ':' : static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  line += '"';
}

std::string FrameText(const Place& place) {
  std::string file = TextOf(place.code, "co_filename");
  for (const std::string& prefix : g_stacks->prefixes) {
    if (!file.starts_with(prefix)) continue;
    file.erase(0, prefix.size());
    break;
  }
  const int line =
      g_api.PyFrame_GetLasti != nullptr ? g_api.PyCode_Addr2Line(place.code, place.at) : place.at;
  return file + "(" + std::to_string(line) + "): " + TextOf(place.code, "co_name");
}

void Send(ThreadState& thread, const std::string& lines) {
  EmitTextMark(thread, g_stacks->domain, g_stacks->mark, lines);
}

void AddLine(ThreadState& thread, const std::string& line, std::string& lines) {
  if (lines.size() + line.size() + 1 > kMostBytes) {
    Send(thread, lines);
    lines.clear();
  }
  if (!lines.empty()) lines += '\n';
  lines += line;
}

void Tell(ThreadState& thread, const Walk& walk, uint32_t number) {
  static_assert(proto::kStacksRow.names == "number frames");
  std::string lines, stack = "[" + std::to_string(number) + ",[";
  for (size_t i = 0; i < walk.count; ++i) {
    const Place& place = walk.places[i];
    Frame& frame = g_stacks->frames[place];
    if (frame.number == 0) {
      g_python.Py_IncRef(place.code);  // for good: its address is its name here
      frame.number = ++g_stacks->last_frame;
    }
    if (frame.told != g_stacks->window) {
      frame.told = g_stacks->window;
      std::string line = "[" + std::to_string(frame.number) + ",";
      AppendQuoted(FrameText(place), line);
      AddLine(thread, line + "]", lines);
    }
    stack += (i == 0 ? "" : ",") + std::to_string(frame.number);
  }
  if (!walk.complete) stack += ",0";
  AddLine(thread, stack + "]]", lines);
  Send(thread, lines);
}

uint32_t FindStack(ThreadState& thread) {
  Walk walk;
  WalkFrames(walk);
  if (walk.count == 0) return 0;
  const uint64_t hash = walk.hash == 0 ? 1 : walk.hash;
  for (size_t probe = 0; probe < kMostProbes; ++probe) {
    Slot& slot = g_stacks->slots[(hash + probe) % kSlots];
    if (slot.hash == hash) [[likely]]
      return slot.number;
    if (slot.hash != 0) continue;
    // Naming frames looks at attributes, which must not meet an exception of the program's.
    if (g_stacks->last_stack == proto::kMostOperatorStacks || g_python.PyErr_Occurred() != nullptr)
      break;
    slot = {.hash = hash, .number = ++g_stacks->last_stack};
    Tell(thread, walk, slot.number);
    return slot.number;
  }
  g_untaken_stacks.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

// Its callers are PyTorch and CPython, which no exception of ours may enter.
uint32_t TakeStack(ThreadState& thread) {
  return Contain(uint32_t{0}, [&thread] { return FindStack(thread); });
}

bool HoldsLock() {
  void* const own = g_api.PyGILState_GetThisThreadState();
  return own != nullptr && own == g_api.UncheckedGet();
}

// Calls of libtorch_python.so, with the lock.
void* OnSaveThread() {
  if (g_python_stacks.load(std::memory_order_relaxed) && Capturing(kCaptureFramework)) {
    if (ThreadState* const thread = ThreadState::Existing()) {
      thread->python_stack = TakeStack(*thread);
    }
  }
  return g_api.PyEval_SaveThread();
}

// May not return, where the interpreter ends.
void OnRestoreThread(void* state) {
  if (g_python_stacks.load(std::memory_order_relaxed)) {
    if (ThreadState* const thread = ThreadState::Existing()) thread->python_stack = 0;
  }
  g_api.PyEval_RestoreThread(state);
}

template <typename Function>
bool Find(const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, symbol));
  return function != nullptr;
}

bool FindFunctions() {
#define RANKTAP_FIND(name) Find(#name, g_api.name)
  (void)RANKTAP_FIND(PyFrame_GetLasti);
  if (!RANKTAP_FIND(PyGC_Disable) || !RANKTAP_FIND(PyGC_Enable)) g_api.PyGC_Disable = nullptr;
  return RANKTAP_FIND(PyEval_GetFrame) && RANKTAP_FIND(PyFrame_GetCode) &&
         RANKTAP_FIND(PyFrame_GetBack) && RANKTAP_FIND(PyFrame_GetLineNumber) &&
         RANKTAP_FIND(PyCode_Addr2Line) && RANKTAP_FIND(PyObject_GetAttrString) &&
         RANKTAP_FIND(PyGILState_GetThisThreadState) && RANKTAP_FIND(PyEval_SaveThread) &&
         RANKTAP_FIND(PyEval_RestoreThread) &&
         (Find("PyThreadState_GetUnchecked", g_api.UncheckedGet) ||
          Find("_PyThreadState_UncheckedGet", g_api.UncheckedGet));
#undef RANKTAP_FIND
}

bool Install() {
  if (!FindFunctions()) return false;
  const std::array hooks = {
      GotHook{"PyEval_SaveThread", reinterpret_cast<void*>(&OnSaveThread)},
      GotHook{"PyEval_RestoreThread", reinterpret_cast<void*>(&OnRestoreThread)},
  };
  const GotPatchResult result = PatchGlobalOffsetTables(hooks, {}, "libtorch_python.so");
  if (result.slots < hooks.size() || result.failures != 0) return false;
  g_stacks = new Stacks;
  return true;
}

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end != 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

bool StartPythonStacks(proto::ArenaRef domain, proto::ArenaRef mark, std::string_view prefixes) {
  static const bool installed = Install();
  if (!installed) return false;
  Stacks& stacks = *g_stacks;
  stacks.slots.fill({});  // a collector that came later has not heard the old ones
  ++stacks.window;
  stacks.prefixes = LinesOf(prefixes);
  stacks.domain = domain;
  stacks.mark = mark;
  g_python_stacks.store(true);
  return true;
}

uint64_t StopPythonStacks() {
  g_python_stacks.store(false);
  return g_untaken_stacks.exchange(0);
}

uint64_t PythonStackNow(ThreadState& thread) {
  return HoldsLock() ? TakeStack(thread) : thread.python_stack;
}

}  // namespace ranktap::agent
