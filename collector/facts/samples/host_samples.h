// Where a process's Python threads were found, by line of the program: what the agent's sampler
// saw (run --sample).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/trace/run.h"
#include "proto/sample_marks.h"

namespace ranktap::collector {

// A place in a stack.
struct SampledFrame {
  std::string file, function;
  uint32_t line = 0;
  uint32_t parent = 0;      // the caller's number; 0: none
  bool is_package = false;  // its file is of an installed package, of Python itself, or of none
};

// One thread at one place for a while.
struct HostSample {
  uint32_t thread = 0;
  uint32_t frame = 0;  // 0: its stack could not be read
  proto::SampleState state{};
  uint32_t looks = 0;
  int64_t start = 0, end = 0;
  int64_t cpu_ns = 0;
  int64_t queued_ns = 0;  // ready to run, and no CPU ran it
  int64_t major_faults = 0;
  int64_t read_bytes = 0;  // from storage
};

// A look met the main thread in a call that reads this file from storage.
struct FileRead {
  int64_t time = 0;  // in (start, end] of the sample that has the look
  std::string path;
};

// And the main thread of a process that the traced one started.
struct ChildRead {
  uint32_t process = 0;
  FileRead read;
  int64_t ns = 0;  // it stands for
};

// "train.py", "torch/nn/modules/linear.py": as sentences name a file.
std::string ShortFile(std::string_view file);

// A line of the program, and the call of a package below it.
struct ProgramLine {
  uint32_t line = 0;   // number of the innermost frame that is not of a package; 0: there is none
  uint32_t below = 0;  // of the frame that it called; 0: it was at work itself
  bool operator==(const ProgramLine&) const = default;
};

class HostSamples {
 public:
  explicit HostSamples(const Trace& trace);

  bool empty() const { return main_.empty(); }
  // Of all threads, in the order in which they were told.
  const std::vector<HostSample>& all() const { return all_; }
  // In the order of time.
  const std::vector<FileRead>& reads() const { return reads_; }
  // What this thread's looks of (start, end] met, where it is the main one of a child.
  std::span<const ChildRead> ReadsOf(const HostSample& sample) const;
  // nullptr: not told.
  const SampledFrame* Frame(uint32_t number) const;
  // Whose thread it is: a process that the traced one started, or the traced one itself.
  uint32_t ProcessOf(uint32_t thread) const;
  ProgramLine LineOf(uint32_t frame) const;
  // "train.py:97 (main)", with ", in logging/__init__.py (StreamHandler.flush)" of what is below.
  std::string Describe(const ProgramLine& line) const;

  // Calls visit(sample, ns) for what the main thread did in [start, end), in order.
  template <typename Visit>
  void ForEachOfMain(int64_t start, int64_t end, Visit&& visit) const;
  // Calls visit(sample, looks) for those that the main thread was given in (start, end], in order.
  template <typename Visit>
  void ForEachLookAtMain(int64_t start, int64_t end, Visit&& visit) const;

  uint32_t main_thread() const { return main_thread_; }
  // When the main thread was first and last looked at; both 0: never.
  std::pair<int64_t, int64_t> span() const {
    if (main_.empty()) return {0, 0};
    return {main_.front().start, main_.back().end};
  }

 private:
  void ReadFrames(const Trace& trace);
  void ReadChildren(const Trace& trace);
  void ReadSamples(const Trace& trace);
  void ReadReads(const Trace& trace);
  void ReadChildReads(const Trace& trace);

  uint32_t main_thread_ = 0;
  std::unordered_map<uint32_t, SampledFrame> frames_;
  std::unordered_map<uint32_t, uint32_t> children_;  // process, by thread
  std::vector<HostSample> all_;
  std::vector<FileRead> reads_;
  std::vector<ChildRead> child_reads_;  // by process and time
  std::vector<HostSample> main_;        // by start, disjoint
};

// Worked out once and kept in the trace's memo.
const HostSamples& SamplesOf(const Trace& trace);

template <typename Visit>
void HostSamples::ForEachOfMain(int64_t start, int64_t end, Visit&& visit) const {
  auto at = std::ranges::upper_bound(main_, start, {}, &HostSample::end);
  for (; at != main_.end() && at->start < end; ++at) {
    const int64_t ns = std::min(end, at->end) - std::max(start, at->start);
    if (ns > 0) visit(*at, ns);
  }
}

template <typename Visit>
void HostSamples::ForEachLookAtMain(int64_t start, int64_t end, Visit&& visit) const {
  ForEachOfMain(start, end + 1, [&](const HostSample& sample, int64_t) {
    // Looks are evenly spaced, and the last one ended the sample.
    const auto until = [&sample](int64_t time) {
      const double part =
          static_cast<double>(time - sample.start) / static_cast<double>(sample.end - sample.start);
      return static_cast<int64_t>(std::clamp(part, 0.0, 1.0) * sample.looks);
    };
    if (const int64_t looks = until(end) - until(start); looks > 0) visit(sample, looks);
  });
}

// Time by line, to name the one that has more than half of it. A look counts where it was taken,
// for the time since the look before: a pass shorter than that must not get its neighbours' line.
class LineTally {
 public:
  // Of the main thread's time in (start, end].
  void Add(const HostSamples& samples, int64_t start, int64_t end);
  void Add(const LineTally& other);
  // "train.py:97 (main)"; empty where no line of the program has more than half of all that was
  // added, where less than half of that was seen, or where few looks say so.
  std::string Most() const;

 private:
  struct Seen {
    int64_t ns = 0, looks = 0;
  };
  std::unordered_map<std::string, Seen> by_line_;
  int64_t total_ns_ = 0, looked_ns_ = 0;
};

}  // namespace ranktap::collector
