#include "collector/facts/sequences/repeated_sequences.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

struct Candidate {
  double weight = 0;
  uint32_t symbol = 0;
};

// The symbol that a symbol repeats, and how often: Y of YYY.
struct Power {
  uint32_t base = 0;
  uint64_t times = 1;
};

class Chooser {
 public:
  Chooser(const PairGrammar& grammar, std::span<const uint32_t> text,
          std::span<const int64_t> weights)
      : grammar_(grammar),
        length_(grammar.symbols(), 1),
        weight_(grammar.symbols(), 0),
        power_(grammar.symbols()),
        uses_(grammar.symbols(), 0),
        of_one_(grammar.symbols(), false) {
    WeighTerminals(text, weights);
    for (uint32_t s = 0; s < grammar.symbols(); ++s) Measure(s);
    CountUses();
  }

  std::vector<Candidate> Choose(const RepeatLimits& limits) const {
    std::vector<Candidate> chosen;
    for (uint32_t s = grammar_.terminals(); s < grammar_.symbols(); ++s) {
      const bool fits = length_[s] >= limits.shortest && length_[s] <= limits.longest;
      if (!fits || uses_[s] < 2 || of_one_[s] || power_[s].base != s) continue;
      chosen.push_back({weight_[s] * static_cast<double>(uses_[s]), s});
    }
    std::sort(chosen.begin(), chosen.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(b.weight, a.symbol) < std::tie(a.weight, b.symbol);
    });
    if (chosen.size() > limits.most) chosen.resize(limits.most);
    return chosen;
  }

 private:
  void WeighTerminals(std::span<const uint32_t> text, std::span<const int64_t> weights) {
    std::vector<uint64_t> count(grammar_.terminals(), 0);
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == kSeparator) continue;
      ++count[text[i]];
      weight_[text[i]] += static_cast<double>(weights[i]);
    }
    for (uint32_t s = 0; s < count.size(); ++s) {
      if (count[s] > 0) weight_[s] /= static_cast<double>(count[s]);
    }
  }
  // Parts have lower numbers than what they are part of.
  void Measure(uint32_t s) {
    power_[s] = {s, 1};
    if (s < grammar_.terminals()) return;
    const PairGrammar::Rule& rule = grammar_.rule(s);
    if (rule.times > 1) {
      length_[s] = rule.times;
      weight_[s] = weight_[rule.left] * rule.times;
      power_[s] = {rule.left, rule.times};
      return;
    }
    length_[s] = length_[rule.left] + length_[rule.right];
    weight_[s] = weight_[rule.left] + weight_[rule.right];
    const Power &left = power_[rule.left], &right = power_[rule.right];
    if (left.base == right.base) power_[s] = {left.base, left.times + right.times};
  }
  void CountUses() {
    for (const uint32_t s : grammar_.rest()) {
      if (s != kSeparator) ++uses_[s];
    }
    for (uint32_t s = grammar_.symbols(); s-- > grammar_.terminals();) {
      const PairGrammar::Rule& rule = grammar_.rule(s);
      uses_[rule.left] += uses_[s] * rule.times;
      if (rule.times == 1) uses_[rule.right] += uses_[s];
    }
    for (uint32_t s = grammar_.terminals(); s < grammar_.symbols(); ++s) {
      const PairGrammar::Rule& rule = grammar_.rule(s);
      if (rule.times > 1 || power_[s].base != s) continue;
      for (const uint32_t part : {rule.left, rule.right}) {
        if (uses_[part] == uses_[s]) of_one_[part] = true;
      }
    }
  }

  const PairGrammar& grammar_;
  std::vector<uint64_t> length_;
  std::vector<double> weight_;  // of one use, by the mean weight of what it stands for
  std::vector<Power> power_;
  std::vector<uint64_t> uses_;
  std::vector<bool> of_one_;  // always a part of the same larger one
};

bool IsRotation(std::span<const uint32_t> a, const std::vector<uint32_t>& b) {
  if (a.size() != b.size()) return false;
  std::vector<uint32_t> twice(b);
  twice.insert(twice.end(), b.begin(), b.end());
  return !FindPlaces(twice, a).empty();
}

