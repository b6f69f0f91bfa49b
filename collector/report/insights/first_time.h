// What a process pays once: contexts, code that is loaded or compiled, and first calls that search
// or set up. A part of the rules about the host.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/report/insights/insight.h"
#include "collector/report/insights/rank_facts.h"

namespace ranktap::collector {

// By the name of a call of CUDA or HIP.
bool LoadsCode(std::string_view api);
// By the name of a range, an operator or a Python function: one that comes with compilation alone.
bool Compiles(std::string_view name);

enum class FirstTime : uint8_t { kContext, kLoading, kCompiling, kFirstCall };
inline constexpr size_t kFirstTimes = 4;

struct FirstTimeCosts {
  std::vector<Interval> idle;                  // merged: no device runs anything meanwhile
  std::array<int64_t, kFirstTimes> by_kind{};  // of the idle time
  std::map<std::string, int64_t> by_name;      // of the idle time, "cuModuleLoadData"
  int64_t ns() const { return Length(idle); }
  FirstTime Most() const;
};

// Of counted steps, in the idle time of the rank's devices. Each moment is of one kind: of a call
// inside of another the inner.
FirstTimeCosts FirstTimeCostsOf(const RankFacts& rank);

// What to do about the kind with most of it.
std::string_view AdviceOn(FirstTime kind);

}  // namespace ranktap::collector
