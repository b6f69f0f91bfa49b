#include <algorithm>
#include <array>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/collectives.h"
#include "collector/file/json.h"
#include "collector/report/cells.h"
#include "collector/report/claims/transfer.h"
#include "collector/report/page/page_pictures.h"

namespace ranktap::collector {
namespace {

// Together; a screen has 4,000 columns at most, and a person zooms in 10 times.
constexpr int64_t kBins = 640'000, kFewestBins = 2'000, kMostBins = 40'000;

// Takes pieces in the order of time.
class BinnedLane {
 public:
  BinnedLane(int64_t start, int64_t end, int64_t bins)
      : start_(start), width_(std::max<int64_t>(1, (end - start + bins - 1) / bins)) {}

  void Add(Cause cause, int64_t from, int64_t until) {
    from = std::max(from, start_);
    while (from < until) {
      const int64_t bin = (from - start_) / width_;
      if (bin != bin_) Close(bin);
      const int64_t part = std::min(until, start_ + (bin + 1) * width_) - from;
      held_[static_cast<size_t>(cause)] += part;
      from += part;
      // The bins that one piece fills need no sums.
      const int64_t whole = (until - from) / width_;
      if (from == start_ + (bin + 1) * width_ && whole > 0) {
        Close(bin + 1);
        Put(LetterOf(cause), whole);
        bin_ += whole;
        from += whole * width_;
      }
    }
  }
  std::string Take() {
    Close(bin_ + 1);
    Put(0, 1);
    return std::move(text_);
  }
  int64_t width() const { return width_; }

 private:
  static char LetterOf(Cause cause) { return static_cast<char>('a' + static_cast<int>(cause)); }

  // Ends the bin that is open and leaves out those up to `next`.
  void Close(int64_t next) {
    const auto most = std::max_element(held_.begin(), held_.end());
    const bool is_empty = *most == 0;
    Put(is_empty ? '.' : static_cast<char>('a' + (most - held_.begin())), 1);
    if (next > bin_ + 1) Put('.', next - bin_ - 1);
    held_.fill(0);
    bin_ = next;
  }
  void Put(char letter, int64_t count) {
    if (letter == letter_) {
      count_ += count;
      return;
    }
    if (count_ > 0) text_ += letter_;
    if (count_ > 1) text_ += std::to_string(count_);
    letter_ = letter;
    count_ = count;
  }

  int64_t start_, width_, bin_ = 0;
  std::array<int64_t, kCauses> held_{};
  std::string text_;
  char letter_ = 0;
  int64_t count_ = 0;
};

// A rank without a device: what its host did.
void AddHost(const Run& run, size_t t, int64_t start, int64_t end, BinnedLane* lane) {
  const Trace& trace = run.traces[t];
  std::vector<Interval> waits, transfers;
  for (const CollectiveRun& call : MatchHostCollectives(run)) {
    const int64_t transfer = call.shortest();
    for (const CollectiveMember& member : call.members) {
      if (member.trace != t) continue;
      waits.emplace_back(member.start, member.end - transfer);
      transfers.emplace_back(member.end - transfer, member.end);
    }
  }
  Explained explained = PausesOfHost(trace);
  explained.Add(Cause::kWait, Merged(std::move(waits)));
  explained.Add(Cause::kTransfer, Merged(std::move(transfers)));
  AddPasses(trace, &explained);
  PieceCursor pieces(explained.Take());
  pieces.Split(start, end, Cause::kHost,
               [lane](int64_t from, int64_t until, Cause cause) { lane->Add(cause, from, until); });
}

}  // namespace

int64_t FirstEvent(const Run& run) {
  int64_t first = 0;
  for (const Trace& trace : run.traces) {
    if (trace.first_ns != 0 && (first == 0 || trace.first_ns < first)) first = trace.first_ns;
  }
  return first;
}

Json PageLanes(const Run& run) {
  const int64_t first = FirstEvent(run);
  Json lanes = {{"causes", Json::array()}, {"ranks", Json::array()}};
  for (size_t c = 0; c < kCauses; ++c) {
    lanes["causes"].push_back(SaidName(static_cast<Cause>(c), TellsWaiting(run)));
  }
  const auto ranks = static_cast<int64_t>(std::max<size_t>(run.traces.size(), 1));
  const int64_t bins = std::clamp(kBins / ranks, kFewestBins, kMostBins);
  const auto& waits = WaitsForOtherRanks(run);
  for (size_t t = 0; t < run.traces.size(); ++t) {
    const Trace& trace = run.traces[t];
    const DeviceSpans& spans = DeviceTimeline(trace);
    int64_t from = trace.first_ns, until = trace.last_ns;
    for (const DeviceSpan& span : spans) until = std::max(until, span.end);
    if (until <= from) continue;
    BinnedLane lane(from, until, bins);
    if (spans.empty()) {
      AddHost(run, t, from, until, &lane);
    } else {
      SweepDevice(trace, waits[t], from, until,
                  [&lane](Cause cause, int64_t a, int64_t b, uint32_t) { lane.Add(cause, a, b); });
    }
    lanes["ranks"].push_back({{"name", RankName(trace)},
                              {"trace", t},
                              {"start_ns", from - first},
                              {"bin_ns", lane.width()},
                              {"bins", lane.Take()}});
  }
  return lanes;
}

}  // namespace ranktap::collector
