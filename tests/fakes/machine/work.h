// One thing a stream is asked to do: what it is, how long it takes, and its effect on memory.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

struct Event;
struct Graph;

enum class WorkKind : uint8_t {
  kOperation,     // a kernel, copy or memset: `operation` says which
  kHostFunction,  // takes kHostFunctionNs of device time, whatever it does
  kEventRecord,
  kEventWait,
  kEmpty,
  kChildGraph,
};

inline constexpr uint64_t kHostFunctionNs = 10'000;

struct Work {
  WorkKind kind = WorkKind::kOperation;
  Operation operation;
  uint64_t duration_ns = 0;
  // Moves the bytes, or calls the host function. May be empty.
  std::function<void()> effect;
  Event* event = nullptr;  // of kEventRecord and kEventWait
  Graph* child = nullptr;  // of kChildGraph
};

}  // namespace ranktap::standin
