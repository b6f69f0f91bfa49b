// Collectives and messages of gloo, and what of a step's thread they hold.
#include <algorithm>
#include <map>
#include <optional>

#include "collector/facts/collectives.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/message_peers.h"
#include "collector/facts/replay/job_graph.h"
#include "collector/facts/replay/job_links.h"
#include "collector/facts/samples/host_samples.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

// Nothing that a thread does within this of a collective's end says that it did not wait.
constexpr int64_t kWakesNs = 100'000;

struct HostCall {
  int64_t start = 0, end = 0;  // by the rank's own clock
  uint32_t collective = 0;     // index into MatchHostCollectives()
  uint32_t member = 0;
};

// Collectives that one wait is for: [held, end).
struct Held {
  size_t first = 0, last = 0;  // of the rank's calls
  int64_t begin = 0, end = 0;
};

// When the thread of the steps did something that the trace names, sorted.
std::vector<int64_t> DeedsOf(const Trace& trace, uint16_t writer) {
  std::vector<int64_t> deeds;
  const auto add = [&](const auto& table) {
    for (size_t i = 0; i < table.size(); ++i) {
      if (table.writer[i] != writer) continue;
      deeds.push_back(table.start[i]);
      deeds.push_back(table.end[i]);
    }
  };
  add(trace.ranges);
  add(trace.operators);
  std::ranges::sort(deeds);
  return deeds;
}

// Less than this of a wait was seen waiting: the thread worked, and nobody waited for the call.
constexpr double kLeastWaiting = 0.3;

bool RanInstead(const Trace& trace, int64_t begin, int64_t end) {
  int64_t waited = 0, seen = 0;
  SamplesOf(trace).ForEachOfMain(begin, end, [&](const HostSample& sample, int64_t ns) {
    seen += ns;
    if (sample.state == proto::SampleState::kWaits) waited += ns;
  });
  constexpr int64_t kFewestNs = 30'000'000;  // three looks
  return seen >= kFewestNs &&
         static_cast<double>(waited) < kLeastWaiting * static_cast<double>(seen);
}

// The collectives of a rank by the waits for them. Those that begin within one backward pass are
// waited for at its end (DistributedDataParallel's buckets), others while they overlap.
std::vector<Held> HeldBy(const Trace& trace, uint16_t writer, const std::vector<HostCall>& calls) {
  const std::vector<Interval> passes = PhaseIntervals(trace, proto::kBackwardPhase);
  const std::vector<int64_t> deeds = DeedsOf(trace, writer);
  const auto pass_at = [&passes](int64_t time) {
    const auto at = std::ranges::upper_bound(passes, time, {}, &Interval::second);
    return at != passes.end() && at->first <= time ? at->first : INT64_MIN;
  };
  std::vector<Held> held;
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool joins =
        !held.empty() && (calls[i].start < held.back().end ||
                          (pass_at(calls[i].start) != INT64_MIN &&
                           pass_at(calls[i].start) == pass_at(calls[held.back().last].start)));
    if (!joins) held.push_back({i, i, calls[i].start, calls[i].end});
    held.back().last = i;
    held.back().begin = calls[i].start;
    held.back().end = std::max(held.back().end, calls[i].end);
  }
  for (Held& wait : held) {
    const auto after = std::ranges::lower_bound(deeds, wait.end - kWakesNs);
    if (after != deeds.begin()) wait.begin = std::max(wait.begin, *std::prev(after));
    if (RanInstead(trace, wait.begin, wait.end)) wait.begin = wait.end;
  }
  return held;
}

bool HasARoot(std::string_view type) {
  for (const std::string_view rooted : {"broadcast", "reduce", "gather", "scatter"}) {
    if (type == rooted) return true;
  }
  return false;
}

class HostMeetings {
 public:
  explicit HostMeetings(JobLinks* links)
      : links_(links),
        list_(MatchHostCollectives(links->run())),
        ready_(list_.size()),
        done_(list_.size()) {
    by_trace_.resize(links->run().traces.size());
    for (uint32_t c = 0; c < list_.size(); ++c) {
      ready_[c].resize(list_[c].members.size());
      done_[c].resize(list_[c].members.size());
      if (list_[c].type() == "send" || list_[c].type() == "recv") continue;
      for (uint32_t m = 0; m < list_[c].members.size(); ++m) {
        const CollectiveMember& member = list_[c].members[m];
        by_trace_[member.trace].push_back({member.start, member.end, c, m});
      }
    }
  }

  void Add() {
    for (uint32_t t = 0; t < by_trace_.size(); ++t) FindArrivals(t);
    for (uint32_t c = 0; c < list_.size(); ++c) AddMeeting(c);
    for (const auto& [call, to] : returns_) {
      links_->LinkAsTraced(links_->Node(done_[call.collective][call.member]), to,
                           EdgeKind::kMeeting);
    }
    for (const auto& [call, to] : others_) {
      links_->Link(links_->Node(done_[call.collective][call.member]), to, EdgeKind::kMeeting);
    }
    for (const auto& [before, call] : queued_) {
      const uint32_t from = done_[before.collective][before.member];
      links_->LinkAsTraced(links_->Node(from), links_->Node(done_[call.collective][call.member]),
                           EdgeKind::kThread);
    }
  }

