// The rules of insights: the table of contents of collector/report/insights/rules.
#pragma once

#include <span>
#include <string_view>

#include "collector/report/insights/insight.h"
#include "collector/report/insights/rank_facts.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Pure. A rule about a rank is asked by several threads, each about another rank.
using RankRule = Answer (*)(const RankFacts& rank);
using JobRule = Answer (*)(const Run& run);

struct InsightRule {
  std::string_view name;    // as in the table
  std::string_view advice;  // one sentence
  // One of the two.
  RankRule of_rank = nullptr;
  JobRule of_job = nullptr;
  std::string_view nsys = {};  // what `nsys analyze` calls it
  // The report that shows its evidence, with options: "kernels --sort calls". Empty: none does.
  std::string_view evidence = {};
  // What it saves is computation, which is no loss of the verdict's.
  bool of_compute = false;
  // It took the main thread's CPU, or held it up where no phase shows why: the verdict begins with
  // it where it takes much.
  bool of_host = false;
};

std::span<const InsightRule> AllInsightRules();

}  // namespace ranktap::collector
