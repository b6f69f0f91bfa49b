// Each rule by what it finds. A part of rules.h.
#pragma once

#include "collector/report/insights/insight.h"
#include "collector/report/insights/rank_facts.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

Answer FindLaunchBound(const RankFacts& rank);
Answer FindTinyKernels(const RankFacts& rank);
Answer FindTinyOperators(const RankFacts& rank);
Answer FindTensorReads(const RankFacts& rank);
Answer FindPageableCopies(const RankFacts& rank);
Answer FindBlockingCopies(const RankFacts& rank);
Answer FindBlockingMemsets(const RankFacts& rank);
Answer FindExplicitSyncs(const RankFacts& rank);
Answer FindGpuGaps(const RankFacts& rank);
Answer FindLowUtilization(const RankFacts& rank);
Answer FindCommOnComputeStream(const RankFacts& rank);
Answer FindSmallCollectives(const RankFacts& rank);
Answer FindExposedComm(const RankFacts& rank);
Answer FindDataLoading(const RankFacts& rank);
Answer FindStraggler(const Run& run);
Answer FindSlowClock(const Run& run);
Answer FindDefaultStream(const RankFacts& rank);

Answer FindCopiesAfterStep(const RankFacts& rank);
Answer FindNoTensorCores(const RankFacts& rank);
Answer FindOffMultipleShapes(const RankFacts& rank);
Answer FindTf32Off(const RankFacts& rank);
Answer FindUnfusedOptimizer(const RankFacts& rank);
Answer FindLayoutTransposes(const RankFacts& rank);
Answer FindUnsearchedConvolutions(const RankFacts& rank);
Answer FindMemoryBoundOperators(const RankFacts& rank);
Answer FindProductsBelowRoof(const RankFacts& rank);
Answer FindUnfusedAttention(const RankFacts& rank);
Answer FindGarbageCollection(const RankFacts& rank);
Answer FindAllocationsInSteps(const RankFacts& rank);
Answer FindMemoryFragmentation(const RankFacts& rank);
Answer FindMemoryGrowth(const RankFacts& rank);
Answer FindRecompilation(const RankFacts& rank);
Answer FindFirstTimeCosts(const RankFacts& rank);
Answer FindThrottling(const RankFacts& rank);
Answer FindUnbalancedShards(const Run& run);
Answer FindCheckpointStalls(const RankFacts& rank);
Answer FindUnevenLengths(const Run& run);
Answer FindHiddenCopies(const RankFacts& rank);
Answer FindAnomalyMode(const RankFacts& rank);
// By the program's own settings, and without a device.
bool AreMoreThreadsThanCpus(const RankFacts& rank);
Answer FindTooManyThreads(const RankFacts& rank);
Answer FindDoubleProducts(const RankFacts& rank);
Answer FindProfilerOverhead(const RankFacts& rank);
Answer FindCpuThrottled(const RankFacts& rank);
Answer FindDescheduled(const RankFacts& rank);
Answer FindFarNuma(const RankFacts& rank);
Answer FindPageFaults(const RankFacts& rank);
Answer FindGilContention(const RankFacts& rank);
Answer FindSlowRead(const RankFacts& rank);

}  // namespace ranktap::collector
