// record_function.__enter__ and __exit__.
// Runs on: see torch_label_calls.h.  May not: likewise; allocate in steady state.
#include "agent/sources/torch/torch_label_calls.h"

#include <string_view>

#include "agent/sources/torch/python_functions.h"
#include "agent/sources/torch/torch_labels.h"

namespace ranktap::agent {
namespace {

// Guarded by the interpreter's lock.
struct LabelCalls {
  PyObject* begins = nullptr;
  PyObject* ends = nullptr;
  PyObject* name = nullptr;  // "name", made once
};
constinit LabelCalls g_label_calls{};

// nullptr: it has none. A subclass may compute its name: an exception of that is the program's own
// as soon as PyTorch asks for the name, too.
PyObject* NameOfLabel(PyObject* label) {
  PyObject* const name = g_python.PyObject_GetAttr(label, g_label_calls.name);
  if (name == nullptr) g_python.PyErr_Clear();
  return name;
}

PyObject* CallBegin(PyObject* self, PyObject* const* arguments, intptr_t count,
                    PyObject* keywords) {
  PyObject* const name = NameOfLabel(self);
  intptr_t size = 0;
  const char* const text =
      name == nullptr ? nullptr : g_python.PyUnicode_AsUTF8AndSize(name, &size);
  if (text == nullptr) {
    g_python.PyErr_Clear();
  } else {
    BeginLabel(self, text);
  }
  PyObject* const result = CallAsMethod(g_label_calls.begins, self, arguments, count, keywords);
  if (result == nullptr && text != nullptr) EndLabel(self);  // there is no other end
  if (name != nullptr) g_python.Py_DecRef(name);
  return result;
}

PyObject* CallEnd(PyObject* self, PyObject* const* arguments, intptr_t count, PyObject* keywords) {
  PyObject* const result = CallAsMethod(g_label_calls.ends, self, arguments, count, keywords);
  EndLabel(self);
  return result;
}

}  // namespace

PyObject* NewLabelCall(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 3 || g_python.PyDescr_NewMethod == nullptr ||
      g_python.PyObject_Vectorcall == nullptr || g_python.PyTuple_Size == nullptr ||
      g_python.PyObject_GetAttr == nullptr) {
    return None();
  }
  static PyMethodDef begin = {"__enter__", reinterpret_cast<void*>(&CallBegin),
                              kMethFastcall | kMethKeywords, nullptr};
  static PyMethodDef end = {"__exit__", reinterpret_cast<void*>(&CallEnd),
                            kMethFastcall | kMethKeywords, nullptr};
  constexpr std::string_view kName = "name";
  if (g_label_calls.name == nullptr) {
    g_label_calls.name = g_python.PyUnicode_FromStringAndSize(kName.data(), kName.size());
    if (g_label_calls.name == nullptr) return nullptr;
  }
  const bool ends = g_python.PyLong_AsUnsignedLongLongMask(arguments[2]) != 0;
  PyObject* const call = g_python.PyDescr_NewMethod(arguments[0], ends ? &end : &begin);
  if (call == nullptr) {
    g_python.PyErr_Clear();
    return None();
  }
  g_python.Py_IncRef(arguments[1]);
  (ends ? g_label_calls.ends : g_label_calls.begins) = arguments[1];
  ExpectLabels();
  return call;
}

}  // namespace ranktap::agent
