// As much of CPython as the torch source's functions call: objects that live for good, and an error
// that can be set. A test that calls a function of another part of it ends at a null pointer.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "agent/sources/torch/python_api.h"

namespace ranktap::agent {

// A number, a text or bytes, a dict, or a function; None is none of them.
struct PyObject {
  enum class Kind { kNone, kNumber, kText, kBytes, kDict, kFunction };
  Kind kind = Kind::kNone;
  uint64_t number = 0;
  std::string text;
  std::map<std::string, PyObject*> items;
  const PyMethodDef* method = nullptr;
};

class MadeUpPython {
 public:
  using Kind = PyObject::Kind;

  static PyObject* New(Kind kind) { return &objects_.emplace_back(PyObject{.kind = kind}); }
  static PyObject* Number(uint64_t number) {
    PyObject* const object = New(Kind::kNumber);
    object->number = number;
    return object;
  }
  static PyObject* Text(std::string text, Kind kind = Kind::kText) {
    PyObject* const object = New(kind);
    object->text = std::move(text);
    return object;
  }
  static bool HasError() { return has_error_; }

  static void Install() {
    g_python._Py_NoneStruct = New(Kind::kNone);
    g_python.Py_IncRef = [](PyObject*) {};
    g_python.Py_DecRef = [](PyObject*) {};
    g_python.PyErr_Occurred = []() -> PyObject* {
      return has_error_ ? g_python._Py_NoneStruct : nullptr;
    };
    g_python.PyErr_Clear = [] { has_error_ = false; };
    g_python.PyLong_FromUnsignedLongLong = [](unsigned long long number) { return Number(number); };
    g_python.PyLong_AsUnsignedLongLongMask = [](PyObject* object) -> unsigned long long {
      return object->number;
    };
    g_python.PyUnicode_FromStringAndSize = [](const char* text, intptr_t size) {
      return Text({text, static_cast<size_t>(size)});
    };
    g_python.PyUnicode_AsUTF8AndSize = [](PyObject* object, intptr_t* size) -> const char* {
      return Read(object, Kind::kText, size);
    };
    g_python.PyBytes_AsStringAndSize = [](PyObject* object, char** bytes, intptr_t* size) {
      *bytes = Read(object, Kind::kBytes, size);
      return *bytes == nullptr ? -1 : 0;
    };
    g_python.PyDict_New = [] { return New(Kind::kDict); };
    g_python.PyDict_SetItemString = [](PyObject* dict, const char* name, PyObject* item) {
      dict->items[name] = item;
      return 0;
    };
    g_python.PyCFunction_NewEx = [](PyMethodDef* method, PyObject*, PyObject*) {
      PyObject* const object = New(Kind::kFunction);
      object->method = method;
      return object;
    };
  }

  // As Python calls the function.
  static PyObject* Call(const PyMethodDef& method, std::initializer_list<PyObject*> arguments) {
    if (method.flags == kMethFastcall) {
      using Function = PyObject* (*)(PyObject*, PyObject* const*, intptr_t);
      return reinterpret_cast<Function>(method.function)(nullptr, std::data(arguments),
                                                         std::ssize(arguments));
    }
    using Function = PyObject* (*)(PyObject*, PyObject*);
    PyObject* const argument = arguments.size() == 0 ? nullptr : *arguments.begin();
    return reinterpret_cast<Function>(method.function)(nullptr, argument);
  }

 private:
  static char* Read(PyObject* object, Kind kind, intptr_t* size) {
    has_error_ = object->kind != kind;
    if (has_error_) return nullptr;
    *size = std::ssize(object->text);
    return object->text.data();
  }

  static inline std::deque<PyObject> objects_;
  static inline bool has_error_ = false;
};

}  // namespace ranktap::agent
