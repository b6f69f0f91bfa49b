// CPython's functions by name.
// Runs on: the loader, before main, and whoever asks again.  May not: allocate, call CPython.
#include "agent/sources/torch/python_api.h"

#include <dlfcn.h>

namespace ranktap::agent {
namespace {

template <typename Pointer>
bool Find(const char* name, Pointer& pointer) {
  pointer = reinterpret_cast<Pointer>(dlsym(RTLD_DEFAULT, name));
  return pointer != nullptr;
}

}  // namespace

constinit PythonApi g_python{};

bool PythonApi::Load() {
#define RANKTAP_FIND(name) Find(#name, name)
  // Not everywhere.
  (void)RANKTAP_FIND(PyObject_Vectorcall);
  (void)RANKTAP_FIND(PyDescr_NewMethod);
  (void)RANKTAP_FIND(PyTuple_Size);
  (void)RANKTAP_FIND(PyInstanceMethod_New);
  (void)RANKTAP_FIND(PyObject_GetAttr);
  (void)RANKTAP_FIND(PyObject_GetAttrString);
  (void)RANKTAP_FIND(PyErr_ExceptionMatches);
  (void)RANKTAP_FIND(PyExc_Exception);
  (void)RANKTAP_FIND(Py_IsInitialized);
  (void)RANKTAP_FIND(PyDict_Size);
  (void)RANKTAP_FIND(PyDict_GetItem);
  // The first one fails in every process without Python; the rest only in a broken one.
  return RANKTAP_FIND(PySys_AddAuditHook) && RANKTAP_FIND(Py_AddPendingCall) &&
         RANKTAP_FIND(PyMem_GetAllocator) && RANKTAP_FIND(PyMem_SetAllocator) &&
         RANKTAP_FIND(Py_CompileString) && RANKTAP_FIND(PyEval_EvalCode) &&
         RANKTAP_FIND(PyEval_GetBuiltins) && RANKTAP_FIND(PyDict_New) &&
         RANKTAP_FIND(PyDict_SetItemString) && RANKTAP_FIND(PyCFunction_NewEx) &&
         RANKTAP_FIND(PyUnicode_FromStringAndSize) && RANKTAP_FIND(PyUnicode_AsUTF8AndSize) &&
         RANKTAP_FIND(PyTuple_GetItem) && RANKTAP_FIND(PyLong_FromUnsignedLongLong) &&
         RANKTAP_FIND(PyLong_AsUnsignedLongLongMask) && RANKTAP_FIND(PyBytes_AsStringAndSize) &&
         RANKTAP_FIND(PyErr_Occurred) && RANKTAP_FIND(PyErr_Clear) &&
         RANKTAP_FIND(PyErr_NoMemory) && RANKTAP_FIND(Py_IncRef) && RANKTAP_FIND(Py_DecRef) &&
         RANKTAP_FIND(_Py_NoneStruct);
#undef RANKTAP_FIND
}

}  // namespace ranktap::agent
