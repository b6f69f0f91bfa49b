#include "collector/facts/device_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "collector/facts/device_search.h"
#include "collector/facts/stream_waits.h"
#include "collector/facts/sync_calls.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostMoves = 8;  // of each piece of work
constexpr size_t kMostSteps = 8;  // of searches, for each piece

std::vector<DeviceReturn> ReturnsOf(const Trace& trace) {
  std::vector<DeviceReturn> returns;
  ForEachSyncCall(trace, [&](const ApiCalls& calls, size_t i) {
    const std::string_view name = trace.dictionary.Api(calls.api[i]).name;
    returns.push_back({.called = calls.start[i],
                       .returned = calls.end[i],
                       .row = static_cast<uint32_t>(i),
                       .writer = calls.writer[i],
                       .is_event_call = &calls != &trace.api_calls,
                       .only_asks = name.find("Query") != name.npos});
  });
  std::ranges::sort(returns, {}, [](const DeviceReturn& back) {
    return std::tuple(back.returned, back.called, back.is_event_call, back.row);
  });
  return returns;
}

}  // namespace

StreamsOfSyncs::StreamsOfSyncs(const Trace& trace)
    : trace_(trace), named_(CallsOfSyncRecords(trace)) {
  for (size_t i = 0; i < trace.syncs.size(); ++i) {
    if (trace.syncs.stream[i] != kNone) {
      by_correlation_.emplace(trace.syncs.correlation[i], trace.syncs.stream[i]);
    }
  }
}

uint32_t StreamsOfSyncs::Of(const DeviceReturn& back) const {
  uint32_t correlation = 0;
  if (back.is_event_call) {
    correlation = trace_.event_calls.correlation[back.row];
  } else {
    const auto at = std::ranges::lower_bound(named_, back.row, {}, &CallOfRecord::row);
    if (at == named_.end() || at->row != back.row) return kNone;
    correlation = at->correlation;
  }
  const auto found = by_correlation_.find(correlation);
  return found == by_correlation_.end() ? kNone : found->second;
}

DeviceOrder::DeviceOrder(const Trace& trace, int64_t clock_ns)
    : trace_(trace), spans_(DeviceTimeline(trace)) {
  StreamNumbers streams;
  std::vector<uint32_t> last, stream_of(spans_.size());
  // Work by start is nearly by end. Sorting took 11 % of `report critical-path` on 4.8 M pieces.
  const size_t most = kMostMoves * spans_.size();
  size_t moves = 0;
  before_.resize(spans_.size());
  by_end_.resize(spans_.size());
  int64_t latest = INT64_MIN;  // end, so far
  uint32_t i = 0;
  for (const DeviceSpan& span : spans_) {
    const uint32_t stream = streams.Of(span);
    if (stream == last.size()) last.push_back(kNone);
    stream_of[i] = stream;
    before_[i] = std::exchange(last[stream], i);
    size_t at = i;
    if (span.end < latest) {
      for (; at > 0 && moves <= most && spans_[by_end_[at - 1]].end > span.end; --at, ++moves) {
        by_end_[at] = by_end_[at - 1];
      }
    }
    by_end_[at] = i++;
    latest = std::max(latest, span.end);
  }
  if (moves > most) {
    std::ranges::stable_sort(by_end_, {}, [this](uint32_t work) { return spans_[work].end; });
  }
  FindAwaited(clock_ns, streams, stream_of);
}

uint32_t DeviceOrder::LastEnded(int64_t time) const {
  const auto after =
      std::ranges::upper_bound(by_end_, time, {}, [this](uint32_t i) { return spans_[i].end; });
  return after == by_end_.begin() ? kNone : *std::prev(after);
}

// `work` or what came before it on its stream: the last that was launched by `called` and had ended
// by `ended`; kNone: none.
uint32_t DeviceOrder::LaunchedBy(uint32_t work, int64_t called, int64_t ended) const {
  while (work != kNone && (Launched(work) > called || spans_[work].end > ended)) {
    work = before_[work];
  }
  return work;
}

void DeviceOrder::FindAwaited(int64_t clock_ns, const StreamNumbers& streams,
                              const std::vector<uint32_t>& stream_of) {
  const StreamsOfSyncs synced(trace_);
  returns_ = ReturnsOf(trace_);
  std::vector<uint32_t> ended(streams.size(), kNone);  // what ended last on each, so far
  const std::vector<uint32_t> sorted = streams.Sorted();
  auto next = by_end_.begin();
  for (DeviceReturn& back : returns_) {
    const int64_t until = back.returned + clock_ns;
    for (; next != by_end_.end() && spans_[*next].end <= until; ++next) {
      ended[stream_of[*next]] = *next;
    }
    const uint32_t only = synced.Of(back);
    back.first = static_cast<uint32_t>(awaited_.size());
    for (const uint32_t stream : sorted) {
      if (only != kNone && only != streams[stream].second) continue;
      const uint32_t work = LaunchedBy(ended[stream], back.called, until);
      if (work == kNone) continue;
      awaited_.push_back(work);
      if (back.latest == kNone || spans_[work].end > spans_[back.latest].end) back.latest = work;
    }
  }
}

