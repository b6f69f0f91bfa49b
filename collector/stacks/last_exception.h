// The exception that has ended a program's main thread, in a process that other threads keep: where
// Python has left it, in sys.last_value. From Python 3.11 on; before, there is none.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/python_frames.h"

namespace ranktap::collector {

struct LastException {
  std::string type;     // "ValueError"
  std::string message;  // where it is the exception's only text
  // The traceback's, the innermost first, with the lines.
  std::vector<std::pair<proto::PythonCode, uint32_t>> frames;
};

// `frames` reads the same memory. Texts are as the process has them.
std::optional<LastException> ReadLastException(proto::MemoryReader& memory,
                                               const proto::PythonPlace& place,
                                               const proto::PythonLayout& layout,
                                               proto::PythonFrames* frames);

}  // namespace ranktap::collector