// Finds places as FindPlaces does, from those of the symbol that is rarest: each sequence is looked
// for in a small part of the text. FindPlaces looks at all of it, which was 10 % of the time of
// *patterns*.
class PlaceIndex {
 public:
  explicit PlaceIndex(std::span<const uint32_t> text) : text_(text) {
    for (const uint32_t symbol : text) {
      if (symbol == kSeparator) continue;
      if (symbol + size_t{1} >= end_.size()) end_.resize(symbol + size_t{2});
      ++end_[symbol + 1];
    }
    std::partial_sum(end_.begin(), end_.end(), end_.begin());
    places_.resize(end_.empty() ? 0 : end_.back());
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != kSeparator) places_[end_[text[i]]++] = static_cast<uint32_t>(i);
    }
  }
  std::vector<size_t> Find(std::span<const uint32_t> part) const {
    size_t rarest = 0;
    for (size_t i = 1; i < part.size(); ++i) {
      if (Of(part[i]).size() < Of(part[rarest]).size()) rarest = i;
    }
    std::vector<size_t> places;
    size_t free = 0;  // from here on
    size_t looks = kMostLooks * text_.size();
    for (const uint32_t at : Of(part[rarest])) {
      if (at < free + rarest || at - rarest + part.size() > text_.size()) continue;
      const size_t first = at - rarest;
      const auto [differs, in_text] =
          std::ranges::mismatch(part, text_.subspan(first, part.size()));
      const auto looked = static_cast<size_t>(differs - part.begin());
      if (looked == part.size()) {
        places.push_back(first);
        free = first + part.size();
      } else if (looked > looks) {
        return FindPlaces(text_, part);  // it nearly stands at each place
      } else {
        looks -= looked;
      }
    }
    return places;
  }

 private:
  static constexpr size_t kMostLooks = 4;  // at each symbol in vain

  std::span<const uint32_t> Of(uint32_t symbol) const {
    const size_t begin = symbol == 0 ? 0 : end_[symbol - 1];
    return {places_.data() + begin, end_[symbol] - begin};
  }

  std::span<const uint32_t> text_;
  std::vector<size_t> end_;  // of a symbol's places
  std::vector<uint32_t> places_;
};

// A part of a longer one that is met once in it and nowhere else, or the same unit begun elsewhere.
bool IsKnown(const RepeatedSequence& sequence, const std::vector<RepeatedSequence>& kept) {
  return std::any_of(kept.begin(), kept.end(), [&](const RepeatedSequence& other) {
    if (IsRotation(sequence.symbols, other.symbols)) return true;
    if (other.symbols.size() <= sequence.symbols.size()) return false;
    return other.places.size() >= sequence.places.size() &&
           FindPlaces(other.symbols, sequence.symbols).size() == 1;
  });
}

}  // namespace

std::vector<size_t> FindPlaces(std::span<const uint32_t> text, std::span<const uint32_t> part) {
  std::vector<size_t> places;
  if (part.empty() || text.size() < part.size()) return places;
  std::vector<size_t> border(part.size(), 0);
  for (size_t i = 1, matched = 0; i < part.size(); ++i) {
    while (matched > 0 && part[i] != part[matched]) matched = border[matched - 1];
    if (part[i] == part[matched]) ++matched;
    border[i] = matched;
  }
  for (size_t i = 0, matched = 0; i < text.size(); ++i) {
    while (matched > 0 && text[i] != part[matched]) matched = border[matched - 1];
    if (text[i] == part[matched]) ++matched;
    if (matched == part.size()) {
      places.push_back(i + 1 - matched);
      matched = 0;
    }
  }
  return places;
}

std::vector<RepeatedSequence> FindRepeatedSequences(std::span<const uint32_t> text,
                                                    std::span<const int64_t> weights,
                                                    const RepeatLimits& limits) {
  const PairGrammar grammar(text);
  const PlaceIndex index(text);
  std::vector<RepeatedSequence> found;
  for (const Candidate& candidate : Chooser(grammar, text, weights).Choose(limits)) {
    RepeatedSequence sequence;
    sequence.symbols = grammar.Expand(candidate.symbol);
    sequence.places = index.Find(sequence.symbols);
    if (sequence.places.size() > 1) found.push_back(std::move(sequence));
  }
  SortRows(&found, [](const auto& a, const auto& b) {
    return std::pair(b.symbols.size(), b.places.size()) <
           std::pair(a.symbols.size(), a.places.size());
  });
  std::vector<std::pair<int64_t, RepeatedSequence>> weighed;
  std::vector<RepeatedSequence> kept;
  for (RepeatedSequence& sequence : found) {
    if (!IsKnown(sequence, kept)) kept.push_back(std::move(sequence));
  }
  std::vector<int64_t> until(weights.size() + 1);
  std::partial_sum(weights.begin(), weights.end(), until.begin() + 1);
  for (RepeatedSequence& sequence : kept) {
    int64_t weight = 0;
    for (const size_t place : sequence.places) {
      weight += until[place + sequence.symbols.size()] - until[place];
    }
    weighed.emplace_back(weight, std::move(sequence));
  }
  SortRows(&weighed, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second.symbols < b.second.symbols;
  });
  kept.clear();
  for (auto& [weight, sequence] : weighed) kept.push_back(std::move(sequence));
  return kept;
}

}  // namespace ranktap::collector
