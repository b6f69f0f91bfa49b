// A logarithmic axis from a power of ten to another.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ranktap::collector {

class LogAxis {
 public:
  struct Mark {
    double value = 0, at = 0;  // `at`: where it lies in the picture
    bool decade = false;       // else one of 2 to 9 times it
  };

  // `values`: what has to lie on it; those that are not above 0 are nobody's. More than `most`
  // decades below the largest the axis ends, and Holds says false.
  LogAxis(std::span<const double> values, int most, double first_at, double last_at);

  bool Holds(double value) const;
  double At(double value) const;  // of a value above 0, also beyond the axis
  double first() const;
  double last() const;
  // By value. 2 to 9 times a decade only where there are few decades.
  std::vector<Mark> Marks() const;

 private:
  int from_ = 0, to_ = 1;  // exponents
  double first_at_, last_at_;
};

// "1.5 T", "20 G", "0.25": three digits, with the prefix of SI; below 1 as a number.
std::string WithPrefix(double value);

}  // namespace ranktap::collector
