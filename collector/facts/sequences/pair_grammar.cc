#include "collector/facts/sequences/pair_grammar.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace ranktap::collector {
namespace {

constexpr uint32_t kEnd = UINT32_MAX;

struct Entry {
  uint32_t count, pair;
  // The first met of two equals comes first, so that units begin where the text begins.
  bool operator<(const Entry& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

}  // namespace

PairGrammar::PairGrammar(std::span<const uint32_t> text) {
  for (const uint32_t symbol : text) {
    if (symbol != kSeparator) terminals_ = std::max(terminals_, symbol + 1);
  }
  CollapseRuns(text);
  FindPairs();
  ReplaceAll();
  size_t kept = 0;
  for (uint32_t at = body_.empty() ? kEnd : 0; at != kEnd; at = next_[at]) {
    body_[kept++] = body_[at];
  }
  body_.resize(kept);
  next_ = {}, previous_ = {}, pair_at_ = {}, nodes_ = {}, pairs_ = {}, known_ = {};
}

uint32_t PairGrammar::NewRule(Rule rule) {
  rules_.push_back(rule);
  return symbols() - 1;
}

// AAAA is one symbol before anything is paired: pairs of A would depend on where they begin.
void PairGrammar::CollapseRuns(std::span<const uint32_t> text) {
  std::unordered_map<uint64_t, uint32_t> runs;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    while (end < text.size() && text[end] == text[i] && text[i] != kSeparator) ++end;
    const auto times = static_cast<uint32_t>(end - i);
    if (times == 1) {
      body_.push_back(text[i]);
    } else {
      const auto [run, is_new] = runs.try_emplace(Key(text[i], times), 0);
      if (is_new) run->second = NewRule({text[i], 0, times});
      body_.push_back(run->second);
    }
    i = end;
  }
}

void PairGrammar::FindPairs() {
  next_.resize(body_.size());
  previous_.resize(body_.size());
  for (uint32_t i = 0; i < body_.size(); ++i) {
    previous_[i] = i == 0 ? kEnd : i - 1;
    next_[i] = i + 1 == body_.size() ? kEnd : i + 1;
  }
  pair_at_.assign(body_.size(), kEnd);
  nodes_.reserve(body_.size());
  for (uint32_t i = 0; i < body_.size(); ++i) Add(i);
}

// The pair that begins at `place`, if one does.
void PairGrammar::Add(uint32_t place) {
  if (place == kEnd) return;
  pair_at_[place] = kEnd;
  if (next_[place] == kEnd) return;
  const uint32_t left = body_[place], right = body_[next_[place]];
  if (left == kSeparator || right == kSeparator) return;
  const auto [known, is_new] =
      known_.try_emplace(Key(left, right), static_cast<uint32_t>(pairs_.size()));
  if (is_new) pairs_.push_back({.left = left, .right = right});
  Pair& pair = pairs_[known->second];
  pair_at_[place] = known->second;
  uint32_t node = free_;
  if (node == kEnd) {
    node = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    free_ = nodes_[node].next;
  }
  nodes_[node] = {place, kEnd};
  (pair.last == kEnd ? pair.first : nodes_[pair.last].next) = node;
  pair.last = node;
  if (++pair.count == 2) grown_.push_back(known->second);
}

// The pair that begins at `place` is there no more.
void PairGrammar::Drop(uint32_t place) {
  if (pair_at_[place] != kEnd && pairs_[pair_at_[place]].count > 0) --pairs_[pair_at_[place]].count;
}

void PairGrammar::ReplaceAll() {
  std::priority_queue<Entry> queue;
  while (true) {
    for (const uint32_t pair : grown_) queue.push({pairs_[pair].count, pair});
    grown_.clear();
    if (queue.empty()) return;
    const Entry top = queue.top();
    queue.pop();
    Pair& pair = pairs_[top.pair];
    if (pair.count < 2) continue;
    if (pair.count != top.count) {
      queue.push({pair.count, top.pair});  // others took some of its places
      continue;
    }
    const uint32_t by = NewRule({pair.left, pair.right, 1});
    Replace(top.pair, by);
  }
}

void PairGrammar::Replace(uint32_t index, uint32_t by) {
  const uint32_t left = pairs_[index].left, right = pairs_[index].right;
  uint32_t node = pairs_[index].first;
  pairs_[index].first = pairs_[index].last = kEnd;
  pairs_[index].count = 0;
  known_.erase(Key(left, right));
  while (node != kEnd) {
    const uint32_t place = nodes_[node].place, following = nodes_[node].next;
    nodes_[node].next = free_;
    free_ = node;
    node = following;
    // A place whose symbol has been replaced, or swallowed by the one before, is none any more.
    if (body_[place] != left || next_[place] == kEnd || body_[next_[place]] != right) continue;
    const uint32_t gone = next_[place], before = previous_[place], after = next_[gone];
    if (before != kEnd) Drop(before);
    Drop(gone);
    body_[place] = by;
    body_[gone] = kSeparator;
    next_[place] = after;
    if (after != kEnd) previous_[after] = place;
    Add(before);
    Add(place);
  }
}

std::vector<uint32_t> PairGrammar::Expand(uint32_t symbol) const {
  std::vector<uint32_t> text, left_to_do = {symbol};
  while (!left_to_do.empty()) {
    const uint32_t next = left_to_do.back();
    left_to_do.pop_back();
    if (next < terminals_) {
      text.push_back(next);
    } else if (rule(next).times > 1) {
      text.insert(text.end(), rule(next).times, rule(next).left);
    } else {
      left_to_do.push_back(rule(next).right);
      left_to_do.push_back(rule(next).left);
    }
  }
  return text;
}

}  // namespace ranktap::collector
