// Streams, their launches and events, and the host calls that return when a device has come to some
// point.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "collector/facts/collectives.h"
#include "collector/facts/device_order.h"
#include "collector/facts/replay/job_graph.h"
#include "collector/facts/replay/job_links.h"
#include "collector/facts/stream_numbers.h"

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
        nodes_(links->work[trace]),
        blocks_(trace_.api_calls.size()) {
    for (const DeviceReturn& call : order_.returns()) {
      if (!call.is_event_call) blocks_[call.row] = true;
    }
  }

  void Add() {
    FindDelays();
    AddNodes();
    for (const auto& [work, awaited] : order_.EventWaits()) {
      AddEventEdge(awaited, work);
    }
    AddStreams();
    AddLaunches();
    AddReturns();
  }

 private:
  // A collective that others take part in is two: until the last rank is there, and the rest.
  void AddNodes() {
    GraphBuilder& builder = links_->builder();
    const CollectiveOfWork& by_work = CollectivesByWork(links_->run())[t_];
    const auto meeting_of = [&](uint32_t i) {
      const uint32_t call = spans_[i].kind == WorkKind::kCommunication ? by_work[i] : kNone;
      return call == kNone ? kNone : links_->meetings[call];
    };
    nodes_.first = static_cast<uint32_t>(builder.size());
    std::vector<uint32_t> meet;
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      const int64_t start = links_->At(t_, spans_[i].start);
      const bool meets = meeting_of(i) != kNone;
      if (meets) meet.push_back(i);
      builder.AddNode(NodeKind::kWork, t_, i, start,
                      meets ? 0 : links_->At(t_, spans_[i].end) - start);
    }
    if (meet.empty()) return;
    nodes_.tails.resize(spans_.size());
    std::iota(nodes_.tails.begin(), nodes_.tails.end(), nodes_.first);
    for (const uint32_t i : meet) {
      const int64_t start = links_->At(t_, spans_[i].start), end = links_->At(t_, spans_[i].end);
      const uint32_t meeting = meeting_of(i), head = nodes_.Head(i);
      const int64_t since = std::clamp(builder.start(meeting), start, end);
      const uint32_t tail = builder.AddNode(NodeKind::kTransfer, t_, i, since, end - since);
      nodes_.tails[i] = tail;
      builder.AddEdge(head, meeting, EdgeKind::kMeeting);
      builder.AddEdge(head, tail, EdgeKind::kStream);
      builder.AddEdge(meeting, tail, EdgeKind::kMeeting);
    }
  }

  int64_t LagAfter(uint32_t before, uint32_t after) const {
    const int64_t traced = std::max<int64_t>(spans_[after].start - spans_[before].end, 0);
    return std::min(traced, between_);
  }
  void AddEventEdge(uint32_t before, uint32_t after) {
    links_->builder().AddEdge(nodes_.Tail(before), nodes_.Head(after), EdgeKind::kEvent,
                              LagAfter(before, after));
  }

  // The order of streams, their queues, and waits that were not recorded.
  void AddStreams() {
    EdgeSeries edges{nodes_.first, static_cast<uint32_t>(spans_.size()), EdgeKind::kStream, {}, {}};
    edges.from.reserve(spans_.size());
    edges.lag.reserve(spans_.size());
    struct Stream {
      int64_t free = INT64_MIN;
      std::vector<uint32_t> queue;  // the last pieces of work, a ring
      size_t place = 0;
    };
    std::vector<Stream> streams;
    StreamNumbers numbers;
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      const uint32_t before = order_.Before(i), number = numbers.Of(spans_[i]);
      edges.from.push_back(before == kNone ? kNone : nodes_.Tail(before));
      edges.lag.push_back(before == kNone ? 0 : static_cast<uint32_t>(LagAfter(before, i)));
      if (number == streams.size()) {
        streams.emplace_back().queue.resize(kQueueLength + 1, kNone);
      }
      Stream& own = streams[number];
      uint32_t& place = own.queue[own.place];
      own.place = own.place == kQueueLength ? 0 : own.place + 1;
      if (place != kNone) AddQueue(place, i);
      place = i;
      AddUnrecordedWait(i, own.free);
      own.free = std::max(own.free, spans_[i].end);
    }
    links_->builder().AddSeries(std::move(edges));
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
    std::vector<uint32_t> floors, between;  // over 4.29 s are as that
    floors.reserve(spans_.size());
    between.reserve(spans_.size());
    const auto add = [](int64_t delay, std::vector<uint32_t>* to) {
      if (delay >= 0) to->push_back(static_cast<uint32_t>(std::min<int64_t>(delay, UINT32_MAX)));
    };
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      const DeviceSpan& span = spans_[i];
      if (span.launch == kNone) continue;
      const int64_t called = Called(i);
      if (FindsStreamFree(i, called)) {
        add(span.start - called, &floors);
      } else if (span.start - called > 2 * kBlockedNs) {
        add(span.start - spans_[order_.Before(i)].end, &between);
      }
    }
    if (!floors.empty()) {
      floor_ = NthOf(floors.size() / 100, &floors);
      into_ = NthOf(floors.size() / 2, &floors) - floor_;
    }
    if (between.empty()) return;
    const int64_t least = std::ranges::min(between);
    between_ = std::min(
        {NthOf(between.size() / 2, &between), least + TimedGraph::kClockNs, kStreamTakesNs});
  }
  static int64_t NthOf(size_t n, std::vector<uint32_t>* values) {
    const auto at = values->begin() + static_cast<std::ptrdiff_t>(n);
    std::ranges::nth_element(*values, at);
    return *at;
  }

  // By the rows of calls, so that each thread's come by time.
  void AddLaunches() {
    const auto size = static_cast<uint32_t>(spans_.size());
    EdgeSeries edges{nodes_.first, size, EdgeKind::kLaunch, {}, {}};
    edges.from.assign(size, kNone);
    edges.lag.assign(size, 0);
    std::vector<uint32_t> first_of(trace_.api_calls.size(), kNone);
    std::vector<std::pair<uint32_t, uint32_t>> others;  // a graph's launch has several
    for (uint32_t i = 0; i < size; ++i) {
      if (spans_[i].launch == kNone) continue;
      uint32_t& first = first_of[spans_[i].launch];
      if (first == kNone) {
        first = i;
      } else {
        others.emplace_back(spans_[i].launch, i);
      }
    }
    std::ranges::stable_sort(others, {}, &std::pair<uint32_t, uint32_t>::first);
    auto other = others.begin();
    for (uint32_t row = 0; row < first_of.size(); ++row) {
      if (first_of[row] == kNone) continue;
      AddLaunch(first_of[row], &edges);
      for (; other != others.end() && other->first == row; ++other) {
        AddLaunch(other->second, &edges);
      }
    }
    links_->LinkLaunches(t_, std::move(edges));
  }
  // Work that began while its call ran, on a free stream, was given away just before.
  void AddLaunch(uint32_t i, EdgeSeries* edges) {
    const DeviceSpan& span = spans_[i];
    const int64_t called = Called(i), returned = trace_.api_calls.end[span.launch];
    const int64_t latest = span.start - floor_;
    int64_t launched = std::min(called + into_, returned);
    // A call that waits for its own copy has launched it before.
    if (blocks_[span.launch]) {
      launched = called;
    } else if (latest <= returned || FindsStreamFree(i, returned)) {
      launched = std::clamp(latest, called, returned);
    }
    const int64_t lag = std::clamp<int64_t>(span.start - launched, 0, floor_);
    const uint16_t writer = trace_.api_calls.writer[span.launch];
    if (lane_ == kNone || writer != writer_) lane_ = links_->LaneOf(t_, writer);
    writer_ = writer;
    edges->from[i] = links_->Launch(lane_, launched);
    edges->lag[i] = static_cast<uint32_t>(lag);
    if (edges->from[i] != kNone) return;
    links_->Link(links_->Point(lane_, launched), links_->Node(nodes_.Head(i)), EdgeKind::kLaunch,
                 lag);
  }

  // Work that begins where other work of the rank ends, and long after its own stream and launch
  // let it, waits for that: files of other tools have no events.
  void AddUnrecordedWait(uint32_t i, int64_t free) {
    constexpr int64_t kUnexplainedNs = 5'000;
    const DeviceSpan& span = spans_[i];
    const int64_t since = std::max(free, Called(i));
    if (since == INT64_MIN || span.start - since < kUnexplainedNs) return;
    const std::vector<uint32_t>& by_end = order_.by_end();
    while (ended_ < by_end.size() && spans_[by_end[ended_]].end <= span.start) ++ended_;
    if (ended_ == 0) return;
    const uint32_t before = by_end[ended_ - 1];
    const int64_t ended = spans_[before].end;
    if (before == i || ended <= since || span.start - ended > kFollowsNs) return;
    if (spans_[before].start < span.start) AddEventEdge(before, i);
  }

  void AddQueue(uint32_t blocker, uint32_t i) {
    const uint32_t launch = spans_[i].launch;
    if (launch == kNone) return;
    const int64_t called = trace_.api_calls.start[launch], returned = trace_.api_calls.end[launch];
    const int64_t made_room = spans_[blocker].end;
    if (returned - called < kBlockedNs || made_room <= called || made_room > returned) return;
    const uint32_t lane = links_->LaneOf(t_, trace_.api_calls.writer[launch]);
    links_->LinkAsTraced(links_->Node(nodes_.Tail(blocker)), links_->Return(lane, called, returned),
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
        const Moment from = links_->Node(nodes_.Tail(span));
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
  const DeviceSpans& spans_;
  DeviceOrder order_;
  WorkNodes& nodes_;
  std::vector<bool> blocks_;  // by row of api_calls: it returns when a device has worked
  size_t ended_ = 0;          // of order_.by_end(): by the start of the work at hand
  uint16_t writer_ = 0;
  uint32_t lane_ = kNone;  // of writer_
  int64_t floor_ = 0, into_ = 0, between_ = 0;
};

}  // namespace

void AddDeviceMeetings(JobLinks* links) {
  const Run& run = links->run();
  for (const CollectiveRun& call : MatchCollectives(run)) {
    links->meetings.push_back(kNone);
    if (call.members.size() < 2) continue;
    int64_t all_there = INT64_MIN;
    for (const CollectiveMember& member : call.members) {
      all_there = std::max(all_there, links->At(member.trace, member.start));
    }
    links->meetings.back() =
        links->builder().AddNode(NodeKind::kMeeting, call.members[0].trace, kNone, all_there, 0);
  }
}

void AddDeviceWork(uint32_t trace, JobLinks* links) { DeviceWorkOf(trace, links).Add(); }

}  // namespace ranktap::collector
