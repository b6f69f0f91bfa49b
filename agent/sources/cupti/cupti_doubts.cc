// When CUPTI is not to be believed: times of another clock, no ids, no records at all, its own end.
// Runs on: the drain thread.  May not: make a session.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "agent/core/announcements.h"
#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/log.h"
#include "agent/interpose/got_patcher.h"
#include "agent/interpose/module_symbols.h"
#include "agent/sources/cupti/cupti_broker.h"
#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_drain.h"

namespace ranktap::agent::cupti {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

void Note(const std::string& text) {
  Log(text);
  AnnounceNote(text);
}

}  // namespace

// For good: what CUPTI could not mend would come again, and take more of the program's time.
void Drain::GiveUp() {
  if (!session_->armed()) return;
  ClearCapture(kCaptureCuda);
  const std::string why =
      std::string("CUPTI has ended by itself: ") + g_callbacks.last_words.data();
  Note("no more kernels: " + why);
  MarkGap(proto::GapReason::kError, why);
  session_->Forget();
  broker::Forget();
  retry_at_ns_.store(kNever);
  armed_.store(false);
  DrainCompleted();
}

void Drain::EndGap() {
  AnnounceGap({.reason = gap_reason_,
               .source = "cupti",
               .start_ticks = gap_since_ticks_,
               .end_ticks = NowTicks(),
               .detail = gap_detail_});
  gap_since_ticks_ = 0;
}

// CUPTI's clock is CLOCK_REALTIME, as it was or as it is where somebody has set it meanwhile. A
// client of the program's may have made CUPTI read another (cuptiActivityRegisterTimestampCallback:
// PyTorch's gives ticks, which are decades off), and it cannot be put back.
TimeBounds Drain::PossibleTimes() const {
  constexpr uint64_t kSlack = 60 * kSecond;
  const uint64_t now = ClockNs(CLOCK_REALTIME), runs_for = ClockNs(CLOCK_MONOTONIC) - began_ns_;
  return {.first_ns = std::min(began_realtime_ns_, now - runs_for) - kSlack,
          .last_ns = std::max(now, began_realtime_ns_ + runs_for) + kSlack};
}

void Drain::NoteImpossibleTimes() {
  if (impossible_times_noted_ || records_->impossible_times() == 0) return;
  impossible_times_noted_ = true;
  Note(
      "CUPTI gives times that are not of its clock (another client of it has set one?): this work "
      "counts as untimed");
}

// The reader refuses these joins: it knows the version, and where gaps end (graph_launch_ids.h).
void Drain::NoteWrongGraphIds() {
  if (graph_ids_noted_ || !FeaturesOf(loaded_.version).graph_ids_wrong_in_later_sessions) return;
  graph_ids_noted_ = true;
  Note(
      "graph launches after a gap are unjoined: CUPTI 13.0 and 13.1 give them the ids of other "
      "calls (mended in 13.1 U1)");
}

void Drain::CheckCorrelation() {
  // A launch's callback says so at once, a record only when its buffer comes back.
  const bool lacking = records_->uncorrelated() != 0 || wants_correlation_.load();
  if (!lacking || !session_->armed() || session_->api_records_enabled()) return;
  session_->EnableApiRecords();
  Note("this CUPTI gives correlation ids only with API records on: they are on now");
}

void Drain::NoteMissingCallbacks() {
  if (missing_callbacks_noted_) return;
  missing_callbacks_noted_ = true;
  Note(
      "a client of the program's has had CUPTI's one subscription since before the CUDA driver was "
      "up: kernels come without their launches and stacks");
}

// Neither our hooks nor OpenMapped see such a copy: the driver serves one of the two.
void Drain::NoteStaticCupti() {
  constexpr std::array<std::string_view, 2> kExcept = {"libcupti", "libranktap"};
  const uint64_t modules = ModuleLoadCount();
  if (static_cupti_noted_ || modules == modules_searched_) return;
  modules_searched_ = modules;
  const std::optional<std::string> path = FindExporter("cuptiSubscribe", kExcept);
  if (!path) return;
  static_cupti_noted_ = true;
  Note("a CUPTI is linked into " + (path->empty() ? "the program" : *path) +
       ": its client and we do not see each other, and the second to start is refused");
}

// A kernel may run for so long; CUPTI that has broken down is told from it by a look at the
// program.
void Drain::WatchForRecords() {
  NoteStaticCupti();
  constexpr uint64_t kPatience = 10 * kSecond;
  const uint64_t now = ClockNs(CLOCK_MONOTONIC);
  const uint64_t kernels = kernels_.load(), launches = ThreadStates::CountLaunches();
  if (!session_->armed() || kernels != silent_kernels_ || launches <= kernels) {
    silent_since_ns_ = now;
    silent_kernels_ = kernels;
    silent_launches_ = launches;
    return;
  }
  if (silence_noted_ || launches == silent_launches_ || now - silent_since_ns_ < kPatience) return;
  silence_noted_ = true;
  Note("CUPTI has given no kernel for 10 s, though " + std::to_string(launches - silent_launches_) +
       " were launched: a kernel runs for so long, or CUPTI has broken down");
}

}  // namespace ranktap::agent::cupti
