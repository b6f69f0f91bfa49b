// Asks all rules about a run, and bounds what each promises to save.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/report/insights/insight.h"
#include "collector/report/insights/rules.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct Insights {
  std::vector<Insight> list;  // the largest saving first
  struct Unchecked {
    std::string_view rule, why;
  };
  std::vector<Unchecked> unchecked;  // on no rank
  size_t checked = 0;                // rules
  size_t left_out = 0;               // findings of rules that fire at many places
  std::string no_savings;            // why none is known
};

// Findings of one rule at one place are one, whatever the number of ranks: the rank that loses most
// is named.
Insights FindInsights(const Run& run, std::span<const InsightRule> rules = AllInsightRules());

// All rules, asked once and kept in the run's memo.
const Insights& InsightsOf(const Run& run);

// The verdict may begin with one of these. Rules that have `of_compute` or `of_host` find them: a
// run whose insights nobody reads pays for no others. The largest saving first; kept in the memo.
const std::vector<Insight>& InsightsForVerdict(const Run& run);

}  // namespace ranktap::collector
