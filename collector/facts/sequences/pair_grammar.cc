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
  rest_.clear();
  for (uint32_t at = body_.empty() ? kEnd : 0; at != kEnd; at = body_[at].next) {
    rest_.push_back(body_[at].symbol);
  }
  body_ = {}, nodes_ = {}, pairs_ = {}, known_ = {};
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
      rest_.push_back(text[i]);
    } else {
      const auto [run, is_new] = runs.try_emplace(Key(text[i], times), 0);
      if (is_new) run->second = NewRule({text[i], 0, times});
      rest_.push_back(run->second);
    }
    i = end;
  }
}

void PairGrammar::FindPairs() {
  body_.reserve(rest_.size());
  for (uint32_t i = 0; i < rest_.size(); ++i) {
    body_.push_back({.symbol = rest_[i],
                     .next = i + 1 == rest_.size() ? kEnd : i + 1,
                     .previous = i == 0 ? kEnd : i - 1});
  }
  nodes_.reserve(body_.size());
  Recent recent;
  for (uint32_t i = 0; i < body_.size(); ++i) Add(i, &recent);
}

// The pair that begins at `place`, if one does.
void PairGrammar::Add(uint32_t place, Recent* recent) {
  if (place == kEnd) return;
  Place& at = body_[place];
  at.pair = kEnd;
  if (at.next == kEnd) return;
  const uint32_t left = at.symbol, right = body_[at.next].symbol;
  if (left == kSeparator || right == kSeparator) return;
  if (const uint64_t key = Key(left, right); recent->key != key) {
    const auto [known, is_new] = known_.try_emplace(key, static_cast<uint32_t>(pairs_.size()));
    if (is_new) pairs_.push_back({.left = left, .right = right});
    *recent = {key, known->second};
  }
  at.pair = recent->pair;
  Pair& pair = pairs_[at.pair];
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
  if (++pair.count == 2) grown_.push_back(at.pair);
}

// The pair that begins at `place` is there no more.
void PairGrammar::Drop(uint32_t place) {
  const uint32_t pair = body_[place].pair;
  if (pair != kEnd && pairs_[pair].count > 0) --pairs_[pair].count;
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
  Recent recent_before, recent_here;
  while (node != kEnd) {
    const uint32_t place = nodes_[node].place, following = nodes_[node].next;
    nodes_[node].next = free_;
    free_ = node;
    node = following;
    // Places of a pair lie far apart: with this and Recent *patterns* takes 1.5 s and not 1.9.
    if (node != kEnd) __builtin_prefetch(&body_[nodes_[node].place]);
    // A place whose symbol has been replaced, or swallowed by the one before, is none any more.
    Place& at = body_[place];
    if (at.symbol != left || at.next == kEnd || body_[at.next].symbol != right) continue;
    const uint32_t gone = at.next, before = at.previous, after = body_[gone].next;
    if (before != kEnd) Drop(before);
    Drop(gone);
    at.symbol = by;
    body_[gone].symbol = kSeparator;
    at.next = after;
    if (after != kEnd) body_[after].previous = place;
    Add(before, &recent_before);
    Add(place, &recent_here);
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
