// Which of many commits in a row changed a figure, from few runs that differ by chance: each run is
// made where it halves what is still believed, and the search ends where one commit is sure enough.
//
// The model: logarithms of the figure have one mean before the change and one from it on, and one
// spread. Neither mean nor spread is known. The belief in a commit is the likelihood of all values
// with both integrated out: the first mean flat, the change half normal, the spread uniform in its
// logarithm. So a run at the wrong place costs more runs, and never a wrong turn that nothing
// mends.
//
// Sources: M. Horstein, "Sequential transmission using noiseless feedback", IEEE Trans. Inf. Theory
// 9 (1963), for the halving of belief; R. Waeber, P. Frazier, S. Henderson, "Bisection search with
// noisy responses", SIAM J. Control Optim. 51 (2013).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace ranktap::collector {

inline constexpr double kSearchSure = 0.95;

class ChangeSearch {
 public:
  // 0 is the good end, `commits` the bad one; the change came with one of 1 to `commits`.
  explicit ChangeSearch(size_t commits);

  void Add(size_t position, double value);  // > 0
  void Skip(size_t position);               // nothing can be measured here
  bool IsSkipped(size_t position) const { return skipped_[position]; }

  struct Belief {
    // The change came with one of these, which no measurable commit parts.
    size_t first = 0, last = 0;
    double probability = 0;
    std::optional<size_t> measure;  // where a run tells most; nullopt: every commit is skipped
    bool is_sure() const { return probability >= kSearchSure; }
  };
  Belief Now() const;

  // All values on either side of a commit that is believed in, as logarithms.
  std::vector<double> Before(size_t position) const;
  std::vector<double> From(size_t position) const;

 private:
  struct Value {
    size_t position;
    double logarithm;
  };
  std::vector<Value> values_;
  std::vector<bool> skipped_;
};

}  // namespace ranktap::collector
