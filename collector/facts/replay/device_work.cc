// Streams, their launches and events, and the host calls that return when a device has come to some
// point.
#include <algorithm>
#include <map>
#include <vector>

#include "collector/facts/collectives.h"
#include "collector/facts/device_order.h"
#include "collector/facts/replay/job_graph.h"
#include "collector/facts/replay/job_links.h"
#include "collector/facts/sync_calls.h"

namespace ranktap::collector {
namespace {

constexpr size_t kQueueLength = 1024;   // launches of a stream that CUDA keeps
constexpr int64_t kBlockedNs = 30'000;  // a launch that takes so long may have found it full

constexpr int64_t kFollowsNs = 5'000;      // work that begins so soon after other may wait for it
constexpr int64_t kStreamTakesNs = 2'000;  // between two pieces of work, at most

class DeviceWorkOf {
 public:
  DeviceWorkOf(uint32_t trace, JobLinks* links)
      : t_(trace),
        trace_(links->run().traces[trace]),
        links_(links),
        spans_(DeviceTimeline(trace_)),
        order_(trace_, TimedGraph::kClockNs),
        head_(spans_.size(), kNone),
        tail_(spans_.size(), kNone),
        blocks_(CallsThatSawTheirCopyEnd(trace_)) {
    const std::vector<bool> waits = ApisThatWait(trace_);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (waits[std::min<size_t>(trace_.api_calls.api[i], waits.size() - 1)]) blocks_[i] = true;
    }
  }

  void Add() {
    FindDelays();
    for (uint32_t i = 0; i < spans_.size(); ++i) AddNodes(i);
    std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> streams;
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      streams[{spans_[i].device, spans_[i].stream}].push_back(i);
    }
    for (const auto& [key, stream] : streams) {
      for (size_t place = 0; place < stream.size(); ++place) {
        if (place > 0) AddWorkEdge(stream[place - 1], stream[place], EdgeKind::kStream);
        AddLaunch(stream[place]);
        if (place > kQueueLength) AddQueue(stream[place - kQueueLength - 1], stream[place]);
      }
    }
    for (const auto& [work, awaited] : order_.EventWaits()) {
      AddWorkEdge(awaited, work, EdgeKind::kEvent);
    }
    AddUnrecordedWaits();
    AddReturns();
    links_->tails[t_] = std::move(tail_);
  }

 private:
  // A collective is two: until the last rank is there, and the rest.
  void AddNodes(uint32_t i) {
    const DeviceSpan& span = spans_[i];
    GraphBuilder& builder = links_->builder();
    const int64_t start = links_->At(t_, span.start), end = links_->At(t_, span.end);
    const bool is_kernel = span.table == DeviceSpan::Table::kKernel;
    const uint32_t meeting = is_kernel ? links_->MeetingOf(t_, span.row) : kNone;
    head_[i] = tail_[i] =
        builder.AddNode(NodeKind::kWork, t_, i, start, meeting == kNone ? end - start : 0);
    if (meeting == kNone) return;
    const int64_t since = std::clamp(builder.start(meeting), start, end);
    tail_[i] = builder.AddNode(NodeKind::kTransfer, t_, i, since, end - since);
    builder.AddEdge(head_[i], meeting, EdgeKind::kMeeting);
    builder.AddEdge(head_[i], tail_[i], EdgeKind::kStream);
    builder.AddEdge(meeting, tail_[i], EdgeKind::kMeeting);
  }

  void AddWorkEdge(uint32_t before, uint32_t after, EdgeKind kind) {
    const int64_t traced = std::max<int64_t>(spans_[after].start - spans_[before].end, 0);
    links_->builder().AddEdge(tail_[before], head_[after], kind, std::min(traced, between_));
  }
  int64_t Called(uint32_t span) const {
    const uint32_t launch = spans_[span].launch;
    return launch == kNone ? INT64_MIN : trace_.api_calls.start[launch];
  }

  bool FindsStreamFree(uint32_t span, int64_t at) const {
    const uint32_t before = order_.Before(span);
    return before == kNone || spans_[before].end <= at;
  }

