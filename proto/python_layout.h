// Where CPython keeps its threads, frames and code objects. 3.9 to 3.12 by a table, compiled from
// each version's headers for x86-64; 3.13 to 3.15 by the table of offsets that their runtime
// begins with. A version that is in neither is refused: a wrong offset reads as a wrong line.
// Runs on: the sampler; in the collector.  May not: allocate.
#pragma once

#include <cstdint>
#include <string_view>

#include "proto/process_memory.h"

namespace ranktap::proto {

// Where CPython lies in the process. 0: not known.
struct PythonPlace {
  uint64_t runtime = 0;            // _PyRuntime
  uint64_t runtime_bytes = 0;      // its size, by the symbol table
  uint64_t code_type = 0;          // PyCode_Type
  uint32_t version = 0;            // as PY_VERSION_HEX: 0x030b02f0
  bool counts_references = false;  // _Py_NegativeRefcount is there: a debug build
};

enum class GilPlace : uint8_t {
  kInRuntime,  // the lock is part of the runtime
  kByPointer,  // behind the interpreter's pointer
};

// Offsets in bytes.
struct PythonLayout {
  uint16_t minor;
  uint32_t interpreters, next_interpreter,
      threads;                                   // the second in PyInterpreterState, the third too
  uint32_t next_thread, pthread, native_thread;  // native_thread 0: not kept
  uint32_t frame,
      frame_in_cframe;  // of the innermost frame; kDirect: `frame` is the pointer itself
  uint32_t chunk;       // of the thread's datastack_chunk; 0: frames are objects
  uint32_t code, previous, instruction, owner;  // in a frame
  uint32_t frame_bytes;
  uint32_t filename, name, qualname, first_line, line_table, instructions;  // in a code object
  uint32_t text;  // of an ASCII string's bytes
  GilPlace gil_place;
  uint32_t gil;  // of the lock in the runtime, or of ceval.gil in PyInterpreterState
  uint8_t entry_owner, last_owner;  // an owner from the first on: a frame without code of its own
};
inline constexpr uint32_t kDirect = UINT32_MAX;

// Nothing in the error: `layout` is filled. Else a sentence that says why this Python is not read.
std::string_view FindPythonLayout(MemoryReader& memory, const PythonPlace& place,
                                  PythonLayout* layout);

}  // namespace ranktap::proto
