#include "collector/live/live_state.h"

#include <algorithm>

#include "collector/live/live_rank.h"

namespace ranktap::collector {
namespace {

// A process may open any number of ranges.
constexpr size_t kMostWriters = 1024, kMostDomains = 8, kMostDepth = 64, kMostStarted = 1024;

}  // namespace

uint64_t& LiveState::next_event(uint32_t writer) {
  if (writers_.size() >= kMostWriters && !writers_.contains(writer)) writers_.clear();
  return writers_[writer].next_event;
}

bool LiveState::TakesProgramSteps(uint32_t writer) {
  if (step_writer_ == 0) step_writer_ = writer;
  return step_writer_ == writer && !hook_tells_steps_;
}

void LiveState::Push(uint32_t writer, uint64_t domain, Open range) {
  std::vector<Stack>& stacks = writers_[writer].stacks;
  auto stack = std::ranges::find(stacks, domain, &Stack::domain);
  if (stack == stacks.end()) {
    if (stacks.size() >= kMostDomains) return;
    stacks.push_back({.domain = domain, .depth = 0, .ranges = {}});
    stack = stacks.end() - 1;
  }
  // "batch 3" inside of "step 3" is no step of its own.
  const auto is_step = [](const Open& open) { return open.what == Open::What::kStep; };
  if (is_step(range) && std::ranges::any_of(stack->ranges, is_step)) {
    range.what = Open::What::kNothing;
  }
  if (stack->depth++ < kMostDepth) stack->ranges.push_back(std::move(range));
}

void LiveState::Pop(uint32_t writer, uint64_t domain, int64_t time) {
  std::vector<Stack>& stacks = writers_[writer].stacks;
  const auto stack = std::ranges::find(stacks, domain, &Stack::domain);
  if (stack == stacks.end() || stack->depth == 0) return;
  if (stack->depth-- > stack->ranges.size()) return;
  Close(stack->ranges.back(), time);
  stack->ranges.pop_back();
}

void LiveState::Start(uint64_t id, Open range) {
  if (started_.size() < kMostStarted) started_.emplace(id, std::move(range));
}

void LiveState::End(uint64_t id, int64_t time) {
  const auto found = started_.find(id);
  if (found == started_.end()) return;
  Close(found->second, time);
  started_.erase(found);
}

void LiveState::ForgetOpen() {
  writers_.clear();
  started_.clear();
}

void LiveState::Close(const Open& range, int64_t end) {
  if (end <= range.begin) return;
  switch (range.what) {
    case Open::What::kStep:
      ++step_count;
      steps.push_back({.number = range.number, .begin = range.begin, .end = end});
      if (steps.size() > kLiveSteps) steps.pop_front();
      return;
    case Open::What::kPhase:
      phases[static_cast<size_t>(range.phase)] += end - range.begin;
      return;
    case Open::What::kCollective:
      collectives.Add(range.begin, end);
      return;
    case Open::What::kNothing:
      return;
  }
}

const LiveState::Open* LiveState::LongestOpen(Open::What what, LivePhase phase) const {
  const Open* longest = nullptr;
  const auto look_at = [&](const Open& open) {
    if (open.what != what || open.phase != phase) return;
    if (longest == nullptr || open.begin < longest->begin) longest = &open;
  };
  for (const auto& [id, open] : started_) look_at(open);
  for (const auto& [id, writer] : writers_) {
    for (const Stack& stack : writer.stacks) std::ranges::for_each(stack.ranges, look_at);
  }
  return longest;
}

}  // namespace ranktap::collector
