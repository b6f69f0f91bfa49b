#include "collector/facts/replay/job_links.h"

#include <algorithm>

#include "collector/facts/device_timeline.h"
#include "collector/facts/replay/job_graph.h"

namespace ranktap::collector {

uint32_t JobLinks::LaneOf(uint32_t trace, uint16_t writer) {
  const auto [at, is_new] =
      lane_of_.try_emplace({trace, writer}, static_cast<uint32_t>(job_->lanes.size()));
  if (is_new) job_->lanes.emplace_back(trace, writer);
  return at->second;
}

Moment JobLinks::Point(uint32_t lane, int64_t time) {
  HostLane& of = job_->lanes[lane];
  return {lane, of.AddPoint(At(of.trace(), time)), false};
}

Moment JobLinks::Return(uint32_t lane, int64_t begin, int64_t end) {
  HostLane& of = job_->lanes[lane];
  const Moment moment{lane, of.AddWait(At(of.trace(), begin), At(of.trace(), end)), true};
  if (job_->main_lane[of.trace()] == lane) {
    waits_.emplace_back(moment, job_->waits[of.trace()].size());
    job_->waits[of.trace()].push_back({begin, end});
  }
  return moment;
}

uint32_t JobLinks::Launch(uint32_t lane, int64_t time) {
  HostLane& of = job_->lanes[lane];
  return of.AddLaunch(At(of.trace(), time));
}

void JobLinks::AddLaunches(uint32_t trace, EdgeSeries edges) {
  const ApiCalls& calls = run_.traces[trace].api_calls;
  const DeviceSpans& spans = DeviceTimeline(run_.traces[trace]);
  uint16_t writer = UINT16_MAX;
  uint32_t lane = kNone;
  for (uint32_t i = 0; i < edges.size; ++i) {
    if (edges.from[i] == kNone) continue;
    if (lane == kNone || calls.writer[spans[i].launch] != writer) {
      writer = calls.writer[spans[i].launch];
      lane = LaneOf(trace, writer);
    }
    edges.from[i] = job_->lanes[lane].Launching(edges.from[i]);
  }
  builder_.AddSeries(std::move(edges));
}

void JobLinks::Link(Moment from, Moment to, EdgeKind kind, int64_t lag) {
  pending_.push_back({from, to, kind, false, lag});
}
void JobLinks::LinkAsTraced(Moment from, Moment to, EdgeKind kind) {
  pending_.push_back({from, to, kind, true, 0});
}

uint32_t JobLinks::NodeOf(const Moment& moment) const {
  if (moment.lane == kNone) return moment.at;
  const HostLane& lane = job_->lanes[moment.lane];
  return moment.after ? lane.After(moment.at) : lane.Before(moment.at);
}

void JobLinks::Build() {
  for (HostLane& lane : job_->lanes) {
    const Trace& trace = run_.traces[lane.trace()];
    lane.Build(At(lane.trace(), trace.first_ns), At(lane.trace(), trace.last_ns), &builder_);
  }
  for (auto& [trace, edges] : launches_) AddLaunches(trace, std::move(edges));
  for (const Pending& link : pending_) {
    const uint32_t from = NodeOf(link.from), to = NodeOf(link.to);
    if (from == kNone || to == kNone || from == to) continue;
    const int64_t traced = builder_.start(to) - builder_.end(from);
    builder_.AddEdge(from, to, link.kind, link.as_traced ? std::max<int64_t>(traced, 0) : link.lag);
  }
  for (const auto& [moment, place] : waits_) {
    job_->waits[job_->lanes[moment.lane].trace()][place].after = NodeOf(moment);
  }
  for (std::vector<ThreadWait>& waits : job_->waits) {
    std::ranges::sort(waits, {}, &ThreadWait::begin);
  }
}

}  // namespace ranktap::collector
