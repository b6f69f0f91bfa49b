// The agent's configuration as a dict.
// Runs on: threads that hold the interpreter's lock.  May not: raise a Python exception.
#include "agent/sources/torch/torch_config.h"

#include <utility>

#include "agent/core/agent_config.h"
#include "agent/core/agent_state.h"

namespace ranktap::agent {
namespace {

// Takes the value over.
void Put(PyObject* dict, const char* name, PyObject* value) {
  if (dict == nullptr || value == nullptr ||
      g_python.PyDict_SetItemString(dict, name, value) != 0) {
    g_python.PyErr_Clear();
  }
  if (value != nullptr) g_python.Py_DecRef(value);
}

}  // namespace

PyObject* ConfigForPython(PyObject*, PyObject*) {
  static const AgentConfig defaults;
  const AgentConfig& config = g_agent.config == nullptr ? defaults : Config();
  PyObject* const dict = g_python.PyDict_New();
  Put(dict, "schedule",
      g_python.PyUnicode_FromStringAndSize(config.schedule.data(),
                                           static_cast<intptr_t>(config.schedule.size())));
  const std::pair<const char*, bool> flags[] = {
      {"flop_check", config.flop_check},
      {"python_stacks", config.stacks == proto::StackPolicy::kAll},
  };
  for (const auto& [name, is_set] : flags) {
    Put(dict, name, g_python.PyLong_FromUnsignedLongLong(is_set ? 1 : 0));
  }
  Put(dict, "tensors", g_python.PyLong_FromUnsignedLongLong(static_cast<uint64_t>(config.tensors)));
  return dict;
}

}  // namespace ranktap::agent
