// A method of Lightning's Strategy, with a range around.
// Runs on: see torch_lightning.h.  May not: likewise; allocate in steady state.
#include "agent/sources/torch/torch_lightning.h"

#include "agent/sources/torch/torch_modules.h"

namespace ranktap::agent {
namespace {

// A new reference, or nullptr. An exception that is set then is not ours: a signal's, from within
// Lightning's property.
PyObject* Attribute(PyObject* object, const char* name) {
  PyObject* const value = g_python.PyObject_GetAttrString(object, name);
  if (value == nullptr && g_python.PyErr_ExceptionMatches(*g_python.PyExc_Exception) != 0) {
    g_python.PyErr_Clear();
  }
  return value;
}

// arguments[0]: the Strategy.
PyObject* CallStep(PyObject* original, PyObject* const* arguments, intptr_t count,
                   PyObject* keywords) {
  PyObject* const module = count < 1 ? nullptr : Attribute(arguments[0], "lightning_module");
  PyObject* const model = module == nullptr ? nullptr : Attribute(arguments[0], "model");
  PyObject* result = nullptr;
  if (model != nullptr && module != g_python._Py_NoneStruct) {
    const SteppedModule outer = SetSteppedModule({.module = module});
    // Else it is called through what wraps it.
    const bool is_direct = model == module;
    ThreadState* const begun = is_direct ? BeginCall(module) : nullptr;
    result =
        g_python.PyObject_Vectorcall(original, arguments, static_cast<size_t>(count), keywords);
    if (is_direct) EndCall(module, begun, result);
    (void)SetSteppedModule(outer);
  } else if (g_python.PyErr_Occurred() == nullptr) {
    result =
        g_python.PyObject_Vectorcall(original, arguments, static_cast<size_t>(count), keywords);
  }
  if (model != nullptr) g_python.Py_DecRef(model);
  if (module != nullptr) g_python.Py_DecRef(module);
  return result;
}

}  // namespace

PyObject* NewStepCall(PyObject*, PyObject* original) {
  if (g_python.PyInstanceMethod_New == nullptr || g_python.PyObject_GetAttrString == nullptr ||
      g_python.PyErr_ExceptionMatches == nullptr || g_python.PyExc_Exception == nullptr ||
      !HasModuleCall()) {
    return None();
  }
  static PyMethodDef method = {"strategy_step", reinterpret_cast<void*>(&CallStep),
                               kMethFastcall | kMethKeywords, nullptr};
  PyObject* const call = g_python.PyCFunction_NewEx(&method, original, nullptr);
  PyObject* const made = call == nullptr ? nullptr : g_python.PyInstanceMethod_New(call);
  if (call != nullptr) g_python.Py_DecRef(call);
  if (made != nullptr) return made;
  g_python.PyErr_Clear();
  return None();
}

}  // namespace ranktap::agent
