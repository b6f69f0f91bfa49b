#include "collector/facts/graph_nodes.h"

#include <gtest/gtest.h>

#include "collector/trace/model.h"

namespace ranktap::collector {
namespace {

using proto::ResourceChange;

class GraphNodesTest : public testing::Test {
 protected:
  void AddCall(uint16_t writer, int64_t start, int64_t end, uint32_t api, uint32_t stack) {
    ApiCalls& calls = trace_.api_calls;
    calls.start.push_back(start);
    calls.end.push_back(end);
    calls.correlation.push_back(static_cast<uint32_t>(calls.size()));
    calls.api.push_back(api);
    calls.writer.push_back(writer);
    calls.stack.push_back(stack);
  }
  void AddRange(uint16_t writer, int64_t start, int64_t end, uint32_t name) {
    Ranges& ranges = trace_.ranges;
    ranges.start.push_back(start);
    ranges.end.push_back(end);
    ranges.name.push_back(name);
    ranges.domain.push_back(0);
    ranges.writer.push_back(writer);
    ranges.depth.push_back(0);
    ranges.kind.push_back(0);
  }
  void AddNode(uint16_t writer, ResourceChange change, int64_t time, uint64_t id,
               uint64_t parent = 0) {
    proto::ResourceEvent event{};
    event.time_ticks = static_cast<uint64_t>(time);
    event.id = id;
    event.parent = parent;
    event.change = change;
    event.header.text_bytes = writer;
    trace_.resources.push_back(event);
  }

  Trace trace_;
};

TEST_F(GraphNodesTest, ANodeIsOfTheCallOnItsOwnThreadAndOfTheInnermostRange) {
  AddCall(1, 100, 110, 5, 50);
  AddCall(1, 200, 210, 6, 60);
  AddCall(2, 90, 300, 7, 70);  // another thread waits meanwhile
  AddRange(1, 0, 1000, 1);
  AddRange(1, 150, 160, 2);  // over by then
  AddRange(1, 190, 250, 3);
  AddRange(2, 0, 1000, 4);
  AddNode(1, ResourceChange::kNodeCreated, 105, 11);
  AddNode(1, ResourceChange::kNodeCreated, 205, 12);
  const GraphNode* first = FindGraphNode(trace_, 11);
  const GraphNode* second = FindGraphNode(trace_, 12);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(first->stack, 50u);
  EXPECT_EQ(first->range, 1u);
  EXPECT_EQ(second->api, 6u);
  EXPECT_EQ(second->range, 3u);
}

TEST_F(GraphNodesTest, ACloneOfACloneIsWhatTheOriginalIs) {
  AddCall(1, 100, 110, 5, 50);
  AddNode(1, ResourceChange::kNodeCreated, 105, 11);
  AddNode(1, ResourceChange::kNodeCloned, 120, 21, 11);
  AddNode(2, ResourceChange::kNodeCloned, 130, 31, 21);
  ASSERT_NE(FindGraphNode(trace_, 31), nullptr);
  EXPECT_EQ(FindGraphNode(trace_, 31)->stack, 50u);
}

TEST_F(GraphNodesTest, ACopyThatIsToldAsMadeAndThenAsACloneIsWhatTheOriginalIs) {
  AddCall(1, 100, 110, 5, 50);
  AddRange(1, 120, 200, 1);
  AddNode(1, ResourceChange::kNodeCreated, 105, 11);
  AddNode(1, ResourceChange::kNodeCreated, 130, 21);
  AddNode(1, ResourceChange::kNodeCloned, 131, 21, 11);
  ASSERT_NE(FindGraphNode(trace_, 21), nullptr);
  EXPECT_EQ(FindGraphNode(trace_, 21)->stack, 50u);
  EXPECT_FALSE(FindGraphNode(trace_, 21)->has_range);
}

TEST_F(GraphNodesTest, ANodeMadeOutsideOfAnyRecordedCallSaysSo) {
  AddCall(1, 100, 110, 5, 50);
  AddNode(1, ResourceChange::kNodeCreated, 150, 11);
  ASSERT_NE(FindGraphNode(trace_, 11), nullptr);
  EXPECT_FALSE(FindGraphNode(trace_, 11)->has_call);
  EXPECT_FALSE(FindGraphNode(trace_, 11)->has_range);
  EXPECT_EQ(FindGraphNode(trace_, 99), nullptr);
}

}  // namespace
}  // namespace ranktap::collector
