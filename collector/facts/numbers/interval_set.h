// Sets of moments, as lists of intervals that are sorted, disjoint and not empty.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "collector/facts/numbers/interval_union.h"

namespace ranktap::collector {

// Adds an interval that begins no earlier than the last of the set; those that touch become one.
inline void Append(const Interval& interval, std::vector<Interval>* set) {
  if (interval.second <= interval.first) return;
  if (!set->empty() && interval.first <= set->back().second) {
    set->back().second = std::max(set->back().second, interval.second);
  } else {
    set->push_back(interval);
  }
}

// Sorts and merges; intervals that touch become one.
inline std::vector<Interval> Merged(std::vector<Interval> intervals) {
  if (!std::is_sorted(intervals.begin(), intervals.end())) {
    std::sort(intervals.begin(), intervals.end());
  }
  size_t kept = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Interval interval = intervals[i];
    if (interval.second <= interval.first) continue;
    if (kept > 0 && interval.first <= intervals[kept - 1].second) {
      intervals[kept - 1].second = std::max(intervals[kept - 1].second, interval.second);
    } else {
      intervals[kept++] = interval;
    }
  }
  intervals.resize(kept);
  return intervals;
}

inline int64_t Length(const std::vector<Interval>& set) {
  int64_t length = 0;
  for (const auto& [start, end] : set) length += end - start;
  return length;
}

inline std::vector<Interval> Intersection(const std::vector<Interval>& a,
                                          const std::vector<Interval>& b) {
  std::vector<Interval> both;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int64_t start = std::max(a[i].first, b[j].first);
    const int64_t end = std::min(a[i].second, b[j].second);
    if (start < end) both.emplace_back(start, end);
    a[i].second < b[j].second ? ++i : ++j;
  }
  return both;
}

// Of their intersection, which is not made.
inline int64_t LengthInBoth(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  int64_t length = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int64_t start = std::max(a[i].first, b[j].first);
    const int64_t end = std::min(a[i].second, b[j].second);
    if (start < end) length += end - start;
    a[i].second < b[j].second ? ++i : ++j;
  }
  return length;
}

inline std::vector<Interval> Difference(const std::vector<Interval>& a,
                                        const std::vector<Interval>& b) {
  std::vector<Interval> rest;
  size_t j = 0;
  for (const Interval& interval : a) {
    int64_t from = interval.first;
    while (j < b.size() && b[j].second <= from) ++j;
    for (size_t k = j; k < b.size() && b[k].first < interval.second; ++k) {
      if (b[k].first > from) rest.emplace_back(from, b[k].first);
      from = std::max(from, b[k].second);
    }
    if (from < interval.second) rest.emplace_back(from, interval.second);
  }
  return rest;
}

// How much of [start, end) lies in `set`, for starts that only grow. `*at`: 0 at first.
inline int64_t LengthWithin(const std::vector<Interval>& set, int64_t start, int64_t end,
                            size_t* at) {
  while (*at < set.size() && set[*at].second <= start) ++*at;
  if (*at < set.size() && set[*at].first <= start && end <= set[*at].second && start < end) {
    return end - start;  // mostly
  }
  int64_t length = 0;
  for (size_t i = *at; i < set.size() && set[i].first < end; ++i) {
    length += std::max<int64_t>(0, std::min(end, set[i].second) - std::max(start, set[i].first));
  }
  return length;
}

// The part of `set` within [start, end).
inline std::vector<Interval> Within(const std::vector<Interval>& set, int64_t start, int64_t end) {
  std::vector<Interval> part;
  auto at = std::lower_bound(set.begin(), set.end(), start,
                             [](const Interval& a, int64_t time) { return a.second <= time; });
  for (; at != set.end() && at->first < end; ++at) {
    part.emplace_back(std::max(at->first, start), std::min(at->second, end));
  }
  return part;
}

}  // namespace ranktap::collector
