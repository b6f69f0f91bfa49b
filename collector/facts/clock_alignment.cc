#include "collector/facts/clock_alignment.h"

#include <algorithm>
#include <deque>

#include "collector/facts/numbers/describe.h"
#include "collector/trace/at_once.h"

namespace ranktap::collector {
namespace {

constexpr size_t kWindows = 32;
constexpr size_t kLeastForDrift = 8;

// One collective as two ranks saw it.
struct Meeting {
  int64_t start[2], end[2];
};
using Meetings = std::vector<Meeting>;

// In which everybody depends on everybody.
bool IsFull(const std::string& type) {
  for (const char* const full :
       {"allreduce", "allgather", "reducescatter", "alltoall", "barrier"}) {
    if (type == full) return true;
  }
  return false;
}

// The first member of each collective with each other one: that connects as many ranks as all pairs
// would. A pair's meetings are listed as it is compared: those of all pairs of 64 ranks took 96 MB.
class AllMeetings {
 public:
  AllMeetings(size_t traces, const std::vector<CollectiveRun>& collectives)
      : neighbours_(traces), by_first_(traces) {
    std::vector<std::vector<bool>> met(traces);
    for (const CollectiveRun& collective : collectives) {
      if (!IsFull(collective.type()) || collective.members.size() < 2) continue;
      const uint32_t first = collective.members[0].trace;
      by_first_[first].push_back(&collective);
      met[first].resize(traces);
      for (size_t i = 1; i < collective.members.size(); ++i) {
        met[first][collective.members[i].trace] = true;
      }
    }
    for (uint32_t a = 0; a < traces; ++a) {
      for (uint32_t b = 0; b < met[a].size(); ++b) {
        if (!met[a][b]) continue;
        neighbours_[a].push_back(b);
        neighbours_[b].push_back(a);
      }
    }
  }
  const std::vector<uint32_t>& NeighboursOf(uint32_t trace) const { return neighbours_[trace]; }
  // As `from` saw them first; of collectives that `to` is the first member of where `from` is of
  // none.
  Meetings Of(uint32_t from, uint32_t to) const {
    Meetings meetings = OfFirst(from, to);
    return meetings.empty() ? Swapped(OfFirst(to, from)) : meetings;
  }

 private:
  Meetings OfFirst(uint32_t first, uint32_t other) const {
    Meetings meetings;
    size_t at = 0;  // mostly the same place in each
    for (const CollectiveRun* const collective : by_first_[first]) {
      const std::vector<CollectiveMember>& members = collective->members;
      if (at >= members.size() || members[at].trace != other) {
        const auto found = std::ranges::find(members, other, &CollectiveMember::trace);
        if (found == members.end()) continue;
        at = static_cast<size_t>(found - members.begin());
      }
      meetings.push_back(
          {{members[0].start, members[at].start}, {members[0].end, members[at].end}});
    }
    return meetings;
  }
  static Meetings Swapped(Meetings meetings) {
    for (Meeting& m : meetings) {
      std::swap(m.start[0], m.start[1]);
      std::swap(m.end[0], m.end[1]);
    }
    return meetings;
  }

  std::vector<std::vector<uint32_t>> neighbours_;            // by trace
  std::vector<std::vector<const CollectiveRun*>> by_first_;  // by the trace of their first member
};

// Median differences of ends in windows of equally many meetings, by time.
double Drift(const Meetings& meetings) {
  if (meetings.size() < kLeastForDrift) return 0;
  const size_t windows = std::min(kWindows, meetings.size() / 2);
  std::vector<std::pair<double, double>> points;
  for (size_t w = 0; w < windows; ++w) {
    std::vector<double> times, differences;
    for (size_t i = w * meetings.size() / windows; i < (w + 1) * meetings.size() / windows; ++i) {
      times.push_back(static_cast<double>(meetings[i].end[0] - meetings[0].end[0]));
      differences.push_back(static_cast<double>(meetings[i].end[1] - meetings[i].end[0]));
    }
    points.emplace_back(Median(std::move(times)), Median(std::move(differences)));
  }
  std::vector<double> slopes;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = i + 1; j < points.size(); ++j) {
      const double apart = points[j].first - points[i].first;
      if (apart > 0) slopes.push_back((points[j].second - points[i].second) / apart);
    }
  }
  return Median(std::move(slopes));
}

