// at::RecordFunction, as far as we register callbacks with it: ATen/record_function.h, the same
// from PyTorch 1.11 to 2.15. Runs on: see torch_operators.h and torch_labels.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "agent/core/writer.h"
#include "agent/sources/torch/torch_signature.h"

namespace ranktap::agent {

// at::ObserverContext: what a start hands to its end.
struct RecordContext {
  virtual ~RecordContext() = default;
};
using RecordStart = std::unique_ptr<RecordContext> (*)(const void* function);
using RecordEnd = void (*)(const void* function, RecordContext* context);

// Passed by value, in memory.
struct RecordCallback {
  RecordStart start;
  RecordEnd end;
  double probability = 1.0;
  std::array<bool, 10> scopes{};
  bool needs_inputs = true;
  bool needs_outputs = false;
  bool needs_ids = false;
};
static_assert(sizeof(RecordCallback) == 40);

enum RecordScope : uint8_t { kFunction = 0, kBackward = 1, kScript = 2, kUser = 7 };

using AddRecordCallback = uint64_t (*)(RecordCallback callback);
using RemoveRecordCallback = void (*)(uint64_t handle);
using RecordName = const char* (*)(const void* function);

// The event's name for what at::RecordFunction::name() returned.
EventNameRef NameOfRecord(ThreadState& thread, const char* text);

}  // namespace ranktap::agent
