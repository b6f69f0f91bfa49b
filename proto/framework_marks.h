// Names that our hooks in PyTorch share with the collector: domains of ranges and marks, their
// names, and the cells of the lines of JSON that marks hold. A mark's lines are rows of one kind.
//
// Python has these as constants of `agent`: kTensorsMark is agent.TENSORS_MARK. Old traces are
// read with these texts and numbers, so none may change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ranktap::proto {

inline constexpr std::string_view kStepDomain = "ranktap.step";      // payload: the step's number
inline constexpr std::string_view kModuleDomain = "ranktap.module";  // name: Root.path.of.module
inline constexpr std::string_view kPhaseDomain = "ranktap.phase";
inline constexpr std::string_view kOperatorDomain = "ranktap.op";
inline constexpr std::string_view kCommDomain = "ranktap.comm";  // payload: kCollectivePayload
inline constexpr std::string_view kMemoryDomain = "ranktap.memory";
// Labels of record_function outside of recorded operators: the program's own ranges.
inline constexpr std::string_view kLabelDomain = "record_function";

// Ranges in kStepDomain, then in kPhaseDomain.
inline constexpr std::string_view kStepRange = "step";
inline constexpr std::string_view kOptimizerPhase = "optimizer";
inline constexpr std::string_view kBackwardPhase = "backward";
inline constexpr std::string_view kDataPhase = "data";  // payload: 1 + the batches that were ready
inline constexpr std::string_view kCollectionPhase = "garbage collection";
inline constexpr std::string_view kCheckpointPhase = "checkpoint";
// The program stands still between two steps while operators and memory are begun or ended.
inline constexpr std::string_view kStandstillPhase = "window";
inline constexpr std::string_view kCompilationPhase = "compilation";  // inside of a forward

// The cells of a row. `row[kHistoryRow["bytes"]]` is a cell of an array; `kGroupsRow.Key("size")`
// is a key of an object. A name that the row has not does not compile.
struct RowFields {
  std::string_view names;  // with a blank between two

  consteval size_t operator[](std::string_view name) const {
    size_t index = 0;
    for (size_t begin = 0; begin < names.size(); ++index) {
      const size_t end = std::min(names.find(' ', begin), names.size());
      if (names.substr(begin, end - begin) == name) return index;
      begin = end + 1;
    }
    ThereIsNoSuchField();
    return index;
  }
  consteval std::string_view Key(std::string_view name) const {
    (void)(*this)[name];
    return name;
  }
  [[nodiscard]] constexpr size_t size() const {
    size_t blanks = 0;
    for (const char c : names) blanks += c == ' ' ? 1 : 0;
    return blanks + 1;
  }

 private:
  static void ThereIsNoSuchField();  // not constexpr, nor defined
};

// Marks in kMemoryDomain.
// "1": from here on everything is seen; "0": nothing any more.
inline constexpr std::string_view kWindowMark = "window";
// The tensors that live at the mark. Device 0: CPU, 1 + index: CUDA.
inline constexpr std::string_view kTensorsMark = "tensors";
inline constexpr RowFields kTensorsRow{"address bytes kind device name"};
inline constexpr char kParameterKind = 'p', kBufferKind = 'b', kGradientKind = 'g',
                      kStateKind = 's';
// The CUDA allocator's history since the last one. time_us is of CLOCK_REALTIME; 0: it is there as
// the window ends, since whenever. stack: Python frames, the innermost first.
inline constexpr std::string_view kHistoryMark = "history";
inline constexpr RowFields kHistoryRow{"device time_us action address bytes stack"};
enum HistoryAction : uint8_t {
  kBlockHeld = 0,
  kBlockAllocated = 1,
  kBlockFreed = 2,
  kSegmentAllocated = 3,
  kSegmentFreed = 4,
  // A greater value: an allocation failed. Hooks write kOutOfMemoryMark instead.
};
// The GPU's allocator fails with this mark; the CPU's failures are marks of this name with
// kAllocationPayload.
inline constexpr std::string_view kOutOfMemoryMark = "out of memory";
inline constexpr RowFields kOutOfMemoryRow{"device asked held free"};  // all but device: bytes

// Marks in kOperatorDomain. PyTorch's own observer writes these, by PyTorch's id of the record
// function.
inline constexpr std::string_view kOperatorsMark = "operators";
inline constexpr RowFields kOperatorsRow{"id forward_thread scope shapes types values"};
// Our own callback writes these, once for each number (kDescribedOperatorPayload). The agent writes
// both in C++. frames: a text of one frame, or a list of numbers of frames.
inline constexpr std::string_view kSignaturesMark = "signatures";
inline constexpr RowFields kSignaturesRow{"number shapes types values"};
inline constexpr std::string_view kStacksMark = "stacks";
inline constexpr RowFields kStacksRow{"number frames"};
// FlopCounterMode's: one without lines as its step begins, one with lines as it ends.
inline constexpr std::string_view kFlopCheckMark = "flop-check";
inline constexpr RowFields kFlopCheckRow{"operator shapes calls flops"};

// What costs time and is set once, as a window opens; again where it changed. cpus: that this
// process may run on. anomaly: 1 where autograd's anomaly mode is on.
inline constexpr std::string_view kSettingsMark = "settings";
inline constexpr RowFields kSettingsRow{"threads cpus anomaly"};

// As the program ends: why Dynamo compiled what it had compiled before, as PyTorch says it.
inline constexpr std::string_view kRecompilationsMark = "recompilations";
inline constexpr RowFields kRecompilationsRow{"place reason count"};

// In kStepDomain: an object of the exception that nothing caught, as the interpreter ends. frames:
// "train.py(31): step", the innermost first.
inline constexpr std::string_view kEndingMark = "ending";
inline constexpr RowFields kEndingRow{"type message frames"};

// In kCommDomain: objects with all keys. contexts: the colors of this group's ranges of gloo
// (kCollectivePayload), as far as they are known. Older traces have no such key.
inline constexpr std::string_view kGroupsMark = "groups";
inline constexpr RowFields kGroupsRow{"name description backend ranks size contexts"};

// In kModuleDomain: objects. Amounts are {"float32": [elements, bytes]}, experts {"4": elements} by
// how many ranks share them out; keys of which there is nothing are left out. again: true where the
// module was told before, by a root that ran before any optimizer stepped.
inline constexpr std::string_view kTreeMark = "tree";
inline constexpr RowFields kTreeRow{
    "module class extra all experts expert_tensors_split parameters buffers gradients states "
    "again"};

}  // namespace ranktap::proto