// How the second clock differs from the first.
ClockDifference Compare(const Meetings& meetings) {
  ClockDifference difference;
  difference.known = true;
  difference.collectives = meetings.size();
  difference.at = meetings[0].end[0];
  const double drift = Drift(meetings);
  difference.drift_ppm = drift * 1e6;
  std::vector<double> offsets;
  difference.low_ns = -1e300;
  difference.high_ns = 1e300;
  for (const Meeting& m : meetings) {
    const double drifted = drift * static_cast<double>(m.end[0] - difference.at);
    offsets.push_back(static_cast<double>(m.end[1] - m.end[0]) - drifted);
    const double low = static_cast<double>(m.start[1] - m.end[0]) - drifted;
    const double high = static_cast<double>(m.end[1] - m.start[0]) - drifted;
    difference.low_ns = std::max(difference.low_ns, low);
    difference.high_ns = std::min(difference.high_ns, high);
  }
  std::sort(offsets.begin(), offsets.end());
  difference.offset_ns = Quantile(offsets, 0.5);
  difference.residual_ns = Quantile(offsets, 0.75) - Quantile(offsets, 0.25);
  if (difference.low_ns <= difference.high_ns) {
    difference.offset_ns = std::clamp(difference.offset_ns, difference.low_ns, difference.high_ns);
  }
  return difference;
}

// How c differs from a, by how b differs from a and c from b.
ClockDifference Chain(const ClockDifference& ab, const ClockDifference& bc) {
  ClockDifference ac = bc;
  const double moved =
      ab.drift_ppm / 1e6 * static_cast<double>(bc.at - ab.at) - ab.drift_ppm / 1e6 * ab.offset_ns;
  ac.at = bc.at - static_cast<int64_t>(ab.offset_ns + moved);
  ac.offset_ns = ab.offset_ns + moved + bc.offset_ns;
  ac.drift_ppm = ab.drift_ppm + bc.drift_ppm;
  ac.low_ns = ab.low_ns + moved + bc.low_ns;
  ac.high_ns = ab.high_ns + moved + bc.high_ns;
  ac.residual_ns = std::max(ab.residual_ns, bc.residual_ns);
  ac.collectives = std::min(ab.collectives, bc.collectives);
  ac.through_others = true;
  return ac;
}

}  // namespace

std::vector<ClockDifference> AlignClocks(const Run& run,
                                         const std::vector<CollectiveRun>& collectives) {
  std::vector<ClockDifference> all(run.traces.size());
  for (uint32_t t = 0; t < all.size(); ++t) all[t].trace = t;
  if (all.empty()) return all;
  const AllMeetings meetings(all.size(), collectives);
  all[0].known = true;
  all[0].at = run.traces[0].first_ns;
  std::deque<uint32_t> reached = {0};
  for (; !reached.empty(); reached.pop_front()) {
    const uint32_t from = reached.front();
    std::vector<uint32_t> next;
    for (const uint32_t to : meetings.NeighboursOf(from)) {
      if (all[to].known) continue;
      all[to].known = true;
      next.push_back(to);
    }
    ForEachAtOnce(next.size(), [&](size_t i) {
      const uint32_t to = next[i];
      const ClockDifference step = Compare(meetings.Of(from, to));
      all[to] = from == 0 ? step : Chain(all[from], step);
      all[to].trace = to;
      all[to].reference = 0;
    });
    reached.insert(reached.end(), next.begin(), next.end());
  }
  return all;
}

}  // namespace ranktap::collector