  // What of a launch or a stream every piece of work takes: how long after the call it begins at
  // the earliest on a stream that has nothing to do, how far into its call a launch is usually
  // given away, and how long after the work before it the next begins that waited for that alone.
  void FindDelays() {
    std::vector<int64_t> floors, into, between;
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      const DeviceSpan& span = spans_[i];
      if (span.launch == kNone) continue;
      const int64_t called = Called(i);
      if (FindsStreamFree(i, called)) {
        if (span.start >= called) floors.push_back(span.start - called);
      } else if (span.start - called > 2 * kBlockedNs) {
        between.push_back(span.start - spans_[order_.Before(i)].end);
      }
    }
    if (!floors.empty()) {
      const auto at = floors.begin() + static_cast<std::ptrdiff_t>(floors.size() / 100);
      std::ranges::nth_element(floors, at);
      floor_ = *at;
      for (const int64_t delay : floors) into.push_back(delay - floor_);
      std::ranges::nth_element(into, into.begin() + static_cast<std::ptrdiff_t>(into.size() / 2));
      into_ = into[into.size() / 2];
    }
    std::erase_if(between, [](int64_t gap) { return gap < 0; });
    if (between.empty()) return;
    const int64_t least = std::ranges::min(between);
    const auto middle = between.begin() + static_cast<std::ptrdiff_t>(between.size() / 2);
    std::ranges::nth_element(between, middle);
    between_ = std::min({*middle, least + TimedGraph::kClockNs, kStreamTakesNs});
  }

  // Work that began while its call ran, on a free stream, was given away just before.
  void AddLaunch(uint32_t i) {
    const DeviceSpan& span = spans_[i];
    if (span.launch == kNone) return;
    const int64_t called = Called(i), returned = trace_.api_calls.end[span.launch];
    const int64_t latest = span.start - floor_;
    int64_t launched = std::min(called + into_, returned);
    // A call that waits for its own copy has launched it before.
    if (blocks_[span.launch]) {
      launched = called;
    } else if (latest <= returned || FindsStreamFree(i, returned)) {
      launched = std::clamp(latest, called, returned);
    }
    const uint32_t lane = links_->LaneOf(t_, trace_.api_calls.writer[span.launch]);
    links_->Link(links_->Point(lane, launched), links_->Node(head_[i]), EdgeKind::kLaunch,
                 std::clamp<int64_t>(span.start - launched, 0, floor_));
  }

  // Work that begins where other work of the rank ends, and long after its own stream and launch
  // let it, waits for that: files of other tools have no events.
  void AddUnrecordedWaits() {
    constexpr int64_t kUnexplainedNs = 5'000;
    std::map<std::pair<uint32_t, uint32_t>, int64_t> free;  // by device and stream
    auto ended_by = order_.by_end().begin();
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      const DeviceSpan& span = spans_[i];
      int64_t& own = free.try_emplace({span.device, span.stream}, INT64_MIN).first->second;
      const int64_t since = std::max(own, span.launch == kNone ? INT64_MIN : Called(i));
      own = std::max(own, span.end);
      if (since == INT64_MIN || span.start - since < kUnexplainedNs) continue;
      while (ended_by != order_.by_end().end() && spans_[*ended_by].end <= span.start) ++ended_by;
      if (ended_by == order_.by_end().begin()) continue;
      const uint32_t before = *std::prev(ended_by);
      const int64_t ended = spans_[before].end;
      if (before == i || ended <= since || span.start - ended > kFollowsNs) continue;
      if (spans_[before].start >= span.start) continue;
      AddWorkEdge(before, i, EdgeKind::kEvent);
    }
  }

  void AddQueue(uint32_t blocker, uint32_t i) {
    const uint32_t launch = spans_[i].launch;
    if (launch == kNone) return;
    const int64_t called = trace_.api_calls.start[launch], returned = trace_.api_calls.end[launch];
    const int64_t made_room = spans_[blocker].end;
    if (returned - called < kBlockedNs || made_room <= called || made_room > returned) return;
    const uint32_t lane = links_->LaneOf(t_, trace_.api_calls.writer[launch]);
    links_->LinkAsTraced(links_->Node(tail_[blocker]), links_->Return(lane, called, returned),
                         EdgeKind::kQueue);
  }

  void AddReturns() {
    for (const DeviceReturn& call : order_.returns()) {
      if (call.only_asks || call.latest == kNone) continue;
      const uint32_t lane = links_->LaneOf(t_, call.writer);
      // A call whose work was done has not waited, and yet it might have.
      const bool waited = spans_[call.latest].end > call.called;
      const Moment back = links_->Return(lane, waited ? call.called : call.returned, call.returned);
      for (const uint32_t span : order_.AwaitedBy(call)) {
        const Moment from = links_->Node(tail_[span]);
        if (span == call.latest && waited) {
          links_->LinkAsTraced(from, back, EdgeKind::kReturn);
        } else {
          links_->Link(from, back, EdgeKind::kReturn);
        }
      }
    }
  }

  uint32_t t_;
  const Trace& trace_;
  JobLinks* links_;
  const std::vector<DeviceSpan>& spans_;
  DeviceOrder order_;
  std::vector<uint32_t> head_, tail_;  // nodes: its begin, and its end
  std::vector<bool> blocks_;           // by row of api_calls: it returns when a device has worked
  int64_t floor_ = 0, into_ = 0, between_ = 0;
};

}  // namespace

void AddDeviceMeetings(JobLinks* links) {
  const Run& run = links->run();
  for (const CollectiveRun& call : MatchCollectives(run)) {
    if (call.members.size() < 2) continue;
    int64_t all_there = INT64_MIN;
    for (const CollectiveMember& member : call.members) {
      all_there = std::max(all_there, links->At(member.trace, member.start));
    }
    const uint32_t meeting =
        links->builder().AddNode(NodeKind::kMeeting, call.members[0].trace, kNone, all_there, 0);
    for (const CollectiveMember& member : call.members) {
      links->SetMeeting(member.trace, member.kernel, meeting);
    }
  }
}

void AddDeviceWork(uint32_t trace, JobLinks* links) { DeviceWorkOf(trace, links).Add(); }

}  // namespace ranktap::collector
