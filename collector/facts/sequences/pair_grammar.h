// A text as symbols that stand for pairs of symbols. A part of repeated_sequences.h.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

namespace ranktap::collector {

// Ends a stretch: nothing that repeats reaches over it.
inline constexpr uint32_t kSeparator = std::numeric_limits<uint32_t>::max();

class PairGrammar {
 public:
  // times > 1: `left` that often. Else left, then right.
  struct Rule {
    uint32_t left = 0, right = 0;
    uint32_t times = 1;
  };

  // kSeparator is in no pair. Other symbols count from 0 with few holes: they index arrays.
  explicit PairGrammar(std::span<const uint32_t> text);

  uint32_t terminals() const { return terminals_; }
  uint32_t symbols() const { return terminals_ + static_cast<uint32_t>(rules_.size()); }
  const Rule& rule(uint32_t symbol) const { return rules_[symbol - terminals_]; }
  // The text as it is now.
  const std::vector<uint32_t>& rest() const { return body_; }
  std::vector<uint32_t> Expand(uint32_t symbol) const;

 private:
  struct Pair {
    uint32_t left = 0, right = 0;
    uint32_t count = 0;  // places in the body, those of YYY counted twice
    uint32_t first = UINT32_MAX, last = UINT32_MAX;  // of nodes_
  };
  // Places of pairs, in the order in which they were found; some are there no more.
  struct Node {
    uint32_t place = 0, next = UINT32_MAX;
  };

  void CollapseRuns(std::span<const uint32_t> text);
  void FindPairs();
  void ReplaceAll();
  void Replace(uint32_t pair, uint32_t by);
  void Add(uint32_t place);
  void Drop(uint32_t place);
  uint32_t NewRule(Rule rule);
  static uint64_t Key(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

  uint32_t terminals_ = 0;
  std::vector<Rule> rules_;
  std::vector<uint32_t> body_;             // while pairs are replaced: by place
  std::vector<uint32_t> next_, previous_;  // places of the body that are left
  std::vector<uint32_t> pair_at_;          // that begins at each place; UINT32_MAX: none
  std::vector<Pair> pairs_;
  std::vector<Node> nodes_;
  uint32_t free_ = UINT32_MAX;  // of nodes_
  std::unordered_map<uint64_t, uint32_t> known_;
  std::vector<uint32_t> grown_;  // pairs that were met while another was replaced
};

}  // namespace ranktap::collector
