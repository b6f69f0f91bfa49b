// What a step of a run is made of, by name, with its time in each step: what two runs are compared
// by. A part of run_diff.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collector/trace/run.h"

namespace ranktap::collector {

enum class SampleKind : uint8_t {
  kStep,
  kCause,  // the waterfall's; with kHost they add up to the step
  kHost,   // its cause of this name, by place
  kPhase,  // of a rank with a device: what its host does meanwhile
  kKernel,
  kLine,    // of the program, in Python: where samples found the main thread
  kModule,  // these three without those of their kind within
  kRange,   // the program's own
  kOperator,
};
inline constexpr size_t kSampleKinds = 9;
const char* NameOf(SampleKind kind);

// Operators and modules are recorded in windows only.
constexpr bool IsOfWindows(SampleKind kind) {
  return kind == SampleKind::kModule || kind == SampleKind::kOperator;
}

// One thing in one run: its time in each step of each rank that recorded things of its kind.
struct Samples {
  std::vector<double> ns;
  int64_t calls = 0;
  std::vector<int64_t> ids;  // of names that differ in a number, and share the row
};
using SampleKey = std::pair<SampleKind, std::string>;

struct RunSamples {
  std::map<SampleKey, Samples> by_key;
  std::array<size_t, kSampleKinds> steps{};  // of all ranks, by kind
  bool has_steps = true;                     // false: some rank's whole trace is one
  size_t steps_of(SampleKind kind) const { return steps[static_cast<size_t>(kind)]; }
};

// tells_waiting: of both runs (claims/transfer.h), so that one thing has one name in them.
RunSamples SampleRun(const Run& run, bool tells_waiting);

// Ranges "batch 17" and "batch 18" become one "batch N", where no two of the names come in one step
// of a rank: a number that names a layer comes in each.
void JoinNumberedRanges(RunSamples* a, RunSamples* b);

// An edit moves the lines below it: those of a function that are gone from `a` get the number that
// they have in `b`, if one distance brings most of their time together.
void JoinMovedLines(RunSamples* a, RunSamples* b);

}  // namespace ranktap::collector
