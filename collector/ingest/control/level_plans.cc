#include "collector/ingest/control/level_plans.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace ranktap::collector {
namespace {

v1::Level After(const v1::LevelChange& change) {
  return change.level_after() == v1::LEVEL_UNKNOWN ? v1::LEVEL_DORMANT : change.level_after();
}

v1::Level LevelOf(v1::Level before, const v1::LevelChange& change, uint64_t now_ns) {
  if (change.until_realtime_ns() != 0 && now_ns >= change.until_realtime_ns()) {
    return After(change);
  }
  return now_ns >= change.at_realtime_ns() ? change.level() : before;
}

}  // namespace

Result<v1::LevelChange> LevelPlans::ChangeFor(const v1::ControlRequest& request, uint64_t now_ns) {
  const bool is_start = request.verb() == v1::ControlRequest::VERB_START;
  if (!is_start && request.verb() != v1::ControlRequest::VERB_STOP) {
    return Failure{"this collector does not know the request; use a newer one"};
  }
  const v1::Level wanted = request.level() == v1::LEVEL_UNKNOWN ? start_level_ : request.level();
  if (is_start && (wanted < v1::LEVEL_RANGES || wanted > v1::LEVEL_FULL)) {
    return Failure{"no level to start at: it is ranges, kernels or full"};
  }
  v1::LevelChange change;
  change.set_level(is_start ? wanted : v1::LEVEL_DORMANT);
  change.set_window(is_start ? ++window_ : window_);
  const uint64_t at = std::max(request.at_realtime_ns(), now_ns + kLeadNs);
  change.set_at_realtime_ns(at);
  if (is_start && request.duration_ns() != 0) {
    change.set_until_realtime_ns(
        request.duration_ns() < UINT64_MAX - at ? at + request.duration_ns() : UINT64_MAX);
  }
  change.set_reason(
      fmt::format("window {}: ranktap {}", change.window(), is_start ? "start" : "stop"));
  return change;
}

void LevelPlans::Order(const std::string& run, v1::LevelChange change, uint64_t now_ns) {
  const auto known = plans_.find(run);
  const v1::Level before =
      known == plans_.end() ? level_ : LevelOf(known->second.before, known->second.change, now_ns);
  if (run.empty()) {
    plans_.clear();
    ended_.clear();
  }
  plans_[run] = {before, std::move(change), now_ns};
}

void LevelPlans::RunBegan(const std::string& run) { std::erase(ended_, run); }

void LevelPlans::RunEnded(const std::string& run) {
  if (run.empty() || !plans_.contains(run)) return;
  RunBegan(run);
  ended_.push_back(run);
  if (ended_.size() <= kMostEnded) return;
  plans_.erase(ended_.front());
  ended_.pop_front();
}

v1::Level LevelPlans::LevelAt(const std::string& run, uint64_t now_ns) const {
  const Plan* const plan = Find(run);
  return plan == nullptr ? level_ : LevelOf(plan->before, plan->change, now_ns);
}

const v1::LevelChange* LevelPlans::Ahead(const std::string& run, uint64_t now_ns) const {
  const Plan* const plan = Find(run);
  if (plan == nullptr) return nullptr;
  const v1::LevelChange& change = plan->change;
  const bool is_ahead = now_ns < change.at_realtime_ns() || now_ns < change.until_realtime_ns();
  return is_ahead ? &change : nullptr;
}

const v1::LevelChange* LevelPlans::OwnOrder(const std::string& run) const {
  const auto found = plans_.find(run);
  return found == plans_.end() ? nullptr : &found->second.change;
}

uint64_t LevelPlans::OrderedAt(const std::string& run) const {
  const auto found = plans_.find(run);
  return found == plans_.end() ? 0 : found->second.ordered_ns;
}

const LevelPlans::Plan* LevelPlans::Find(const std::string& run) const {
  auto found = run.empty() ? plans_.end() : plans_.find(run);
  if (found == plans_.end()) found = plans_.find("");
  return found == plans_.end() ? nullptr : &found->second;
}

}  // namespace ranktap::collector
