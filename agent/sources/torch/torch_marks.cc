// The names and numbers of proto/framework_marks.h by their names in Python.
// Runs on: threads that hold the interpreter's lock.  May not: be called after an exception.
#include "agent/sources/torch/torch_marks.h"

#include <cstdint>
#include <string_view>

#include "proto/framework_marks.h"
#include "proto/operator_values.h"

namespace ranktap::agent {
namespace {

struct Text {
  const char* name;
  std::string_view text;
};
constexpr std::string_view CodeOf(const char& code) { return {&code, 1}; }

constexpr Text kTexts[] = {
    {"STEP_DOMAIN", proto::kStepDomain},
    {"MODULE_DOMAIN", proto::kModuleDomain},
    {"PHASE_DOMAIN", proto::kPhaseDomain},
    {"OPERATOR_DOMAIN", proto::kOperatorDomain},
    {"COMM_DOMAIN", proto::kCommDomain},
    {"MEMORY_DOMAIN", proto::kMemoryDomain},
    {"LABEL_DOMAIN", proto::kLabelDomain},
    {"STEP_RANGE", proto::kStepRange},
    {"OPTIMIZER_PHASE", proto::kOptimizerPhase},
    {"BACKWARD_PHASE", proto::kBackwardPhase},
    {"DATA_PHASE", proto::kDataPhase},
    {"COLLECTION_PHASE", proto::kCollectionPhase},
    {"CHECKPOINT_PHASE", proto::kCheckpointPhase},
    {"WINDOW_MARK", proto::kWindowMark},
    {"TENSORS_MARK", proto::kTensorsMark},
    {"PARAMETER_KIND", CodeOf(proto::kParameterKind)},
    {"BUFFER_KIND", CodeOf(proto::kBufferKind)},
    {"GRADIENT_KIND", CodeOf(proto::kGradientKind)},
    {"STATE_KIND", CodeOf(proto::kStateKind)},
    {"HISTORY_MARK", proto::kHistoryMark},
    {"HISTORY_ROW", proto::kHistoryRow.names},
    {"OUT_OF_MEMORY_MARK", proto::kOutOfMemoryMark},
    {"OUT_OF_MEMORY_ROW", proto::kOutOfMemoryRow.names},
    {"OPERATORS_MARK", proto::kOperatorsMark},
    {"OPERATORS_ROW", proto::kOperatorsRow.names},
    {"SIGNATURES_MARK", proto::kSignaturesMark},
    {"STACKS_MARK", proto::kStacksMark},
    {"SCHEMAS_MARK", proto::kSchemasMark},
    {"FLOP_CHECK_MARK", proto::kFlopCheckMark},
    {"FLOP_CHECK_ROW", proto::kFlopCheckRow.names},
    {"SETTINGS_MARK", proto::kSettingsMark},
    {"SETTINGS_ROW", proto::kSettingsRow.names},
    {"STANDSTILL_PHASE", proto::kStandstillPhase},
    {"COMPILATION_PHASE", proto::kCompilationPhase},
    {"RECOMPILATIONS_MARK", proto::kRecompilationsMark},
    {"RECOMPILATIONS_ROW", proto::kRecompilationsRow.names},
    {"ENDING_MARK", proto::kEndingMark},
    {"ENDING_ROW", proto::kEndingRow.names},
    {"GROUPS_MARK", proto::kGroupsMark},
    {"GROUPS_ROW", proto::kGroupsRow.names},
    {"TREE_MARK", proto::kTreeMark},
};

struct Number {
  const char* name;
  uint64_t number;
};
constexpr Number kNumbers[] = {
    {"BLOCK_HELD", proto::kBlockHeld},       {"BLOCK_ALLOCATED", proto::kBlockAllocated},
    {"BLOCK_FREED", proto::kBlockFreed},     {"SEGMENT_ALLOCATED", proto::kSegmentAllocated},
    {"SEGMENT_FREED", proto::kSegmentFreed},
};

// Takes the value over.
bool PutMark(PyObject* dict, const char* name, PyObject* value) {
  if (value == nullptr) return false;
  const bool done = g_python.PyDict_SetItemString(dict, name, value) == 0;
  g_python.Py_DecRef(value);
  return done;
}

}  // namespace

bool AddMarks(PyObject* dict) {
  for (const auto& [name, text] : kTexts) {
    if (!PutMark(dict, name,
             g_python.PyUnicode_FromStringAndSize(text.data(),
                                                  static_cast<intptr_t>(text.size())))) {
      return false;
    }
  }
  for (const auto& [name, number] : kNumbers) {
    if (!PutMark(dict, name, g_python.PyLong_FromUnsignedLongLong(number))) return false;
  }
  return true;
}

}  // namespace ranktap::agent
