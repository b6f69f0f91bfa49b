// What a person asks of a run that has not been changed: "and if this took half its time?"
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collector/facts/replay/job_graph.h"
#include "collector/file/result.h"

namespace ranktap::collector {

struct Change {
  enum class Kind : uint8_t {
    kKernel,   // work of devices, by a shell's pattern of its name
    kModule,   // a module and all below it, in both passes
    kHost,     // what the threads of steps ran
    kLine,     // a line of the program and all that it calls, by samples
    kData,     // making batches
    kWorkers,  // the loaders that steps waited for have `factor` workers
    kComm,     // moving data between ranks; waiting for a rank stays
    kRank,     // one rank does each thing as the median of the others
  };
  Kind kind = Kind::kHost;
  std::string what;   // pattern, module, "train.py:93", rank
  double factor = 0;  // of the time; none of kRank
};

// What nobody measured: whether a module's part of the optimizer changes with it.
enum class Doubt : uint8_t { kMiddle, kLeast, kMost };

// "module blocks.2 x0.5"
std::string Describe(const Change& change);

// Multiplies what the change touches. A failure says what the run does not have.
std::optional<Failure> ApplyChange(const Run& run, const Change& change, Doubt doubt,
                                   GraphEdit* edit);

}  // namespace ranktap::collector
