#include "collector/ingest/store/kept_segments.h"

#include <algorithm>
#include <utility>

namespace ranktap::collector {
namespace {

constexpr uint64_t kSegments = 6;  // that the limits are of
constexpr uint64_t kShortestNs = 1'000'000'000, kLongestNs = 60'000'000'000;

}  // namespace

uint64_t KeptSegments::LengthNs(KeepLimits limits) {
  return limits.any() ? std::clamp(limits.ns / kSegments, kShortestNs, kLongestNs) : 0;
}

void KeptSegments::NoteEvents(uint64_t open_bytes) {
  has_events_ = true;
  open_bytes_ = std::max(open_bytes_, open_bytes);
}

bool KeptSegments::IsDue(uint64_t now_ns) const {
  const bool is_long = limits_.bytes != 0 && open_bytes_ >= limits_.bytes / kSegments;
  return has_events_ && (now_ns - begun_ns_ >= LengthNs(limits_) || is_long);
}

void KeptSegments::Add(const std::string& session, const std::string& file, uint64_t bytes) {
  closed_.push_back({session, file, bytes});
  bytes_[session] += bytes;
}

void KeptSegments::EndSegment(uint64_t now_ns) {
  ended_.push_back({begun_ns_, now_ns, std::exchange(closed_, {})});
  begun_ns_ = now_ns;
  has_events_ = false;
  open_bytes_ = 0;
}

uint64_t KeptSegments::BytesOf(const std::string& session) const {
  const auto bytes = bytes_.find(session);
  return bytes == bytes_.end() ? 0 : bytes->second;
}

uint64_t KeptSegments::BytesOfLargest() const {
  uint64_t largest = 0;
  for (const auto& [session, bytes] : bytes_) largest = std::max(largest, bytes);
  return largest;
}

void KeptSegments::Subtract(const File& file) {
  const auto bytes = bytes_.find(file.session);
  if (bytes == bytes_.end()) return;
  bytes->second -= std::min(bytes->second, file.bytes);
  if (bytes->second == 0) bytes_.erase(bytes);
}

std::vector<std::string> KeptSegments::TakeOld() {
  std::vector<std::string> gone;
  while (ended_.size() > 1) {
    uint64_t others_ns = 0;
    for (size_t i = 1; i < ended_.size(); ++i) others_ns += ended_[i].end_ns - ended_[i].begin_ns;
    const bool is_too_much = limits_.bytes != 0 && BytesOfLargest() > limits_.bytes;
    if (others_ns < limits_.ns && !is_too_much) break;
    for (File& file : ended_.front().files) {
      Subtract(file);
      gone.push_back(std::move(file.name));
    }
    ended_.pop_front();
  }
  return gone;
}

bool KeptSegments::Has(const std::string& file) const {
  const auto is_it = [&](const File& one) { return one.name == file; };
  return std::ranges::any_of(closed_, is_it) ||
         std::ranges::any_of(ended_, [&](const Segment& segment) {
           return std::ranges::any_of(segment.files, is_it);
         });
}

std::vector<std::string> KeptSegments::FilesOf(const std::string& session) const {
  std::vector<std::string> names;
  const auto add = [&](const File& file) {
    if (file.session == session) names.push_back(file.name);
  };
  for (const Segment& segment : ended_) std::ranges::for_each(segment.files, add);
  std::ranges::for_each(closed_, add);
  return names;
}

void KeptSegments::Replace(const std::string& session, const std::string& file, uint64_t bytes) {
  const auto is_of_it = [&](const File& one) { return one.session == session; };
  for (Segment& segment : ended_) std::erase_if(segment.files, is_of_it);
  std::erase_if(closed_, is_of_it);
  bytes_.erase(session);
  Add(session, file, bytes);
}

KeptSegments::Interval KeptSegments::Since(uint64_t from_ns) const {
  Interval interval;
  for (const Segment& segment : ended_) {
    if (segment.end_ns <= from_ns) continue;
    if (interval.end_ns == 0) interval.begin_ns = segment.begin_ns;
    interval.end_ns = segment.end_ns;
    for (const File& file : segment.files) interval.files[file.session].push_back(file.name);
  }
  return interval;
}

}  // namespace ranktap::collector
