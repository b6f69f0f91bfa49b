// Backward passes of modules, of operators whose modules are planted.
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "collector/facts/framework/backward_spans.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/operator_join.h"

namespace ranktap::collector {
namespace {

// Two modules run one after the other on thread 0; thread 1 runs their backwards, the later first.
TEST(BackwardSpans, AModuleHasOneFromItsFirstOperatorToItsLast) {
  Trace trace;
  trace.writers.resize(2);
  constexpr uint16_t kModules = 1;
  v1::Dictionary names;
  names.add_nvtx_domains()->set_id(kModules);
  names.mutable_nvtx_domains(0)->set_text(std::string(kModuleDomain));
  const std::string bytes = names.SerializeAsString();
  ASSERT_TRUE(trace.dictionary.Add(std::as_bytes(std::span(bytes))));
  const uint32_t modules[] = {trace.dictionary.AppendString("Net.first"),
                              trace.dictionary.AppendString("Net.second")};
  const uint32_t op = trace.dictionary.AppendString("aten::mm");
  const auto add_op = [&](int64_t start, int64_t end, uint16_t writer, uint64_t sequence,
                          uint8_t scope) {
    Operators& ops = trace.operators;
    ops.start.push_back(start);
    ops.end.push_back(end);
    ops.name.push_back(op);
    ops.writer.push_back(writer);
    ops.kind.push_back(static_cast<uint8_t>(OperatorKind::kOperator));
    ops.sequence.push_back(sequence + 1);
    ops.scope.push_back(scope);
  };
  for (int64_t m = 0; m < 2; ++m) {
    trace.ranges.start.push_back(100 * m);
    trace.ranges.end.push_back(100 * m + 90);
    trace.ranges.name.push_back(modules[m]);
    trace.ranges.domain.push_back(kModules);
    trace.ranges.writer.push_back(0);
    trace.ranges.depth.push_back(0);
    trace.ranges.kind.push_back(static_cast<uint8_t>(RangeKind::kPushPop));
    add_op(100 * m + 10, 100 * m + 20, 0, static_cast<uint64_t>(2 * m), 0);
    add_op(100 * m + 30, 100 * m + 40, 0, static_cast<uint64_t>(2 * m + 1), 0);
  }
  add_op(300, 320, 1, 3, 1);
  add_op(330, 340, 1, 2, 1);
  add_op(350, 360, 1, 1, 1);
  add_op(370, 390, 1, 0, 1);
  NestOperators(&trace);
  const std::vector<BackwardSpan> spans = BackwardSpans(trace);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].module, modules[1]);
  EXPECT_EQ(std::pair(spans[0].start, spans[0].end), std::pair(int64_t{300}, int64_t{340}));
  EXPECT_EQ(spans[1].module, modules[0]);
  EXPECT_EQ(std::pair(spans[1].start, spans[1].end), std::pair(int64_t{350}, int64_t{390}));
  EXPECT_EQ(spans[1].writer, 1);
}

}  // namespace
}  // namespace ranktap::collector
