// Edges of a job's graph whose ends are moments of host threads that are not nodes yet. A part of
// job_graph.h.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "collector/facts/replay/host_lane.h"
#include "collector/facts/shared_clock.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct JobGraph;

// A node, or a cut of a lane.
struct Moment {
  uint32_t lane = kNone;
  uint32_t at = kNone;  // the node, or the cut
  bool after = false;   // of the cut
};

// The nodes of a rank's work, by DeviceTimeline().
struct WorkNodes {
  uint32_t first = 0;
  std::vector<uint32_t> tails;  // empty: each is one node
  uint32_t Head(uint32_t span) const { return first + span; }
  // At whose end the work is done.
  uint32_t Tail(uint32_t span) const { return tails.empty() ? first + span : tails[span]; }
};

class JobLinks {
 public:
  JobLinks(const Run& run, JobGraph* job)
      : work(run.traces.size()), run_(run), job_(job), clock_(SharedClockOf(run)) {}

  GraphBuilder& builder() { return builder_; }
  const Run& run() const { return run_; }
  JobGraph& job() { return *job_; }
  int64_t At(uint32_t trace, int64_t time) const {
    return clock_.is_of_one_host() ? time : clock_.At(trace, time);
  }

  uint32_t LaneOf(uint32_t trace, uint16_t writer);
  // The thread has come to `time`, by the rank's own clock.
  Moment Point(uint32_t lane, int64_t time);
  // It returned from a wait. Waits of threads of steps are kept for whoever asks what they did.
  Moment Return(uint32_t lane, int64_t begin, int64_t end);

  // It launched work, and its launches come by time; kNone: not this one.
  uint32_t Launch(uint32_t lane, int64_t time);

  void Link(Moment from, Moment to, EdgeKind kind, int64_t lag = 0);
  // With the lag that the trace shows.
  void LinkAsTraced(Moment from, Moment to, EdgeKind kind);
  // `edges.from` are what Launch() returned, for the launches of all the work of a trace.
  void LinkLaunches(uint32_t trace, EdgeSeries edges) {
    launches_.emplace_back(trace, std::move(edges));
  }
  static Moment Node(uint32_t node) { return {.at = node}; }

  // Makes the lanes nodes, and everything edges.
  void Build();
  uint32_t NodeOf(const Moment& moment) const;  // after Build()

  std::vector<uint32_t> meetings;  // by MatchCollectives(): nodes; kNone: of one traced rank
  std::vector<WorkNodes> work;     // by trace

 private:
  struct Pending {
    Moment from, to;
    EdgeKind kind;
    bool as_traced;
    int64_t lag;
  };
  void AddLaunches(uint32_t trace, EdgeSeries edges);

  const Run& run_;
  JobGraph* job_;
  const SharedClock& clock_;
  GraphBuilder builder_;
  std::map<std::pair<uint32_t, uint16_t>, uint32_t> lane_of_;
  std::vector<Pending> pending_;
  std::vector<std::pair<uint32_t, EdgeSeries>> launches_;  // by trace
  std::vector<std::vector<uint32_t>> meetings_;            // by trace and kernel; empty: of none
  std::vector<std::pair<Moment, size_t>> waits_;           // and their place among their trace's
};

// The parts of the graph. Each adds cuts and links.
void AddDeviceMeetings(JobLinks* links);
// Streams, launches, returns, queues; after AddDeviceMeetings.
void AddDeviceWork(uint32_t trace, JobLinks* links);
void AddHostMeetings(JobLinks* links);  // gloo
void AddHostMessages(JobLinks* links);  // gloo's send and recv
void AddLoader(uint32_t trace, JobLinks* links);
void AddHandOvers(uint32_t trace, JobLinks* links);
// The thread of the steps; UINT16_MAX: there is none.
uint16_t MainWriter(const Trace& trace);

}  // namespace ranktap::collector
