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
  bool in_no_pass = false;  // after an optimizer began and before the next module did
};

// A row for each of trace.operators. A forward belongs to the innermost module open on its thread;
// a backward to the module of the forward that has its autograd sequence number; a module that runs
// inside of an autograd node recomputes (activation checkpointing).
std::vector<OpPlace> PlaceOperators(const Trace& trace);

}  // namespace ranktap::collector
