// One thing that costs a run time, what it costs, and what to do about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

constexpr uint32_t BitOf(Cause cause) { return 1u << static_cast<uint32_t>(cause); }

// Nothing runs on any device of the rank, and capture was on.
inline constexpr uint32_t kIdleCauses = BitOf(Cause::kCheckpoint) | BitOf(Cause::kCollection) |
                                        BitOf(Cause::kDataLoading) | BitOf(Cause::kCapture) |
                                        BitOf(Cause::kSync) | BitOf(Cause::kHost) |
                                        BitOf(Cause::kLatency) | BitOf(Cause::kDependency);

// The time that would go if the advice were followed. The engine (find_insights.h) counts of it
// only what the critical path bears in counted steps, so a rule may name all that it sees.
struct Saving {
  std::vector<Interval> moments;  // of the rank's clock, in any order
  uint32_t causes = 0;            // BitOf()s: of the moments those that are lost to these
  double share = 1;               // of what is left
  int64_t most_ns = INT64_MAX;    // per step
};

struct Insight {
  // A rule sets these.
  uint32_t trace = 0;       // index into Run::traces; of a rule about a rank the engine does
  uint32_t device = kNone;  // where one alone is meant
  std::string finding;      // one sentence: numbers with units, true as it stands
  std::string where;        // "aten::item at train.py(31): step"; empty: not known, or nowhere
  std::string advice;       // empty: the rule's own (rules.h)
  int64_t count = 0;        // how often it happened in counted steps
  int64_t lost_ns = 0;      // per step, on this rank, whether the critical path bears it or not
  std::optional<Saving> saving;  // none: cannot be worked out from a trace

  // The engine sets these.
  std::string_view rule;
  std::optional<int64_t> saving_ns;  // per step; at most lost_ns
  int64_t most_ns = INT64_MAX;       // of the saving, which is moved out
  int64_t ranks = 1;                 // with the same finding at the same place
};

// A rule's answer about one rank, or about the job.
struct Answer {
  std::vector<Insight> insights;
  // Why the trace cannot tell, "no kernels are recorded": the rule was not checked.
  std::string_view unknown;
};

inline Answer CannotTell(std::string_view why) { return {.insights = {}, .unknown = why}; }

}  // namespace ranktap::collector
