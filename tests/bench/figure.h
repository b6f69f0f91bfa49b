// How a benchmark says what it measured: one JSON object a line, which scripts/bench gathers.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ranktap::bench {

struct Figure {
  std::string name;
  double value;
  std::string unit;
  std::string floor_name;  // what the floor is; empty: there is none
  double floor = 0;
  double target = 0;      // 0: none stated
  bool at_least = false;  // the target is a minimum
  std::string note;
};

inline void Print(const Figure& figure) {
  std::printf(
      "{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", \"floor_name\": \"%s\", \"floor\": "
      "%.4g, \"target\": %.4g, \"at_least\": %s, \"note\": \"%s\"}\n",
      figure.name.c_str(), figure.value, figure.unit.c_str(), figure.floor_name.c_str(),
      figure.floor, figure.target, figure.at_least ? "true" : "false", figure.note.c_str());
  std::fflush(stdout);
}

inline double NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Of this process' processors: other programs on the machine do not count, as long as they leave
// memory and caches alone.
inline double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

template <typename Body>
double CpuSecondsOf(Body&& body) {
  const double start = CpuSeconds();
  body();
  return CpuSeconds() - start;
}

// Least of several: what is measured is the work, not who else was there.
template <typename Body>
double LeastCpuSeconds(int rounds, Body&& body) {
  double least = CpuSecondsOf(body);
  for (int i = 1; i < rounds; ++i) least = std::min(least, CpuSecondsOf(body));
  return least;
}

// Median over `rounds` of body's time, in ns.
template <typename Body>
double MedianNs(int rounds, Body&& body) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const double start = NowNs();
    body();
    times.push_back(NowNs() - start);
  }
  std::ranges::nth_element(times, times.begin() + rounds / 2);
  return times[static_cast<size_t>(rounds) / 2];
}

// Keeps the compiler from dropping what computed `value`.
template <typename T>
void Keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace ranktap::bench
