// Streams, their launches and events, and the host calls that return when a device has come to some
// point.
#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "collector/facts/collectives.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/replay/job_graph.h"
#include "collector/facts/replay/job_links.h"
#include "collector/facts/stream_waits.h"
#include "collector/facts/sync_calls.h"

namespace ranktap::collector {
namespace {

constexpr size_t kQueueLength = 1024;   // launches of a stream that CUDA keeps
constexpr int64_t kBlockedNs = 30'000;  // a launch that takes so long may have found it full

constexpr int64_t kFollowsNs = 5'000;      // work that begins so soon after other may wait for it
constexpr int64_t kStreamTakesNs = 2'000;  // between two pieces of work, at most

using StreamKey = std::pair<uint32_t, uint32_t>;  // device, stream

struct StreamWork {
  std::vector<uint32_t> spans;  // by start
};

class DeviceWorkOf {
 public:
  DeviceWorkOf(uint32_t trace, JobLinks* links)
      : t_(trace),
        trace_(links->run().traces[trace]),
        links_(links),
        spans_(DeviceTimeline(trace_)),
        head_(spans_.size(), kNone),
        tail_(spans_.size(), kNone),
        blocks_(CallsThatSawTheirCopyEnd(trace_)) {
    const std::vector<bool> waits = ApisThatWait(trace_);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (waits[std::min<size_t>(trace_.api_calls.api[i], waits.size() - 1)]) blocks_[i] = true;
    }
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      streams_[{spans_[i].device, spans_[i].stream}].spans.push_back(i);
    }
  }

