// Which stretches of a long sequence come again and again? A part of patterns.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collector/facts/sequences/pair_grammar.h"

namespace ranktap::collector {

struct RepeatedSequence {
  std::vector<uint32_t> symbols;
  std::vector<size_t> places;  // where it begins in the text, leftmost first, without overlap
};

struct RepeatLimits {
  size_t shortest = 3;
  size_t longest = 100'000;
  size_t most = 64;  // sequences, those with the largest sum of weights
};

// Re-Pair (Larsson and Moffat 1999): the pair of neighbours that is met most often becomes a symbol
// of its own, until no pair is met twice. The symbols that stand for `shortest` or more and are not
// always part of the same larger one are counted again in the text, so that the places are exact
// whatever was paired before. A sequence that repeats itself (ABAB) counts as its unit (AB); one of
// two rotations (AB, BA) is dropped. O(n log n) time; 20 B for each symbol of the text and about
// 100 B for each pair of neighbours that differs.
//
// `weights`, one for each symbol, say what a symbol is worth. The order of the answer: the most
// weight first.
std::vector<RepeatedSequence> FindRepeatedSequences(std::span<const uint32_t> text,
                                                    std::span<const int64_t> weights,
                                                    const RepeatLimits& limits = {});

// Where `part` begins in `text`, without overlap, leftmost first (Knuth, Morris and Pratt).
std::vector<size_t> FindPlaces(std::span<const uint32_t> text, std::span<const uint32_t> part);

}  // namespace ranktap::collector
