// Runs on: see process_rank.h.  May not: run static destructors (everything here is leaked).
#include "agent/entry/process_rank.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "agent/core/agent_state.h"
#include "agent/core/announcements.h"
#include "agent/core/capture_state.h"
#include "agent/sources/nvtx/nccl_rank.h"

namespace ranktap::agent {
namespace {

struct Known {
  std::mutex mutex;
  RankIdentity from_environment, announced;
};
constinit Known* g_known = nullptr;

constexpr uint64_t kNotTold = ~uint64_t{0};
constinit std::atomic<uint64_t> g_told_rank{kNotTold};  // world size << 32 | rank

std::optional<ToldRank> RankTold() {
  const uint64_t told = g_told_rank.load(std::memory_order_relaxed);
  if (told == kNotTold) return std::nullopt;
  return ToldRank{.rank = static_cast<uint32_t>(told),
                  .world_size = static_cast<uint32_t>(told >> 32)};
}

RankIdentity InEnvironment() {
  std::optional<uint32_t> rank;
  if (Config().rank != AgentConfig::kNoRank) rank = Config().rank;
  return FindRankIdentity(EnvironmentNow(), rank);
}

// The sender refreshes while the program ends: the last look must not be the one left out. Never
// waits for long, since a handler that ends the program may have interrupted a refresh on this very
// thread.
std::unique_lock<std::mutex> TakeTurn() {
  constexpr int kMostYields = 1000;
  std::unique_lock lock(g_known->mutex, std::try_to_lock);
  for (int i = 0; i < kMostYields && !lock.owns_lock(); ++i) {
    sched_yield();
    lock = std::unique_lock(g_known->mutex, std::try_to_lock);
  }
  return lock;
}

void Refresh(bool reads_environment) {
  if (!Capturing(kCaptureAlive)) return;
  const std::unique_lock lock = TakeTurn();
  if (!lock.owns_lock()) return;
  if (reads_environment) g_known->from_environment = InEnvironment();
  RankIdentity rank =
      WithNcclRank(WithToldRank(g_known->from_environment, RankTold()), RankInNccl());
  if (rank == g_known->announced) return;
  AnnounceRank(rank);
  g_known->announced = std::move(rank);
}

}  // namespace

std::span<const char* const> EnvironmentNow() {
  size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  return {environ, count};
}

RankIdentity FindRankAtStart() {
  auto* const known = new Known;
  known->from_environment = InEnvironment();
  known->announced = WithToldRank(known->from_environment, RankTold());
  g_known = known;
  return known->announced;
}

void RefreshRankIdentity() { Refresh(/*reads_environment=*/true); }

void RefreshNcclRank() { Refresh(/*reads_environment=*/false); }

void TellRank(uint32_t rank, uint32_t world_size) {
  g_told_rank.store(uint64_t{world_size} << 32 | rank, std::memory_order_relaxed);
  RefreshRankIdentity();
}

}  // namespace ranktap::agent
