// Numbers as ncu prints them by the locale of who ran it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace ranktap::collector {

// Which of '.' and ',' begins the fraction, told by all numbers of a file.
class NumberStyle {
 public:
  // False: it contradicts what an earlier one said, or is no number.
  bool Learn(std::string_view number);
  // nullopt: it is no number.
  std::optional<double> Read(std::string_view number) const;
  bool is_ambiguous() const { return point_ == '\0' && has_three_; }

 private:
  char point_ = '\0';
  bool has_three_ = false;  // "98.304"
};

// What one of a unit is in B, ns, % or counts; nullopt: ranktap does not know the unit.
std::optional<double> ScaleOfUnit(std::string_view unit);

}  // namespace ranktap::collector
