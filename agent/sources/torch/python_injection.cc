// From `import torch` to our Python sources.
// Runs on: the loader; threads that hold the interpreter's lock; the main thread (pending call).
// May not: raise, print, or leave an exception set.
#include "agent/sources/torch/python_injection.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "agent/core/log.h"
#include "agent/sources/torch/python_api.h"
#include "agent/sources/torch/python_sources.h"
#include "agent/sources/torch/torch_functions.h"

namespace ranktap::agent {
namespace {

constinit PythonInjection g_injection{};
constinit std::atomic<bool> g_queued{false};

// The hook's place in CPython's list: the allocator it came from, and the one that frees the list.
constinit PyMemAllocator g_came_from{}, g_freed_by{};
constinit void* g_place = nullptr;

void FreePlace(void* context, void* memory) {
  if (memory == nullptr || memory != g_place) return g_freed_by.free(context, memory);
  g_python.PyMem_SetAllocator(kRawMemory, &g_freed_by);
  g_came_from.free(g_came_from.context, memory);
}

// PYTHONMALLOC and -X dev change the allocator after the hook was added, and the debug allocator
// aborts on what is not its own. Other threads may free meanwhile: but for one pointer, what they
// find is as before.
void WatchOverFree() {
  static bool watches = false;
  PyMemAllocator found;
  g_python.PyMem_GetAllocator(kRawMemory, &found);
  if (watches || found.free == g_came_from.free) return;
  watches = true;
  g_freed_by = found;
  found.free = &FreePlace;
  g_python.PyMem_SetAllocator(kRawMemory, &found);
}

bool IsTorch(PyObject* arguments) {
  PyObject* name = g_python.PyTuple_GetItem(arguments, 0);
  intptr_t size = 0;
  const char* text = name == nullptr ? nullptr : g_python.PyUnicode_AsUTF8AndSize(name, &size);
  if (text == nullptr) {
    g_python.PyErr_Clear();
    return false;
  }
  return std::string_view(text, static_cast<size_t>(size)) == "torch";
}

// {file name: source}, for the loader written in Python.
PyObject* SourcesByName() {
  PyObject* sources = g_python.PyDict_New();
  for (const PythonSource& source : PythonSources()) {
    PyObject* text = sources == nullptr
                         ? nullptr
                         : g_python.PyUnicode_FromStringAndSize(
                               source.text.data(), static_cast<intptr_t>(source.text.size()));
    if (text == nullptr) break;
    (void)g_python.PyDict_SetItemString(sources, source.name, text);
    g_python.Py_DecRef(text);
  }
  return sources;
}

bool RunLoaderSource() {
  PyObject* globals = g_python.PyDict_New();
  PyObject* sources = SourcesByName();
  PyObject* functions = MakeTorchFunctions();
  PyObject* code = g_python.Py_CompileString(FindPythonSource("loader"), "<ranktap/loader.py>",
                                             /*Py_file_input=*/257);
  PyObject* result = nullptr;
  if (globals != nullptr && sources != nullptr && functions != nullptr && code != nullptr &&
      g_python.PyDict_SetItemString(globals, "__builtins__", g_python.PyEval_GetBuiltins()) == 0 &&
      g_python.PyDict_SetItemString(globals, "sources", sources) == 0 &&
      g_python.PyDict_SetItemString(globals, "functions", functions) == 0) {
    result = g_python.PyEval_EvalCode(code, globals, globals);
  }
  const bool ran = result != nullptr;
  for (PyObject* object : {globals, sources, functions, code, result}) {
    if (object != nullptr) g_python.Py_DecRef(object);
  }
  return ran;
}

int InstallFinder(void*) {
  OpenLog(std::getenv("RANKTAP_LOG"));  // before the agent's own start, which the hooks decide on
  if (!RunLoaderSource()) {
    g_python.PyErr_Clear();
    Log("the Python hook could not be installed");
  }
  return 0;
}

bool IsChildOfRun() {
  const char* const run = std::getenv("RANKTAP_RUN_PID");
  return run != nullptr && std::atoi(run) == getppid();
}

// No interpreter code may run here: the import machinery is in the middle of something.
int OnAudit(const char* event, PyObject* arguments, void*) {
  if (event[0] == 'c' && std::strcmp(event, "cpython._PySys_ClearAuditHooks") == 0) WatchOverFree();
  constexpr std::string_view kProgramBegins = "cpython.run_";
  if (g_injection.starts_with_program && event[0] == 'c' &&
      std::strncmp(event, kProgramBegins.data(), kProgramBegins.size()) == 0 && IsChildOfRun()) {
    OpenLog(std::getenv("RANKTAP_LOG"));
    (void)g_injection.start();
  }
  if (event[0] != 'i' || !g_injection.hooks_torch || std::strcmp(event, "import") != 0) return 0;
  if (g_queued.load(std::memory_order_relaxed) || !IsTorch(arguments)) return 0;
  if (g_queued.exchange(true)) return 0;
  // Full queue: the next import asks again.
  if (g_python.Py_AddPendingCall(&InstallFinder, nullptr) != 0) g_queued.store(false);
  return 0;
}

void AddHook() {
  g_python.PyMem_GetAllocator(kRawMemory, &g_came_from);
  PyMemAllocator noting = g_came_from;
  noting.allocate = [](void* context, size_t bytes) {
    return g_place = g_came_from.allocate(context, bytes);
  };
  g_python.PyMem_SetAllocator(kRawMemory, &noting);
  (void)g_python.PySys_AddAuditHook(&OnAudit, nullptr);
  g_python.PyMem_SetAllocator(kRawMemory, &g_came_from);
}

}  // namespace

void InstallPythonInjection(const PythonInjection& injection) {
  g_injection = injection;
  if (g_python.Load()) AddHook();
}

const PythonInjection& InstalledPythonInjection() { return g_injection; }

}  // namespace ranktap::agent
