// The call of a module, and which name each has.
// Runs on: threads that hold the interpreter's lock.  May not: raise an exception of its own;
// allocate but when a module is named, or called with more arguments than kFewArguments.
#include "agent/sources/torch/torch_modules.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>

#include "agent/core/contain.h"
#include "agent/sources/torch/torch_ranges.h"

namespace ranktap::agent {
namespace {

using proto::ArenaRef;

constexpr intptr_t kFewArguments = 64;

// Guarded by the interpreter's lock. Leaked: modules are called until the end.
using NameTable = std::unordered_map<const PyObject*, ArenaRef>;
NameTable& ModuleNames() {
  static NameTable& names = *new NameTable;
  return names;
}

// In front of it, since its look-up divides by a prime: 20 ns.
struct NameLine {
  const PyObject* module;
  ArenaRef name;
};
constinit std::array<NameLine, 512> g_name_lines{};
NameLine& LineOf(const PyObject* module) {
  const auto bits = reinterpret_cast<uintptr_t>(module);
  return g_name_lines[(bits >> 4 ^ bits >> 13) % g_name_lines.size()];
}

struct ModuleCall {
  PyObject* original = nullptr;
  PyObject* first_seen = nullptr;
  PyObject* root_done = nullptr;
  PyObject* root_begins = nullptr;  // nullptr: nobody asks
};
constinit ModuleCall g_call{};

// Calls one of our own Python functions, which contain their failures.
void Tell(PyObject* function, PyObject* argument) {
  PyObject* const arguments[] = {argument};
  PyObject* const result = g_python.PyObject_Vectorcall(function, arguments, 1, nullptr);
  if (result == nullptr) {
    g_python.PyErr_Clear();
  } else {
    g_python.Py_DecRef(result);
  }
}

PyObject* CallOriginal(PyObject* self, PyObject* const* arguments, intptr_t count,
                       PyObject* keywords) {
  const intptr_t named = keywords == nullptr ? 0 : g_python.PyTuple_Size(keywords);
  const intptr_t all = count + named;
  if (all < kFewArguments) {
    std::array<PyObject*, kFewArguments> few;
    few[0] = self;
    std::copy_n(arguments, all, few.begin() + 1);
    return g_python.PyObject_Vectorcall(g_call.original, few.data(), static_cast<size_t>(count) + 1,
                                        keywords);
  }
  // As CPython does it, which raises this too where there is no memory.
  const std::unique_ptr<PyObject*[]> many(new (std::nothrow)
                                              PyObject*[static_cast<size_t>(all) + 1]);
  if (many == nullptr) return g_python.PyErr_NoMemory();
  many[0] = self;
  std::copy_n(arguments, all, many.get() + 1);
  return g_python.PyObject_Vectorcall(g_call.original, many.get(), static_cast<size_t>(count) + 1,
                                      keywords);
}

void TellOfRoot(PyObject* module) {
  if (g_call.root_begins != nullptr && IsAtRoot()) Tell(g_call.root_begins, module);
}

ArenaRef NameOf(PyObject* self) {
  NameLine& line = LineOf(self);
  if (line.module == self) [[likely]]
    return line.name;
  const NameTable& names = ModuleNames();
  auto known = names.find(self);
  if (known == names.end()) {
    Tell(g_call.first_seen, self);
    known = names.find(self);
  }
  if (known == names.end()) return 0;
  line = {.module = self, .name = known->second};
  return known->second;
}

PyObject* CallModule(PyObject* self, PyObject* const* arguments, intptr_t count,
                     PyObject* keywords) {
  const bool begun = BeginCall(self);
  PyObject* const result = CallOriginal(self, arguments, count, keywords);
  EndCall(self, begun, result);
  return result;
}

// Programs print what PyTorch's own is called, `_wrapped_call_impl`. The name is kept for good.
const char* NameOfFunction(PyObject* function) {
  if (g_python.PyObject_GetAttrString == nullptr) return "__call__";
  PyObject* const name = g_python.PyObject_GetAttrString(function, "__name__");
  intptr_t size = 0;
  const char* const text =
      name == nullptr ? nullptr : g_python.PyUnicode_AsUTF8AndSize(name, &size);
  if (text == nullptr) g_python.PyErr_Clear();
  return text == nullptr ? "__call__" : text;
}

constinit thread_local SteppedModule t_stepped;

}  // namespace

// Its caller is CPython, which no exception of ours may enter.
bool BeginCall(PyObject* module) {
  return Contain(false, [module] {
    const ArenaRef name = NameOf(module);
    if (!EnterCall(module) || name == 0) return false;
    TellOfRoot(module);
    return BeginModule(name);
  });
}

void EndCall(PyObject* module, bool begun, PyObject* result) {
  (void)LeaveCall(module);
  // Also when the forward raised; then no other Python code may run here.
  if (begun && EndModule() && result != nullptr && !HasBackwardCall()) {
    Tell(g_call.root_done, result);
  }
}

SteppedModule SetSteppedModule(SteppedModule next) { return std::exchange(t_stepped, next); }

bool EnterCall(const PyObject* module) {
  SteppedModule& stepped = t_stepped;
  return stepped.module != module || stepped.calls++ == 0;
}

bool LeaveCall(const PyObject* module) {
  SteppedModule& stepped = t_stepped;
  return stepped.module != module || stepped.calls == 0 || --stepped.calls == 0;
}

bool HasModuleCall() { return g_call.original != nullptr; }

PyObject* MakeModuleCall(PyObject* type, PyObject* original, PyObject* first_seen,
                         PyObject* root_done) {
  if (g_python.PyDescr_NewMethod == nullptr || g_python.PyObject_Vectorcall == nullptr ||
      g_python.PyTuple_Size == nullptr) {
    return nullptr;
  }
  for (PyObject* object : {original, first_seen, root_done}) g_python.Py_IncRef(object);
  g_call.original = original;
  g_call.first_seen = first_seen;
  g_call.root_done = root_done;
  static PyMethodDef method = {NameOfFunction(original), reinterpret_cast<void*>(&CallModule),
                               kMethFastcall | kMethKeywords, nullptr};
  PyObject* const descriptor = g_python.PyDescr_NewMethod(type, &method);
  if (descriptor == nullptr) g_python.PyErr_Clear();
  return descriptor;
}

PyObject* WatchRoots(PyObject*, PyObject* begins) {
  const bool wanted = begins != g_python._Py_NoneStruct;
  if (wanted && g_python.PyObject_Vectorcall == nullptr) return None();
  g_python.Py_IncRef(begins);  // kept for good: it may be at work
  g_call.root_begins = wanted ? begins : nullptr;
  return None();
}

PyObject* RootBegins(PyObject*, PyObject* module) {
  TellOfRoot(module);
  return None();
}

void NameModule(const PyObject* module, ArenaRef name) {
  LineOf(module) = {};
  ModuleNames()[module] = name;
}

void ForgetModule(const PyObject* module) {
  LineOf(module) = {};
  ModuleNames().erase(module);
}

}  // namespace ranktap::agent
