// The reasons not to believe CUPTI, in words.
// Runs on: see cupti_doubts.h.  May not: call CUPTI.
#include "agent/sources/cupti/cupti_doubts.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/core/announcements.h"
#include "agent/core/host_clock.h"
#include "agent/interpose/got_patcher.h"
#include "agent/interpose/module_symbols.h"

namespace ranktap::agent::cupti {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

}  // namespace

Doubts::Clocks Doubts::ReadClocks() {
  return {.realtime_ns = ClockNs(CLOCK_REALTIME), .monotonic_ns = NowNs()};
}

// CUPTI's clock is CLOCK_REALTIME, as it was or as it is where somebody has set it meanwhile. A
// client of the program's may have made CUPTI read another (cuptiActivityRegisterTimestampCallback:
// PyTorch's gives ticks, which are decades off), and it cannot be put back.
TimeBounds Doubts::PossibleTimes(const Clocks& now) const {
  constexpr uint64_t kSlack = 60 * kSecond;
  const uint64_t runs_for = now.monotonic_ns - began_.monotonic_ns;
  return {.first_ns = std::min(began_.realtime_ns, now.realtime_ns - runs_for) - kSlack,
          .last_ns = std::max(now.realtime_ns, began_.realtime_ns + runs_for) + kSlack};
}

void Doubts::NoteImpossibleTimes(uint64_t times) {
  if (impossible_times_noted_ || times == 0) return;
  impossible_times_noted_ = true;
  LogAndAnnounce(
      "CUPTI gives times that are not of its clock (another client of it has set one?): this work "
      "counts as untimed");
}

void Doubts::NoteUntimed(uint64_t works, uint32_t device_buffers) {
  constexpr uint64_t kMany = 100;
  untimed_ += works;
  if (untimed_noted_ || untimed_ < kMany) return;
  untimed_noted_ = true;
  LogAndAnnounce("CUPTI gives work without times: its " + std::to_string(device_buffers) +
                 " buffers in the device's memory may have run out (RANKTAP_DEVICE_BUFFERS)");
}

void Doubts::NoteFlushCost() {
  LogAndAnnounce(
      "a flush of CUPTI takes three times the CPU that it took: CUPTI is asked every 5 s from now "
      "on (13.4 U1 mends it)");
}

// A graph that one window does not tell of, a later one does not either: once is enough.
void Doubts::NoteSilentGraphs(uint64_t launches, uint64_t records) {
  const uint64_t launched = launches - std::exchange(graph_launches_, launches);
  const bool any_came = records != std::exchange(graph_records_, records);
  if (silent_graphs_noted_ || launched == 0 || any_came) return;
  silent_graphs_noted_ = true;
  LogAndAnnounce("no record came for " + std::to_string(launched) +
                 " launches of CUDA graphs: CUPTI may tell nothing of graphs that were made before "
                 "it was on (a run that begins at level kernels or full has them)");
}

// The reader refuses these joins: it knows the version, and where gaps end (graph_launch_ids.h).
void Doubts::NoteWrongGraphIds(const Features& features) {
  if (graph_ids_noted_ || !features.graph_ids_wrong_in_later_sessions) return;
  graph_ids_noted_ = true;
  LogAndAnnounce(
      "graph launches after a gap are unjoined: CUPTI 13.0 and 13.1 give them the ids of other "
      "calls (mended in 13.1 U1)");
}

void Doubts::NoteMissingCallbacks() {
  if (missing_callbacks_noted_) return;
  missing_callbacks_noted_ = true;
  LogAndAnnounce(
      "a client of the program's has had CUPTI's one subscription since before the CUDA driver was "
      "up: kernels come without their launches and stacks");
}

void Doubts::NoteStaticCupti() {
  constexpr std::array<std::string_view, 2> kExcept = {"libcupti", "libranktap"};
  const uint64_t modules = ModuleLoadCount();
  if (static_cupti_noted_ || modules == modules_searched_) return;
  modules_searched_ = modules;
  const std::optional<std::string> path = FindExporter("cuptiSubscribe", kExcept);
  if (!path) return;
  static_cupti_noted_ = true;
  LogAndAnnounce("a CUPTI is linked into " + (path->empty() ? "the program" : *path) +
                 ": its client and we do not see each other, and the second to start is refused");
}

void Doubts::NoteApiRecords() {
  LogAndAnnounce("this CUPTI gives correlation ids only with API records on: they are on now");
}

// A kernel may run for so long; CUPTI that has broken down is told from it by a look at the
// program.
void Doubts::WatchForRecords(uint64_t now_ns, bool is_armed, uint64_t kernels, uint64_t launches) {
  constexpr uint64_t kPatience = 10 * kSecond;
  if (!is_armed || kernels != silent_kernels_ || launches <= kernels) {
    silent_since_ns_ = now_ns;
    silent_kernels_ = kernels;
    silent_launches_ = launches;
    return;
  }
  if (silence_noted_ || launches == silent_launches_ || now_ns - silent_since_ns_ < kPatience) {
    return;
  }
  silence_noted_ = true;
  LogAndAnnounce("CUPTI has given no kernel for 10 s, though " +
                 std::to_string(launches - silent_launches_) +
                 " were launched: a kernel runs for so long, or CUPTI has broken down");
}

}  // namespace ranktap::agent::cupti
