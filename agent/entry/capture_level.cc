// Levels, the overhead budget, gaps.
// Runs on: see capture_level.h.  May not: see there.
#include "agent/entry/capture_level.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "agent/core/announcements.h"
#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/overhead_budget.h"
#include "agent/sources/source.h"

namespace ranktap::agent {
namespace {

constinit std::atomic<proto::Level> g_level{proto::Level::kDormant};
constinit OverheadBudget g_budget;                                // the sender's
constinit proto::Level g_budget_level = proto::Level::kCounters;  // the highest that it allows
constinit uint32_t g_steps_down = 0;
constinit std::atomic<bool> g_ending{false};
constinit std::atomic<uint64_t> g_full_gap_since{0};  // ticks; the budget has taken level full away
constinit std::atomic<uint64_t> g_gap_since{0};       // ticks; capture has been off since then

constexpr uint32_t kLevelBits = kCaptureRanges | kCaptureFramework;

// The kinds that sources without a switch of their own record at a level.
uint32_t BitsOf(proto::Level level) {
  return (level >= proto::Level::kRanges ? kCaptureRanges : 0u) |
         (level >= proto::Level::kFull ? kCaptureFramework : 0u);
}

// Marks where level full was given up for the budget's sake, or came back.
void MarkFullGap(proto::Level before, proto::Level level, std::string_view detail,
                 proto::GapReason reason) {
  GapFields gap{.reason = proto::GapReason::kBudget,
                .source = "full",
                .start_ticks = NowTicks(),
                .end_ticks = 0,
                .detail = detail};
  if (reason == proto::GapReason::kBudget && before >= proto::Level::kFull) {
    g_full_gap_since.store(gap.start_ticks);
    AnnounceGap(gap);
  } else if (level >= proto::Level::kFull) {
    const uint64_t since = g_full_gap_since.exchange(0);
    if (since == 0) return;
    gap.end_ticks = std::exchange(gap.start_ticks, since);
    AnnounceGap(gap);
  }
}

void ApplyLevel(proto::Level level, std::string_view reason,
                proto::GapReason why = proto::GapReason::kLevel) {
  const proto::Level before = g_level.exchange(level);
  const bool ranges = level >= proto::Level::kRanges;
  SetCapture(BitsOf(level));
  ClearCapture(kLevelBits & ~BitsOf(level));
  for (const Source& source : AllSources()) source.set_level(level, why);
  if (before == level) return;
  g_budget.Restart();
  MarkFullGap(before, level, reason, why);
  AnnounceLevel(level);
  const uint64_t now = NowTicks();
  if (!ranges) {
    // Open at first: the process may end in it.
    g_gap_since.store(now);
    AnnounceGap({.reason = proto::GapReason::kLevel,
                 .source = {},
                 .start_ticks = now,
                 .end_ticks = 0,
                 .detail = reason});
  } else if (const uint64_t since = g_gap_since.exchange(0); since != 0) {
    AnnounceGap({.reason = proto::GapReason::kLevel,
                 .source = {},
                 .start_ticks = since,
                 .end_ticks = now,
                 .detail = reason});
  }
}

// One level down, never below ranges: NVTX costs what the program asks for, and the counting of
// events and of our own cost goes on at every level.
void StepDown() {
  const proto::Level before = g_level.load();
  if (before <= proto::Level::kRanges || g_ending.load()) return;
  const auto level = static_cast<proto::Level>(static_cast<int>(before) - 1);
  char text[160];
  std::snprintf(text, sizeof(text),
                "over the overhead budget: hooks took %.2f %% of the time for 3 s, %.2f %% are "
                "allowed: level %s became %s",
                g_budget.share_ppm() / 1e4, g_budget.limit_ppm() / 1e4,
                std::string(NameOf(before)).c_str(), std::string(NameOf(level)).c_str());
  LogAndAnnounce(text);
  g_budget_level = level;
  ++g_steps_down;
  ApplyLevel(level, text, proto::GapReason::kBudget);
}

}  // namespace

void BeginCapture(proto::Level level, uint32_t budget_ppm) {
  g_budget.SetLimit(budget_ppm);
  g_level.store(level);
  if (level >= proto::Level::kRanges) {
    SetCapture(BitsOf(level));
  } else {
    g_gap_since.store(NowTicks());
  }
  for (const Source& source : AllSources()) source.start();
}

proto::Level CurrentLevel() { return g_level.load(); }

void OnLevelOrder(const LevelOrder& order) {
  if (!order.is_greeting) g_budget_level = proto::Level::kCounters;
  ApplyLevel(std::min(order.level, g_budget_level), order.reason);
}

void KeepToBudget(CostFields& cost) {
  if (g_budget.IsExceeded(cost.callback_ticks, NowTicks())) StepDown();
  cost.budget_ppm = g_budget.limit_ppm();
  cost.steps_down = g_steps_down;
}

void StopSteppingDown() { g_ending.store(true); }

}  // namespace ranktap::agent