  void Add() {
    FindDelays();
    for (uint32_t i = 0; i < spans_.size(); ++i) AddNodes(i);
    const auto waits = StreamWaits(trace_);
    for (auto& [key, stream] : streams_) {
      for (size_t place = 0; place < stream.spans.size(); ++place) {
        const uint32_t i = stream.spans[place];
        if (place > 0) {
          AddWorkEdge(stream.spans[place - 1], i, EdgeKind::kStream);
        }
        AddLaunch(stream, place);
        AddEvents(waits, key, stream, place);
        AddQueue(stream, place);
      }
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

  bool FindsStreamFree(const StreamWork& stream, size_t place, int64_t at) const {
    return place == 0 || spans_[stream.spans[place - 1]].end <= at;
  }

  // What of a launch or a stream every piece of work takes: how long after the call it begins at
  // the earliest on a stream that has nothing to do, how far into its call a launch is usually
  // given away, and how long after the work before it the next begins that waited for that alone.
  void FindDelays() {
    std::vector<int64_t> floors, into, between;
    for (const auto& [key, stream] : streams_) {
      for (size_t place = 0; place < stream.spans.size(); ++place) {
        const DeviceSpan& span = spans_[stream.spans[place]];
        if (span.launch == kNone) continue;
        const int64_t called = Called(stream.spans[place]);
        if (FindsStreamFree(stream, place, called)) {
          if (span.start >= called) floors.push_back(span.start - called);
        } else if (span.start - called > 2 * kBlockedNs) {
          between.push_back(span.start - spans_[stream.spans[place - 1]].end);
        }
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
    std::ranges::sort(between);
    between_ = std::min(
        {between[between.size() / 2], between.front() + TimedGraph::kClockNs, kStreamTakesNs});
  }

  // Work that began while its call ran, on a free stream, was given away just before.
  void AddLaunch(const StreamWork& stream, size_t place) {
    const uint32_t i = stream.spans[place];
    const DeviceSpan& span = spans_[i];
    if (span.launch == kNone) return;
    const int64_t called = Called(i), returned = trace_.api_calls.end[span.launch];
    const int64_t latest = span.start - floor_;
    int64_t launched = std::min(called + into_, returned);
    // A call that waits for its own copy has launched it before.
    if (blocks_[span.launch]) {
      launched = called;
    } else if (latest <= returned || FindsStreamFree(stream, place, returned)) {
      launched = std::clamp(latest, called, returned);
    }
    const uint32_t lane = links_->LaneOf(t_, trace_.api_calls.writer[span.launch]);
    links_->Link(links_->Point(lane, launched), links_->Node(head_[i]), EdgeKind::kLaunch,
                 std::clamp<int64_t>(span.start - launched, 0, floor_));
  }

  // The last work of another stream that was launched before the event was recorded; where nobody
  // tells when that was, before the wait for it.
  void AddEvents(const std::map<uint32_t, std::vector<StreamWait>>& waits, const StreamKey& key,
                 const StreamWork& stream, size_t place) {
    const uint32_t i = stream.spans[place];
    if (spans_[i].launch == kNone) return;
    const int64_t since = place == 0 ? INT64_MIN : Called(stream.spans[place - 1]);
    const auto wait = WaitBetween(waits, key.second, since, Called(i));
    if (!wait || wait->on == kNone) return;
    const auto other = streams_.find({key.first, wait->on});
    if (other == streams_.end()) return;
    const uint32_t before = LastLaunched(other->second, wait->called, spans_[i].start);
    if (before != kNone && before != i) {
      AddWorkEdge(before, i, EdgeKind::kEvent);
    }
  }

  // Of a stream, launched by `called` and at its end by `ended`; kNone: none.
  uint32_t LastLaunched(const StreamWork& stream, int64_t called, int64_t ended) const {
    auto at = std::ranges::partition_point(stream.spans,
                                           [&](uint32_t span) { return Called(span) <= called; });
    while (at != stream.spans.begin()) {
      --at;
      if (spans_[*at].end <= ended + TimedGraph::kClockNs) return *at;
    }
    return kNone;
  }

  // Work that begins where other work of the rank ends, and long after its own stream and launch
  // let it, waits for that: files of other tools have no events.
  void AddUnrecordedWaits() {
    constexpr int64_t kUnexplainedNs = 5'000;
    std::vector<uint32_t> by_end(spans_.size());
    std::iota(by_end.begin(), by_end.end(), 0u);
    std::ranges::stable_sort(by_end, {}, [this](uint32_t i) { return spans_[i].end; });
    std::map<StreamKey, int64_t> free;
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      const DeviceSpan& span = spans_[i];
      int64_t& own = free.try_emplace({span.device, span.stream}, INT64_MIN).first->second;
      const int64_t since = std::max(own, span.launch == kNone ? INT64_MIN : Called(i));
      own = std::max(own, span.end);
      if (since == INT64_MIN || span.start - since < kUnexplainedNs) continue;
      const auto after = std::ranges::upper_bound(by_end, span.start, {},
                                                  [this](uint32_t at) { return spans_[at].end; });
      if (after == by_end.begin()) continue;
      const uint32_t before = *std::prev(after);
      const int64_t ended = spans_[before].end;
      if (before == i || ended <= since || span.start - ended > kFollowsNs) continue;
      if (spans_[before].start >= span.start) continue;
      AddWorkEdge(before, i, EdgeKind::kEvent);
    }
  }

  void AddQueue(const StreamWork& stream, size_t place) {
    if (place <= kQueueLength) return;
    const uint32_t launch = spans_[stream.spans[place]].launch;
    if (launch == kNone) return;
    const int64_t called = trace_.api_calls.start[launch], returned = trace_.api_calls.end[launch];
    const uint32_t blocker = stream.spans[place - kQueueLength - 1];
    const int64_t made_room = spans_[blocker].end;
    if (returned - called < kBlockedNs || made_room <= called || made_room > returned) return;
    const uint32_t lane = links_->LaneOf(t_, trace_.api_calls.writer[launch]);
    links_->LinkAsTraced(links_->Node(tail_[blocker]), links_->Return(lane, called, returned),
                         EdgeKind::kQueue);
  }

  void AddReturns() {
    std::unordered_map<uint32_t, uint32_t> stream_of;  // of synchronisations, by correlation
    for (size_t i = 0; i < trace_.syncs.size(); ++i) {
      if (trace_.syncs.stream[i] != kNone) {
        stream_of.emplace(trace_.syncs.correlation[i], trace_.syncs.stream[i]);
      }
    }
    ForEachSyncCall(trace_, [&](const ApiCalls& calls, size_t i) {
      const std::string_view name = trace_.dictionary.Api(calls.api[i]).name;
      if (name.find("Query") != name.npos) return;
      const auto of = stream_of.find(calls.correlation[i]);
      const uint32_t stream = of == stream_of.end() ? kNone : of->second;
      AddReturn(links_->LaneOf(t_, calls.writer[i]), calls.start[i], calls.end[i], stream);
    });
  }
  void AddReturn(uint32_t lane, int64_t called, int64_t returned, uint32_t on) {
    uint32_t last = kNone;
    std::vector<uint32_t> awaited;
    for (const auto& [key, stream] : streams_) {
      if (on != kNone && key.second != on) continue;
      const uint32_t span = LastLaunched(stream, called, returned);
      if (span == kNone) continue;
      awaited.push_back(span);
      if (last == kNone || spans_[span].end > spans_[last].end) last = span;
    }
    if (last == kNone) return;
    // A call whose work was done has not waited, and yet it might have.
    const bool waited = spans_[last].end > called;
    const Moment back = links_->Return(lane, waited ? called : returned, returned);
    for (const uint32_t span : awaited) {
      const Moment from = links_->Node(tail_[span]);
      if (span == last && waited) {
        links_->LinkAsTraced(from, back, EdgeKind::kReturn);
      } else {
        links_->Link(from, back, EdgeKind::kReturn);
      }
    }
  }

  uint32_t t_;
  const Trace& trace_;
  JobLinks* links_;
  const std::vector<DeviceSpan>& spans_;
  std::vector<uint32_t> head_, tail_;  // nodes: its begin, and its end
  std::vector<bool> blocks_;           // by row of api_calls: it returns when a device has worked
  std::map<StreamKey, StreamWork> streams_;
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
