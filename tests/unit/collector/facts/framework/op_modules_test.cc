// To which pass and module operators belong: collectives that DistributedDataParallel starts.
#include "collector/facts/framework/op_modules.h"

#include <gtest/gtest.h>

#include <string>

#include "collector/facts/framework/backward_spans.h"
#include "collector/facts/framework/gloo_starters.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/operator_join.h"
#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

constexpr uint8_t kNode = 1;
constexpr uint16_t kMain = 0, kWorker = 1;

// The forward of two modules, and their backwards: each node's gradient is accumulated after it,
// which starts an all-reduce of the second module's and then of the first one's. gloo runs both.
class DataParallelStep {
 public:
  DataParallelStep() {
    Trace& trace = program_->trace();
    trace.writers.emplace_back().thread = 101;
    program_->AddRange(kModuleDomain, "Net.first", 0, 90);
    program_->AddRange(kModuleDomain, "Net.second", 100, 190);
    Add("aten::mm", 10, 20, kMain, 1);
    Add("aten::mm", 110, 120, kMain, 2);
    second_ = AddBackward(300, 2, "MmBackward0");
    first_ = AddBackward(400, 1, "MmBackward1");
    gloo_first_ = Add("gloo:all_reduce", 1000, 1100, kWorker, 0);
    inside_ = Add("aten::copy_", 1010, 1020, kWorker, 0);
    gloo_second_ = Add("gloo:all_reduce", 1200, 1300, kWorker, 0);
    NestOperators(&trace);
  }

  Trace& trace() { return program_->trace(); }
  uint32_t second() const { return second_; }
  uint32_t first() const { return first_; }
  uint32_t gloo_first() const { return gloo_first_; }
  uint32_t gloo_second() const { return gloo_second_; }
  uint32_t inside() const { return inside_; }
  // The row of what the reducer does in the same call of backward(), once all nodes have run.
  uint32_t AddAtEndOfBackward() {
    program_->AddRange(proto::kPhaseDomain, proto::kBackwardPhase, 290, 500);
    return Add("torch.distributed.ddp.reducer::copy_bucket_to_grad", 480, 490, kMain, 0);
  }
  std::string ModuleOf(const OpPlace& place) {
    return std::string(trace().dictionary.String(place.module));
  }

 private:
  uint32_t Add(std::string_view name, int64_t start, int64_t end, uint16_t writer,
               uint64_t sequence, uint8_t scope = 0) {
    program_->AddOperator(name, start, end);
    Operators& ops = trace().operators;
    const auto row = static_cast<uint32_t>(ops.size() - 1);
    ops.writer[row] = writer;
    ops.sequence.PadTo(ops.size());
    ops.sequence[row] = sequence;
    ops.scope.PadTo(ops.size());
    ops.scope[row] = scope;
    return row;
  }
  // The row of the call that starts the collective.
  uint32_t AddBackward(int64_t start, uint64_t sequence, std::string_view node) {
    Add(node, start, start + 20, kMain, sequence, kNode);
    Add("torch::autograd::AccumulateGrad", start + 30, start + 60, kMain, 0, kNode);
    return Add("c10d::allreduce_", start + 40, start + 50, kMain, 0);
  }

  InsightProgram program_;
  uint32_t second_ = 0, first_ = 0, gloo_first_ = 0, gloo_second_ = 0, inside_ = 0;
};

TEST(OpModules, ACollectiveThatTheBackwardStartsIsOfTheModuleWhoseGradientsItReduces) {
  DataParallelStep step;
  const std::vector<OpPlace> places = PlaceOperators(step.trace());
  for (const uint32_t op : {step.second(), step.gloo_first()}) {
    EXPECT_EQ(places[op].pass, Pass::kBackward);
    EXPECT_EQ(step.ModuleOf(places[op]), "Net.second");
  }
  for (const uint32_t op : {step.first(), step.gloo_second()}) {
    EXPECT_EQ(places[op].pass, Pass::kBackward);
    EXPECT_EQ(step.ModuleOf(places[op]), "Net.first");
  }
}

TEST(OpModules, WhatGlooRunsInsideOfACollectiveIsOfItsModuleAndPass) {
  DataParallelStep step;
  const std::vector<OpPlace> places = PlaceOperators(step.trace());
  EXPECT_EQ(places[step.inside()].pass, Pass::kBackward);
  EXPECT_EQ(step.ModuleOf(places[step.inside()]), "Net.second");
}

TEST(OpModules, ACollectiveOfGloosWhoseStartIsNotRecordedIsOfNoPass) {
  DataParallelStep step;
  Operators& ops = step.trace().operators;
  ops.name[step.second()] = ops.name[step.first()] = ops.name[0];
  const std::vector<OpPlace> places = PlaceOperators(step.trace());
  EXPECT_TRUE(places[step.gloo_first()].in_no_pass);
  EXPECT_TRUE(places[step.gloo_second()].in_no_pass);
}

TEST(OpModules, ACallWhoseCollectiveAWindowCutOffTakesNoLaterOne) {
  DataParallelStep step;
  Operators& ops = step.trace().operators;
  ops.name[step.gloo_first()] = ops.name[0];
  EXPECT_EQ(GlooStarters(step.trace())[step.gloo_second()], step.first());
}

TEST(OpModules, WhatBackwardRunsAfterItsLastNodeIsOfTheBackwardPass) {
  DataParallelStep step;
  const uint32_t reducer = step.AddAtEndOfBackward();
  EXPECT_EQ(PlaceOperators(step.trace())[reducer].pass, Pass::kBackward);
}

TEST(OpModules, CollectivesAreInNoModulesBackward) {
  DataParallelStep step;
  for (const BackwardSpan& span : BackwardSpans(step.trace())) {
    EXPECT_EQ(span.writer, kMain);
    EXPECT_EQ(span.end - span.start, 20);
  }
}

}  // namespace
}  // namespace ranktap::collector
