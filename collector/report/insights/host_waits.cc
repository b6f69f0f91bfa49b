#include "collector/report/insights/host_waits.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "collector/facts/samples/host_samples.h"

namespace ranktap::collector {
namespace {

constexpr uint8_t kHostToDevice = 1, kDeviceToHost = 2;  // CUpti_ActivityMemcpyKind
// PyTorch's copy_ synchronises right after cudaMemcpyAsync: 2 to 12 us in traces of A100 and H100.
constexpr int64_t kAfterCopyNs = 20'000;

WaitFor KindOf(const Copies& copies, uint32_t copy) {
  if (copy == kNone) return WaitFor::kAnything;
  if (copies.copy_kind[copy] == kDeviceToHost) return WaitFor::kRead;
  return copies.copy_kind[copy] == kHostToDevice ? WaitFor::kUpload : WaitFor::kAnything;
}

// Copies by the call that launched them, of each thread by the call's start.
class CopyCalls {
 public:
  explicit CopyCalls(const Trace& trace) : trace_(trace), by_writer_(trace.writers.size()) {
    for (uint32_t i = 0; i < trace.copies.size(); ++i) {
      const uint32_t launch = trace.copies.launch[i];
      if (launch == kNone) continue;
      by_launch_[launch] = i;
      const uint16_t writer = trace.api_calls.writer[launch];
      if (writer < by_writer_.size()) by_writer_[writer].push_back(launch);
    }
    for (std::vector<uint32_t>& calls : by_writer_) std::ranges::sort(calls);
  }
  uint32_t CopyOf(const HostWait& wait) const {
    if (wait.calls == &trace_.api_calls) {
      if (const auto own = by_launch_.find(wait.row); own != by_launch_.end()) return own->second;
    }
    if (wait.writer() >= by_writer_.size()) return kNone;
    const std::vector<uint32_t>& calls = by_writer_[wait.writer()];
    const ApiCalls& table = trace_.api_calls;
    const auto after = std::ranges::upper_bound(
        calls, wait.start, {}, [&table](uint32_t call) { return table.start[call]; });
    if (after == calls.begin()) return kNone;
    const uint32_t last = *std::prev(after);
    const bool is_near = wait.start - table.end[last] <= kAfterCopyNs;
    return is_near ? by_launch_.at(last) : kNone;
  }

 private:
  const Trace& trace_;
  std::unordered_map<uint32_t, uint32_t> by_launch_;
  std::vector<std::vector<uint32_t>> by_writer_;
};

// Visits the idle moments that began in a wait: visit(index of the wait, piece).
template <typename Visit>
void ForEachIdleAfterWait(const RankFacts& rank, Visit&& visit) {
  const std::vector<LostPiece>& pieces = rank.lost(Cause::kSync);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const HostWait* const wait = rank.WaitAt(rank.dry_since()[i]);
    if (wait != nullptr) visit(static_cast<size_t>(wait - rank.waits().data()), pieces[i]);
  }
}

// A place that has a line already ("aten::item at train.py(31): step") keeps it.
std::string WithLine(std::string where, const std::string& line) {
  if (line.empty() || where.find(".py") != where.npos) return where;
  return where.empty() ? line : where + " at " + line;
}

}  // namespace

std::vector<WaitReason> ReasonsOfWaits(const RankFacts& rank) {
  const CopyCalls copies(rank.trace());
  std::vector<WaitReason> reasons;
  reasons.reserve(rank.waits().size());
  for (const HostWait& wait : rank.waits()) {
    if (wait.api.find("EventQuery") != wait.api.npos) {
      reasons.push_back({WaitFor::kPoll, kNone});
      continue;
    }
    const uint32_t copy = copies.CopyOf(wait);
    reasons.push_back({KindOf(rank.trace().copies, copy), copy});
  }
  return reasons;
}

std::string_view WaitsAtPlace::MostCalled() const {
  if (calls.empty()) return "";
  return std::ranges::max_element(calls, {}, [](const auto& entry) { return entry.second; })->first;
}

std::vector<WaitsAtPlace> WaitsByPlace(const RankFacts& rank, WaitFor what) {
  const std::vector<WaitReason> reasons = ReasonsOfWaits(rank);
  std::map<std::string, WaitsAtPlace> by_place;
  std::vector<WaitsAtPlace*> of_wait(reasons.size());
  std::map<std::string, LineTally> lines;
  const HostSamples& samples = SamplesOf(rank.trace());
  std::set<uint32_t> read;  // copies: the call that copies waits, and what synchronises after it
  for (size_t i = 0; i < reasons.size(); ++i) {
    const HostWait& wait = rank.waits()[i];
    if (reasons[i].what != what || !rank.IsCounted(wait.start)) continue;
    const std::string where = rank.PlaceOf(wait);
    WaitsAtPlace& place = by_place[where];
    lines[where].Add(samples, wait.start, wait.end);
    of_wait[i] = &place;
    ++place.calls[std::string(wait.api)];
    const uint32_t copy = reasons[i].copy;
    if (copy == kNone || read.insert(copy).second) ++place.count;
    place.host_ns += wait.end - wait.start;
  }
  ForEachIdleAfterWait(rank, [&](size_t wait, const LostPiece& piece) {
    if (of_wait[wait] == nullptr) return;
    of_wait[wait]->idle_ns += piece.length();
    of_wait[wait]->moments.emplace_back(piece.start, piece.end);
  });
  std::vector<WaitsAtPlace> places;
  for (auto& [where, place] : by_place) {
    place.where = WithLine(where, lines[where].Most());
    places.push_back(std::move(place));
  }
  std::ranges::stable_sort(places, std::greater(), &WaitsAtPlace::idle_ns);
  return places;
}

std::vector<Interval> IdleAfterWaits(const RankFacts& rank, const std::vector<bool>& picks) {
  std::vector<Interval> moments;
  ForEachIdleAfterWait(rank, [&](size_t wait, const LostPiece& piece) {
    if (picks[wait]) moments.emplace_back(piece.start, piece.end);
  });
  return moments;
}

}  // namespace ranktap::collector
