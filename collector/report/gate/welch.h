// Welch's test of two means whose spreads may differ, and Student's distribution behind it.
//
// Sources: B. L. Welch, "The generalization of Student's problem when several different population
// variances are involved", Biometrika 34 (1947), with Satterthwaite's degrees of freedom. The
// incomplete beta function is the continued fraction of Press et al., Numerical Recipes, 6.4. The
// unit test compares both with scipy.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace ranktap::collector {

// P(T <= t) for Student's distribution; `freedom` > 0 need not be whole.
double StudentBelow(double t, double freedom);
// The t with P(T <= t) = `share`, which lies between 0 and 1.
double StudentQuantile(double share, double freedom);

struct MeanDifference {
  double difference = 0;  // mean of b less mean of a
  double error = 0;       // its standard error
  double freedom = 0;
  double spread = 0;  // standard deviation of one value, pooled where only one side has several

  double Low(double confidence) const;   // the true difference is above it, this sure
  double High(double confidence) const;  // and below it
  double PValue() const;                 // two-sided, of no difference
};

// Where one side has a single value, the other side's spread stands for both: Student's test.
// nullopt: neither side has two values, so that nothing tells how much they vary.
std::optional<MeanDifference> CompareMeans(const std::vector<double>& a,
                                           const std::vector<double>& b);

// The smallest difference that `runs` of each side find at `confidence` in `power` of all cases,
// where a value varies by `spread`.
double SmallestFound(size_t runs, double spread, double confidence, double power);
// The fewest runs of each side that find `difference`, from 2; 0: more than `most`.
size_t RunsThatWouldDo(double difference, double spread, double confidence, double power,
                       size_t most);

}  // namespace ranktap::collector
