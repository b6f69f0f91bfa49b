// Lines of a program that an edit above them has moved: compared by their numbers, each would be
// gone from one run and new in the other.
#pragma once

#include <map>
#include <string>

namespace ranktap::collector {

// Time a step, by HostSamples::Describe's text: "train.py:97 (main)".
using TimeByLine = std::map<std::string, double>;

// The text in `after` of lines of `before`. Those of a function move together: by the distance that
// brings the most of their time to lines that `after` has, if that is more than where they stand.
std::map<std::string, std::string> FindMovedLines(const TimeByLine& before,
                                                  const TimeByLine& after);

}  // namespace ranktap::collector