std::span<const uint32_t> DeviceOrder::AwaitedBy(const DeviceReturn& back) const {
  const size_t after = static_cast<size_t>(&back - returns_.data()) + 1;
  const size_t end = after < returns_.size() ? returns_[after].first : awaited_.size();
  return {awaited_.data() + back.first, end - back.first};
}

std::vector<std::pair<uint32_t, uint32_t>> DeviceOrder::EventWaits() const {
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  const std::map<uint32_t, std::vector<StreamWait>> waits = StreamWaits(trace_);
  if (waits.empty()) return edges;
  struct Progress {
    uint32_t last = kNone;  // work, so far
    size_t heeded = 0;      // of the waits
  };
  StreamNumbers streams;
  std::vector<Progress> progress;
  for (uint32_t i = 0; i < spans_.size(); ++i) {
    const uint32_t stream = streams.Of(spans_[i]);
    if (stream == progress.size()) progress.emplace_back();
    Progress& own = progress[stream];
    own.last = i;
    const auto of = waits.find(spans_[i].stream);
    if (of == waits.end() || spans_[i].launch == kNone) continue;
    for (; own.heeded < of->second.size(); ++own.heeded) {
      const StreamWait& wait = of->second[own.heeded];
      if (wait.called > Launched(i)) break;
      const uint32_t other = streams.Find(spans_[i].device, wait.on);
      if (other == kNone) continue;
      const uint32_t work = LaunchedBy(progress[other].last, wait.called, spans_[i].start);
      if (work != kNone && work != i) edges.emplace_back(i, work);
    }
  }
  return edges;
}

NearbyOrder::NearbyOrder(const Trace& trace, bool is_little)
    : trace_(trace), spans_(DeviceTimeline(trace)), longest_ns_(LongestWork(trace)) {
  if (is_little) steps_left_ = kMostSteps * spans_.size();
}

const DeviceOrder& NearbyOrder::Whole() {
  if (!whole_) whole_.emplace(trace_);
  return *whole_;
}

uint32_t NearbyOrder::Before(uint32_t work) {
  const DeviceSpan of = spans_[work];
  for (uint32_t i = work; i-- > 0 && steps_left_ > 0;) {
    --steps_left_;
    if (spans_[i].stream == of.stream && spans_[i].device == of.device) return i;
  }
  return steps_left_ > 0 ? kNone : Whole().Before(work);
}

NearbyOrder::Ended NearbyOrder::FindEnded(int64_t time, uint32_t near) {
  Ended ended;
  int64_t end = INT64_MIN;
  for (size_t i = FirstAfter(spans_, time, near); i-- > 0 && steps_left_ > 0; --steps_left_) {
    const int64_t start = spans_[i].start, of = spans_[i].end;
    if (ended.last != kNone && start + longest_ns_ < end)
      break;  // nor does any before it end later
    if (of > time || of < end) continue;
    ended.is_tied = ended.last != kNone && of == end;
    if (!ended.is_tied) ended.last = static_cast<uint32_t>(i);
    end = of;
  }
  ended.is_known = steps_left_ > 0;
  return ended;
}

uint32_t NearbyOrder::LastEnded(int64_t time, uint32_t near) {
  if (steps_left_ == 0) return Whole().LastEnded(time);
  const Ended ended = FindEnded(time, near);
  return ended.is_known ? ended.last : Whole().LastEnded(time);
}

const std::vector<DeviceReturn>& NearbyOrder::returns() {
  if (!synced_) {
    synced_.emplace(trace_);
    returns_ = ReturnsOf(trace_);
  }
  return returns_;
}

uint32_t NearbyOrder::LatestOf(const DeviceReturn& back, uint32_t near) {
  if (steps_left_ > 0) {
    const auto [last, is_tied, is_known] = FindEnded(back.returned, near);
    if (is_known && last == kNone) return kNone;
    if (is_known && !is_tied) {
      // What ended last of all is what ended last on its stream.
      const uint32_t only = synced_->Of(back), launch = spans_[last].launch;
      const bool was_launched = launch == kNone || trace_.api_calls.start[launch] <= back.called;
      if (was_launched && (only == kNone || only == spans_[last].stream)) return last;
    }
  }
  return Whole().returns()[static_cast<size_t>(&back - returns_.data())].latest;
}

}  // namespace ranktap::collector
