// Runs of equal looks.
// Runs on: the sampler.  May not: allocate.
#include "agent/sources/samples/thread_runs.h"

#include <limits>

namespace ranktap::agent::samples {
namespace {

// A thread that stands still is told of this often: a process that is killed has not lost its last
// minutes.
constexpr uint32_t kMostLooks = 100;

}  // namespace

size_t ThreadRuns::Find(int32_t thread) const {
  size_t i = 0;
  while (i < count_ && runs_[i].thread != thread) ++i;
  return i;
}

uint64_t ThreadRuns::SinceLook(int32_t thread, size_t which, uint64_t count) const {
  const size_t i = Find(thread);
  if (i == count_ || count < runs_[i].at[which]) return std::numeric_limits<uint64_t>::max();
  return count - runs_[i].at[which];
}

void ThreadRuns::Tell(const Run& run, SampleLines& lines) {
  if (run.looks == 0) return;
  lines.AddSample({.thread = run.thread,
                   .frame = run.frame,
                   .state = run.state,
                   .looks = run.looks,
                   .start_ticks = run.start_ticks,
                   .end_ticks = run.end_ticks,
                   .counts = run.counts});
}

void ThreadRuns::Restart(Run* run) {
  run->start_ticks = run->end_ticks;
  run->looks = 0;
  run->counts = {};
}

void ThreadRuns::Add(const Look& look, SampleLines& lines) {
  const size_t i = Find(look.thread);
  if (i == kMostThreads) return;
  Run& run = runs_[i];
  const bool is_first = i == count_;
  if (is_first) {
    ++count_;
    // Nobody knows what it did before the first look.
    run = {.thread = look.thread,
           .frame = look.frame,
           .looks = 0,
           .state = look.state,
           .start_ticks = now_ticks_,
           .end_ticks = now_ticks_,
           .counts = {},
           .at = look.counts,
           .round = round_,
           .is_cut = false};
    return;
  }
  if (run.frame != look.frame || run.state != look.state || run.looks >= kMostLooks) {
    Tell(run, lines);
    Restart(&run);
    run.frame = look.frame;
    run.state = look.state;
  }
  run.is_cut = false;
  ++run.looks;
  run.end_ticks = now_ticks_;
  for (size_t c = 0; c < look.counts.size(); ++c) {
    // A thread that took the number of one that has ended counts from 0.
    run.counts[c] += look.counts[c] >= run.at[c] ? look.counts[c] - run.at[c] : 0;
  }
  run.at = look.counts;
  run.round = round_;
}

void ThreadRuns::EndRound(SampleLines& lines) {
  for (size_t i = 0; i < count_;) {
    if (runs_[i].round == round_) {
      ++i;
      continue;
    }
    Tell(runs_[i], lines);
    runs_[i] = runs_[--count_];
  }
}

void ThreadRuns::Cut(SampleLines& lines) {
  for (size_t i = 0; i < count_; ++i) {
    Tell(runs_[i], lines);
    Restart(&runs_[i]);
    runs_[i].is_cut = true;
  }
}

void ThreadRuns::Close(SampleLines& lines) {
  for (size_t i = 0; i < count_; ++i) Tell(runs_[i], lines);
  count_ = 0;
}

}  // namespace ranktap::agent::samples