 private:
  // Where its thread was when each of a rank's collectives began, and what it waited for.
  void FindArrivals(uint32_t t) {
    std::vector<HostCall>& calls = by_trace_[t];
    const uint32_t lane = links_->job().main_lane[t];
    if (lane == kNone) return;
    std::ranges::sort(calls, {}, &HostCall::start);
    const Trace& trace = links_->run().traces[t];
    int64_t free = INT64_MIN;
    const HostCall* last = nullptr;
    for (const Held& wait : HeldBy(trace, links_->job().lanes[lane].writer(), calls)) {
      for (size_t i = wait.first; i <= wait.last; ++i) {
        if (calls[i].start >= free) {
          ready_[calls[i].collective][calls[i].member] = links_->Point(lane, calls[i].start);
        } else if (last != nullptr) {
          queued_.emplace_back(*last, calls[i]);
        }
      }
      const auto ends_last =
          std::max_element(calls.begin() + static_cast<std::ptrdiff_t>(wait.first),
                           calls.begin() + static_cast<std::ptrdiff_t>(wait.last) + 1,
                           [](const HostCall& a, const HostCall& b) { return a.end < b.end; });
      if (wait.end > wait.begin) {
        const Moment returned = links_->Return(lane, wait.begin, wait.end);
        // It waits for all of them: after a change another may be the last.
        for (size_t i = wait.first; i <= wait.last; ++i) {
          if (&calls[i] == &*ends_last) {
            returns_.emplace_back(calls[i], returned);
          } else {
            others_.emplace_back(calls[i], returned);
          }
        }
        free = wait.end;
      }
      last = &*ends_last;
    }
  }

  void AddMeeting(uint32_t c) {
    const CollectiveRun& call = list_[c];
    GraphBuilder& builder = links_->builder();
    int64_t all_there = INT64_MIN;
    for (const CollectiveMember& member : call.members) {
      all_there = std::max(all_there, links_->At(member.trace, member.start));
    }
    const uint32_t meeting =
        builder.AddNode(NodeKind::kMeeting, call.members[0].trace, kNone, all_there, 0);
    for (uint32_t m = 0; m < call.members.size(); ++m) {
      const CollectiveMember& member = call.members[m];
      const int64_t start = links_->At(member.trace, member.start);
      const int64_t end = links_->At(member.trace, member.end);
      if (ready_[c][m].lane != kNone) {
        links_->Link(ready_[c][m], links_->Node(meeting), EdgeKind::kMeeting);
      }
      // Who only sends, or receives from one, need not wait for the rest.
      const bool waits = end >= all_there || !HasARoot(call.type());
      const int64_t since = waits ? all_there : start;
      done_[c][m] = builder.AddNode(NodeKind::kTransfer, member.trace, kNone, since, end - since);
      if (waits) {
        builder.AddEdge(meeting, done_[c][m], EdgeKind::kMeeting);
      } else {
        links_->Link(ready_[c][m], links_->Node(done_[c][m]), EdgeKind::kMeeting);
      }
    }
  }

  JobLinks* links_;
  const std::vector<CollectiveRun>& list_;
  std::vector<std::vector<HostCall>> by_trace_;
  std::vector<std::vector<Moment>> ready_;   // by collective and member
  std::vector<std::vector<uint32_t>> done_;  // nodes
  std::vector<std::pair<HostCall, Moment>> returns_, others_;
  std::vector<std::pair<HostCall, HostCall>> queued_;
};

struct Message {
  int64_t start = 0, end = 0;
};
std::vector<Message> MessagesOf(const Trace& trace, std::string_view kind) {
  std::vector<Message> list;
  const Operators& ops = trace.operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (trace.dictionary.String(ops.name[i]) == kind) list.push_back({ops.start[i], ops.end[i]});
  }
  return list;
}

}  // namespace

void AddHostMeetings(JobLinks* links) { HostMeetings(links).Add(); }

void AddHostMessages(JobLinks* links) {
  const Run& run = links->run();
  bool unknown = false;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    const std::vector<Message> received = MessagesOf(run.traces[t], kReceive);
    if (received.empty() || links->job().main_lane[t] == kNone) continue;
    const std::optional<uint32_t> peer = PeerOfMessages(run.traces[t], kReceive);
    uint32_t p = 0;
    while (p < run.traces.size() && run.traces[p].info.rank != peer) ++p;
    const bool is_known = peer && p < run.traces.size() && links->job().main_lane[p] != kNone;
    const std::vector<Message> sent =
        is_known ? MessagesOf(run.traces[p], kSend) : std::vector<Message>();
    if (sent.size() != received.size()) {
      unknown = true;
      continue;
    }
    for (size_t i = 0; i < sent.size(); ++i) {
      const Moment returned =
          links->Return(links->job().main_lane[t], received[i].start, received[i].end);
      const Moment began = links->Point(links->job().main_lane[p], sent[i].start);
      links->LinkAsTraced(began, returned, EdgeKind::kMessage);
    }
  }
  if (unknown) links->job().missing.emplace_back("messages whose other rank is not known");
}

}  // namespace ranktap::collector
