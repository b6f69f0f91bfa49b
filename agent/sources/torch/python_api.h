// CPython, as far as we call it: looked up by name in the interpreter that is in the process, so
// that one agent serves every version from 3.8 on and needs no libpython. Only functions of the
// stable ABI and the audit hook; no object layout is known here. Runs on: the loader
// (PythonApi::Load), then threads that hold the interpreter's lock. May not: be used before Load
// has said yes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ranktap::agent {

struct PyObject;  // CPython's; opaque

// CPython's PyMethodDef (stable ABI).
struct PyMethodDef {
  const char* name;
  void* function;
  int flags;
  const char* doc;
};
inline constexpr int kMethNoArgs = 0x0004;
inline constexpr int kMethO = 0x0008;
inline constexpr int kMethKeywords = 0x0002;
inline constexpr int kMethFastcall = 0x0080;

// CPython's PyMemAllocatorEx.
struct PyMemAllocator {
  void* context;
  void* (*allocate)(void* context, size_t bytes);
  void* (*allocate_zeroed)(void* context, size_t count, size_t bytes);
  void* (*reallocate)(void* context, void* memory, size_t bytes);
  void (*free)(void* context, void* memory);
};
inline constexpr int kRawMemory = 0;  // PYMEM_DOMAIN_RAW

using PyAuditHook = int (*)(const char* event, PyObject* arguments, void* data);

// NOLINTBEGIN: CPython's own names
struct PythonApi {
  int (*PySys_AddAuditHook)(PyAuditHook, void*);
  void (*PyMem_GetAllocator)(int domain, PyMemAllocator*);
  void (*PyMem_SetAllocator)(int domain, PyMemAllocator*);
  int (*Py_AddPendingCall)(int (*)(void*), void*);
  PyObject* (*Py_CompileString)(const char*, const char*, int);
  PyObject* (*PyEval_EvalCode)(PyObject*, PyObject*, PyObject*);
  PyObject* (*PyEval_GetBuiltins)();
  PyObject* (*PyDict_New)();
  int (*PyDict_SetItemString)(PyObject*, const char*, PyObject*);
  PyObject* (*PyCFunction_NewEx)(PyMethodDef*, PyObject*, PyObject*);
  PyObject* (*PyUnicode_FromStringAndSize)(const char*, intptr_t);
  const char* (*PyUnicode_AsUTF8AndSize)(PyObject*, intptr_t*);
  PyObject* (*PyTuple_GetItem)(PyObject*, intptr_t);
  PyObject* (*PyLong_FromUnsignedLongLong)(unsigned long long);
  unsigned long long (*PyLong_AsUnsignedLongLongMask)(PyObject*);
  int (*PyBytes_AsStringAndSize)(PyObject*, char**, intptr_t*);
  PyObject* (*PyErr_Occurred)();
  void (*PyErr_Clear)();
  PyObject* (*PyErr_NoMemory)();
  void (*Py_IncRef)(PyObject*);
  void (*Py_DecRef)(PyObject*);
  PyObject* _Py_NoneStruct;  // the address of None
  // nullptr where this CPython has them not (before 3.9).
  PyObject* (*PyObject_Vectorcall)(PyObject*, PyObject* const*, size_t, PyObject*);
  PyObject* (*PyDescr_NewMethod)(PyObject*, PyMethodDef*);
  intptr_t (*PyTuple_Size)(PyObject*);
  PyObject* (*PyInstanceMethod_New)(PyObject*);
  PyObject* (*PyObject_GetAttr)(PyObject*, PyObject*);
  PyObject* (*PyObject_GetAttrString)(PyObject*, const char*);
  int (*PyErr_ExceptionMatches)(PyObject*);
  PyObject** PyExc_Exception;
  int (*Py_IsInitialized)();
  intptr_t (*PyDict_Size)(PyObject*);
  PyObject* (*PyDict_GetItem)(PyObject*, PyObject*);

  // False: there is no CPython in the process, or one without audit hooks (before 3.8).
  [[nodiscard]] bool Load();
};
// NOLINTEND

// Zero until Load.
extern constinit PythonApi g_python;

// A new reference to None.
inline PyObject* None() {
  g_python.Py_IncRef(g_python._Py_NoneStruct);
  return g_python._Py_NoneStruct;
}

}  // namespace ranktap::agent
