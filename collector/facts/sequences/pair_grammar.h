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
  const std::vector<uint32_t>& rest() const { return rest_; }
  std::vector<uint32_t> Expand(uint32_t symbol) const;

 private:
  struct Pair {
    uint32_t left = 0, right = 0;
    uint32_t count = 0;  // places in the body, those of YYY counted twice
    uint32_t first = UINT32_MAX, last = UINT32_MAX;  // of nodes_
  };
  // One of the body: what a replacement looks at lies together.
  struct Place {
    uint32_t symbol = 0;
    uint32_t next = UINT32_MAX, previous = UINT32_MAX;  // that are left
    uint32_t pair = UINT32_MAX;                         // that begins here; UINT32_MAX: none
  };
  // Places of pairs, in the order in which they were found; some are there no more.
  struct Node {
    uint32_t place = 0, next = UINT32_MAX;
  };

  void CollapseRuns(std::span<const uint32_t> text);
  void FindPairs();
  void ReplaceAll();
  void Replace(uint32_t pair, uint32_t by);
  // The pair that was met last: replacements of one pair mostly meet the same ones again.
  struct Recent {
    uint64_t key = UINT64_MAX;  // of no pair
    uint32_t pair = 0;
  };
  void Add(uint32_t place, Recent* recent);
  void Drop(uint32_t place);
  uint32_t NewRule(Rule rule);
  static uint64_t Key(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

  uint32_t terminals_ = 0;
  std::vector<Rule> rules_;
  std::vector<uint32_t> rest_;
  std::vector<Place> body_;  // while pairs are replaced
  std::vector<Pair> pairs_;
  std::vector<Node> nodes_;
  uint32_t free_ = UINT32_MAX;  // of nodes_
  std::unordered_map<uint64_t, uint32_t> known_;
  std::vector<uint32_t> grown_;  // pairs that were met while another was replaced
};

}  // namespace ranktap::collector
