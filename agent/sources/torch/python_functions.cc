// A method's arguments behind its object, which CPython hands over apart.
// Runs on: see python_functions.h.  May not: likewise; allocate but for more than kFewArguments.
#include "agent/sources/torch/python_functions.h"

#include <array>
#include <memory>
#include <new>

namespace ranktap::agent {
namespace {

constexpr intptr_t kFewArguments = 64;

void CopyArguments(PyObject** to, PyObject* self, PyObject* const* arguments, intptr_t count) {
  to[0] = self;
  for (intptr_t i = 0; i < count; ++i) to[i + 1] = arguments[i];
}

}  // namespace

PyObject* CallAsMethodWithMany(PyObject* original, PyObject* self, PyObject* const* arguments,
                               intptr_t count, PyObject* keywords) {
  const intptr_t named = keywords == nullptr ? 0 : g_python.PyTuple_Size(keywords);
  const intptr_t all = count + named;
  const auto positional = static_cast<size_t>(count) + 1;
  if (all < kFewArguments) {
    std::array<PyObject*, kFewArguments> few;
    CopyArguments(few.data(), self, arguments, all);
    return g_python.PyObject_Vectorcall(original, few.data(), positional, keywords);
  }
  // As CPython does it, which raises this too where there is no memory.
  const std::unique_ptr<PyObject*[]> many(new (std::nothrow)
                                              PyObject*[static_cast<size_t>(all) + 1]);
  if (many == nullptr) return g_python.PyErr_NoMemory();
  CopyArguments(many.get(), self, arguments, all);
  return g_python.PyObject_Vectorcall(original, many.get(), positional, keywords);
}

}  // namespace ranktap::agent
