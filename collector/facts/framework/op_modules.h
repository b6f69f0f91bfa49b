// To which module, and to which pass, each operator belongs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

enum class Pass : uint8_t { kForward, kBackward, kRecompute };
inline constexpr size_t kPasses = 3;

struct OpPlace {
  uint32_t module = 0;  // Dictionary::String, Root.path; 0: in none
  Pass pass = Pass::kForward;
  // After an optimizer began and before the next module did, or of a collective that nobody known
  // started.
  bool in_no_pass = false;
  bool in_evaluation = false;  // of a forward that only evaluates (EvaluationForwards)
  bool of_collective = false;  // torch.distributed's call, gloo's part of it, or what these call
};

// A row for each of trace.operators. A forward belongs to the innermost module open on its thread;
// a backward to the module of the forward that has its autograd sequence number; a module that runs
// inside of an autograd node recomputes (activation checkpointing). A collective that accumulating
// a gradient starts (DistributedDataParallel) belongs to the module whose backward ran last before;
// what gloo does on its own threads, to the call that started it.
std::vector<OpPlace> PlaceOperators(const Trace& trace);

}  // namespace ranktap::collector
