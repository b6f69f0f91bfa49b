#include "collector/report/steps/moved_lines.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

namespace ranktap::collector {
namespace {

// "train.py:97 (main)": of these a function has as many as it has lines.
struct LineName {
  std::string file, function;  // "train.py", " (main)"
  int64_t number = 0;
};

std::optional<LineName> PartsOf(const std::string& name) {
  const size_t colon = name.find(':'), blank = name.find(' ', colon);
  if (blank == std::string::npos) return std::nullopt;
  LineName line{.file = name.substr(0, colon), .function = name.substr(blank)};
  std::from_chars(name.data() + colon + 1, name.data() + blank, line.number);
  return line;
}

using TimeByNumber = std::map<int64_t, double>;
using TimeByFunction = std::map<std::pair<std::string, std::string>, TimeByNumber>;

TimeByFunction LinesByFunction(const TimeByLine& times) {
  TimeByFunction functions;
  for (const auto& [name, ns] : times) {
    const std::optional<LineName> line = PartsOf(name);
    if (line) functions[{line->file, line->function}][line->number] = ns;
  }
  return functions;
}

int64_t DistanceOf(const TimeByNumber& before, const TimeByNumber& after) {
  std::map<int64_t, double> together;  // by distance
  for (const auto& [from, time] : before) {
    for (const auto& [to, time_after] : after) together[to - from] += std::min(time, time_after);
  }
  int64_t distance = 0;
  double most = together.contains(0) ? together[0] : 0;
  for (const auto& [moved, time] : together) {
    if (time > most) distance = moved, most = time;
  }
  return distance;
}

}  // namespace

std::map<std::string, std::string> FindMovedLines(const TimeByLine& before,
                                                  const TimeByLine& after) {
  const TimeByFunction there = LinesByFunction(after);
  std::map<std::string, std::string> moved;
  for (const auto& [function, lines] : LinesByFunction(before)) {
    const auto found = there.find(function);
    const int64_t distance = found == there.end() ? 0 : DistanceOf(lines, found->second);
    if (distance == 0) continue;
    for (const auto& [number, ns] : lines) {
      const auto name = [&function = function](int64_t of) {
        return function.first + ":" + std::to_string(of) + function.second;
      };
      moved[name(number)] = name(number + distance);
    }
  }
  return moved;
}

}  // namespace ranktap::collector
