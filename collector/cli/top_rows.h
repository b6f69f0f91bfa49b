// What `ranktap top` shows of the ranks: rates out of two looks at the same collectors, who is late
// and why, and who waits. Reads nothing by itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/cli/control.h"
#include "collector/report/table.h"

namespace ranktap::collector {

// One look. `at_ns`: when, by a clock that does not step.
struct TopLook {
  uint64_t at_ns = 0;
  std::vector<CollectorAnswer> answers;
};

struct TopRow {
  std::string job;
  v1::ProcessStatus process;
  // Shares of the time between two looks, 0 to 1; none: nothing tells.
  std::optional<double> busy, waits, data, checkpoint, compilation, collection, backward, optimizer;
  std::string cause;  // set: it is late, for this reason
  std::string line;   // where its main thread is; empty: not known
};

// By job, then the worst first: late ranks, those that the others wait for, those that wait least.
std::vector<TopRow> RowsOf(const TopLook& before, const TopLook& now);

// "3 of 4 ranks of job wait in gloo:allreduce, for 21 s; rank 2 is not in it", of each job where a
// wait is longer than T = max(20 s, 5 x the longest of the last steps), 120 s before a step ended.
std::vector<std::string> WaitSentences(const std::vector<TopRow>& rows);

enum class TopOrder : uint8_t { kWorst, kRank, kStep, kMemory };
void SortRows(TopOrder order, std::vector<TopRow>* rows);

// `spark`: steps that are drawn; `is_utf8`: as blocks, otherwise as digits.
Table TopTable(const std::vector<TopRow>& rows, size_t spark, bool is_utf8);

// The last `most` steps, each by its length: half as high as the highest is `usual`.
std::string Sparkline(const std::vector<uint64_t>& steps, size_t most, uint64_t usual,
                      bool is_utf8);

}  // namespace ranktap::collector
