// Small graphs whose replay after a change is known by hand: each kind of edge alone, and each two
// of them together.
#include "collector/facts/replay/timed_graph.h"

#include <gtest/gtest.h>

#include <string>

#include "collector/facts/replay/host_lane.h"
#include "tests/unit/collector/nanoseconds.h"

namespace ranktap::collector {
namespace {

constexpr size_t kWaited = kEdgeKinds - 1;  // without kOtherWorkers

int64_t EndOf(const TimedGraph& graph, const GraphEdit& edit, uint32_t node) {
  return Replay(graph, edit).end[node];
}

TEST(TimedGraph, AnEdgeOfEachKindLetsItsWorkBeginEarlierByWhatTheWorkBeforeNoLongerTakes) {
  for (size_t kind = 0; kind < kWaited; ++kind) {
    SCOPED_TRACE(NameOf(static_cast<EdgeKind>(kind)));
    GraphBuilder builder;
    const uint32_t before = builder.AddNode(NodeKind::kHost, 0, 0, 0, 40 * kUs);
    const uint32_t after = builder.AddNode(NodeKind::kWork, 0, 0, 47 * kUs, 10 * kUs);
    builder.AddEdge(before, after, static_cast<EdgeKind>(kind), 5 * kUs);
    const TimedGraph graph = std::move(builder).Seal();
    EXPECT_EQ(graph.gap[after], 2 * kUs);
    GraphEdit edit(graph);
    EXPECT_EQ(EndOf(graph, edit, after), 57 * kUs);
    edit.share[before] = 0.5;  // 20 + 5 + the gap of 2 + 10
    EXPECT_EQ(EndOf(graph, edit, after), 37 * kUs);
    edit.share[after] = 0;
    EXPECT_EQ(EndOf(graph, edit, after), 27 * kUs);
  }
}

TEST(TimedGraph, OfTwoEdgesTheLaterOneLetsWorkBegin) {
  for (size_t one = 0; one < kWaited; ++one) {
    for (size_t other = 0; other < kWaited; ++other) {
      SCOPED_TRACE(std::to_string(one) + " and " + std::to_string(other));
      GraphBuilder builder;
      const uint32_t longer = builder.AddNode(NodeKind::kHost, 0, 0, 0, 40 * kUs);
      const uint32_t shorter = builder.AddNode(NodeKind::kHost, 1, 0, 0, 30 * kUs);
      const uint32_t after = builder.AddNode(NodeKind::kWork, 0, 0, 40 * kUs, 10 * kUs);
      builder.AddEdge(longer, after, static_cast<EdgeKind>(one));
      builder.AddEdge(shorter, after, static_cast<EdgeKind>(other), 2 * kUs);
      const TimedGraph graph = std::move(builder).Seal();
      GraphEdit edit(graph);
      edit.share[longer] = 0.25;  // 10, so that 32 binds
      const Replayed replayed = Replay(graph, edit);
      EXPECT_EQ(replayed.end[after], 42 * kUs);
      EXPECT_EQ(graph.from[replayed.last_edge[after]], shorter);
      edit.without[replayed.last_edge[after]] = true;
      EXPECT_EQ(EndOf(graph, edit, after), 20 * kUs);
    }
  }
}

TEST(TimedGraph, AnEdgeThatTheTraceContradictsIsCountedAndLeftOut) {
  GraphBuilder builder;
  const uint32_t before = builder.AddNode(NodeKind::kWork, 0, 0, 0, 40 * kUs);
  const uint32_t after = builder.AddNode(NodeKind::kWork, 0, 0, 30 * kUs, 10 * kUs);
  builder.AddEdge(before, after, EdgeKind::kStream);
  const TimedGraph graph = std::move(builder).Seal();
  EXPECT_EQ(graph.violated[static_cast<size_t>(EdgeKind::kStream)], 1u);
  EXPECT_EQ(EndOf(graph, GraphEdit(graph), after), 40 * kUs);
}

TEST(TimedGraph, ACircleIsSeen) {
  GraphBuilder builder;
  const uint32_t one = builder.AddNode(NodeKind::kHost, 0, 0, 0, 0);
  const uint32_t other = builder.AddNode(NodeKind::kHost, 1, 0, 0, 0);
  builder.AddEdge(one, other, EdgeKind::kMeeting);
  builder.AddEdge(other, one, EdgeKind::kMeeting);
  EXPECT_TRUE(std::move(builder).Seal().has_cycle);
}

TEST(TimedGraph, ASeriesOfEdgesIsTheSameAsItsEdgesAlone) {
  const auto graph_of = [](bool in_series) {
    GraphBuilder builder;
    for (int64_t i = 0; i < 3; ++i) builder.AddNode(NodeKind::kWork, 0, 0, i * 10 * kUs, 8 * kUs);
    const uint32_t host = builder.AddNode(NodeKind::kHost, 0, 0, 0, 5 * kUs);
    if (in_series) {
      builder.AddSeries({0, 3, EdgeKind::kStream, {kNone, 0, 1}, {0, 1'000, 500}});
      builder.AddSeries({2, 1, EdgeKind::kLaunch, {host}, {}});
    } else {
      builder.AddEdge(1, 2, EdgeKind::kStream, 500);
      builder.AddEdge(host, 2, EdgeKind::kLaunch);
      builder.AddEdge(0, 1, EdgeKind::kStream, 1'000);
    }
    return std::move(builder).Seal();
  };
  const TimedGraph series = graph_of(true), alone = graph_of(false);
  EXPECT_EQ(series.first_edge, alone.first_edge);
  EXPECT_EQ(series.from, alone.from);
  EXPECT_EQ(series.lag, alone.lag);
  EXPECT_EQ(series.edge_kind, alone.edge_kind);
  EXPECT_EQ(series.gap, alone.gap);
  EXPECT_EQ(series.order.size(), 4u);
}

TEST(HostLane, ALaunchIsAPointAndOneThatComesTooLateIsNone) {
  GraphBuilder builder;
  HostLane lane(0, 3);
  const uint32_t wait = lane.AddWait(6 * kUs, 9 * kUs);
  const uint32_t before = lane.AddLaunch(4 * kUs), within = lane.AddLaunch(7 * kUs);
  EXPECT_EQ(lane.AddLaunch(5 * kUs), kNone);
  lane.Build(0, 20 * kUs, &builder);
  const TimedGraph graph = std::move(builder).Seal();
  EXPECT_EQ(graph.end(lane.Launching(before)), 4 * kUs);
  EXPECT_EQ(lane.Launching(within), lane.After(wait));
  EXPECT_EQ(lane.nodes().size(), 4u);  // to 4, to 6, the return, to 20
}

TEST(HostLane, AWaitEndsWithWhatItWaitsForAndNoEarlierThanItBegins) {
  GraphBuilder builder;
  HostLane lane(0, 3);
  const uint32_t point = lane.AddPoint(4 * kUs);
  const uint32_t wait = lane.AddWait(6 * kUs, 9 * kUs);
  lane.Build(0, 20 * kUs, &builder);
  const uint32_t work = builder.AddNode(NodeKind::kWork, 0, 0, 4 * kUs, 5 * kUs);
  builder.AddEdge(lane.Before(point), work, EdgeKind::kLaunch);
  builder.AddEdge(work, lane.After(wait), EdgeKind::kReturn);
  const uint32_t last = lane.nodes().back();
  const TimedGraph graph = std::move(builder).Seal();
  GraphEdit edit(graph);
  EXPECT_EQ(EndOf(graph, edit, last), 20 * kUs);
  edit.share[work] = 0.8;  // done at 8
  EXPECT_EQ(EndOf(graph, edit, last), 19 * kUs);
  edit.share[work] = 0;  // done at 4, and the thread comes to the wait at 6
  EXPECT_EQ(EndOf(graph, edit, last), 17 * kUs);
}

}  // namespace
}  // namespace ranktap::collector
