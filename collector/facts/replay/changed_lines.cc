#include "collector/facts/replay/changed_lines.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <charconv>
#include <iterator>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/facts/replay/host_pieces.h"
#include "collector/facts/replay/step_places.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/samples/thread_purposes.h"

namespace ranktap::collector {
namespace {

class WantedLine {
 public:
  WantedLine(const HostSamples& samples, std::string_view text) : samples_(samples) {
    const size_t colon = text.rfind(':');
    if (colon == text.npos) return;
    file_ = text.substr(0, colon);
    const std::string_view number = text.substr(colon + 1);
    std::from_chars(number.data(), number.data() + number.size(), line_);
  }
  bool is_one() const { return !file_.empty() && line_ != 0; }
  // The line is the frame's, or that of one that called it.
  bool Has(uint32_t number) {
    if (number == 0) return false;
    if (const auto found = known_.find(number); found != known_.end()) return found->second;
    const SampledFrame* const frame = samples_.Frame(number);
    bool has = false;
    if (frame != nullptr) {
      const bool is_in_file = IsInFile(*frame);
      if (is_in_file) seen_.insert(frame->line);
      has = (is_in_file && frame->line == line_) | Has(frame->parent);
    }
    known_[number] = has;
    return has;
  }
  // Lines of its file that a stack went through.
  const std::set<uint32_t>& seen() const { return seen_; }
  uint32_t number() const { return line_; }

 private:
  bool IsInFile(const SampledFrame& frame) const {
    if (!frame.file.ends_with(file_)) return false;
    const size_t before = frame.file.size() - file_.size();
    return before == 0 || frame.file[before - 1] == '/';
  }
  const HostSamples& samples_;
  std::string_view file_;
  uint32_t line_ = 0;
  std::set<uint32_t> seen_;
  std::unordered_map<uint32_t, bool> known_;
};

struct Seen {
  int64_t ns = 0, of_line = 0;
  double part() const { return ns == 0 ? 0 : static_cast<double>(of_line) / ns; }
};

// The thread of the steps: samples are 10 ms apart, so that the line's part of a step is that of
// all steps, by place.
bool ChangeMain(const Run& run, uint32_t t, const Change& change, WantedLine* line,
                GraphEdit* edit) {
  const HostSamples& samples = SamplesOf(run.traces[t]);
  const StepPlaces& places = StepPlacesOf(run);
  const JobGraph& job = JobGraphOf(run);
  std::vector<Seen> by_place(places.names.size());
  bool any = false;
  const auto add_looks = [&](int64_t begin, int64_t end) {
    samples.ForEachOfMain(begin, end, [&](const HostSample& sample, int64_t) {
      const int64_t looks = std::max<int64_t>(sample.looks, 1);
      const int64_t each = (sample.end - sample.start) / looks;
      const bool has = line->Has(sample.frame);
      for (int64_t look = 1; look <= looks; ++look) {
        const uint32_t place = places.At(t, sample.start + look * each - 1);
        if (place == kNone) continue;
        by_place[place].ns += each;
        if (has) by_place[place].of_line += each;
        any |= has;
      }
    });
  };
  const std::vector<PlacedTime>& pieces = places.pieces[t];
  if (!pieces.empty()) add_looks(pieces.front().begin, pieces.back().end);
  HostPieces touched;
  for (const PlacedTime& piece : pieces) {
    const double part = by_place[piece.place].part();
    if (part > 0) touched.push_back({piece.begin, piece.end, part});
  }
  ScaleHost(run, t, touched, change.factor, edit);
  // A wait that the line makes goes with it.
  if (change.factor != 0) return any;
  Seen all;
  std::vector<Seen> of_wait;
  for (const ThreadWait& wait : job.waits[t]) {
    Seen& seen = of_wait.emplace_back();
    samples.ForEachOfMain(wait.begin, wait.end, [&](const HostSample& sample, int64_t ns) {
      seen.ns += ns;
      if (line->Has(sample.frame)) seen.of_line += ns;
    });
    all.ns += seen.ns;
    all.of_line += seen.of_line;
  }
  constexpr int64_t kSeenWellNs = 30'000'000;
  for (size_t i = 0; i < of_wait.size(); ++i) {
    const Seen& by = of_wait[i].ns >= kSeenWellNs ? of_wait[i] : all;
    const uint32_t after = job.waits[t][i].after;
    if (by.part() <= 0.5 || after == kNone) continue;
    any = true;
    for (uint32_t e = job.graph.first_edge[after]; e < job.graph.first_edge[after + 1]; ++e) {
      if (job.graph.edge_kind[e] != EdgeKind::kThread) edit->without[e] = true;
    }
  }
  return any;
}

// The workers of a loader make their batches in so much less.
bool ChangeLineOfWorkers(const Run& run, uint32_t t, const Change& change, WantedLine* line,
                         GraphEdit* edit) {
  const ThreadPurposes& purposes = PurposesOf(run.traces[t]);
  Seen seen;
  for (const HostSample& sample : SamplesOf(run.traces[t]).all()) {
    if (purposes.LoaderWorkerOf(sample.thread) < 0) continue;
    const LoaderWork work = purposes.WorkOf(sample);
    if (work < LoaderWork::kReads) continue;
    seen.ns += sample.end - sample.start;
    if (line->Has(sample.frame)) seen.of_line += sample.end - sample.start;
  }
  if (seen.of_line == 0) return false;
  const TimedGraph& graph = JobGraphOf(run).graph;
  for (uint32_t node = 0; node < graph.size(); ++node) {
    if (graph.trace[node] != t || graph.kind[node] != NodeKind::kBatch) continue;
    edit->share[node] *= 1 - (1 - change.factor) * seen.part();
  }
  return true;
}

// Why the line of `change` is none of those of its file that were seen within steps.
Failure NoSample(const Change& change, uint32_t line, const std::set<uint32_t>& seen) {
  if (seen.empty()) {
    return Failure{fmt::format(
        "nobody saw the file of {} within a step: report RUN host names lines", change.what)};
  }
  const auto after = seen.lower_bound(line);
  std::vector<uint32_t> nearest;
  if (after != seen.begin()) nearest.push_back(*std::prev(after));
  if (after != seen.end()) nearest.push_back(*after);
  return Failure{
      fmt::format("no sample within a step is on {}: the nearest {} {}", change.what,
                  nearest.size() == 1 ? "line that has some is" : "lines that have some are",
                  fmt::join(nearest, " and "))};
}

}  // namespace

std::optional<Failure> ChangeLine(const Run& run, const Change& change, GraphEdit* edit) {
  bool any = false, has_samples = false;
  std::set<uint32_t> seen;
  uint32_t number = 0;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    const HostSamples& samples = SamplesOf(run.traces[t]);
    WantedLine line(samples, change.what);
    if (!line.is_one()) {
      return Failure{fmt::format("'{}' is no line: --line FILE:LINE, as train.py:93", change.what)};
    }
    has_samples |= !samples.empty();
    any |= ChangeMain(run, t, change, &line, edit);
    any |= ChangeLineOfWorkers(run, t, change, &line, edit);
    seen.insert(line.seen().begin(), line.seen().end());
    number = line.number();
  }
  if (any) return std::nullopt;
  if (!has_samples) return Failure{"nobody looked at the program's lines: run --sample 10ms does"};
  return NoSample(change, number, seen);
}

}  // namespace ranktap::collector
