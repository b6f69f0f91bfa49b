#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// How much GPU time a thread had launched up to a moment: a range's share is a difference.
class LaunchedWork {
 public:
  explicit LaunchedWork(const Trace& trace) : writers_(trace.writers.size()) {
    std::vector<int64_t> by_call(trace.api_calls.size(), 0);
    Add(trace.kernels, &by_call);
    Add(trace.copies, &by_call);
    Add(trace.memsets, &by_call);
    Add(trace.graph_launches, &by_call);
    const ApiCalls& calls = trace.api_calls;
    std::vector<size_t> counts(writers_.size());
    for (size_t i = 0; i < by_call.size(); ++i) {
      if (by_call[i] != 0 && calls.writer[i] < counts.size()) ++counts[calls.writer[i]];
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      writers_[i].start.reserve(counts[i]);
      writers_[i].total.reserve(counts[i]);
    }
    for (size_t i = 0; i < by_call.size(); ++i) {
      if (by_call[i] == 0 || calls.writer[i] >= writers_.size()) continue;
      Launches& launches = writers_[calls.writer[i]];
      const int64_t before = launches.total.empty() ? 0 : launches.total.back();
      launches.start.push_back(calls.start[i]);
      launches.total.push_back(before + by_call[i]);
    }
  }

  int64_t Between(uint16_t writer, int64_t start, int64_t end) const {
    if (writer >= writers_.size()) return 0;
    return Before(writers_[writer], end) - Before(writers_[writer], start);
  }

 private:
  struct Launches {
    std::vector<int64_t> start, total;  // total: of all launches up to and with this one
  };
  static void Add(const DeviceWork& work, std::vector<int64_t>* by_call) {
    for (size_t i = 0; i < work.size(); ++i) {
      if (work.launch[i] != kNone) (*by_call)[work.launch[i]] += work.end[i] - work.start[i];
    }
  }
  static int64_t Before(const Launches& launches, int64_t time) {
    const auto at = std::lower_bound(launches.start.begin(), launches.start.end(), time);
    return at == launches.start.begin() ? 0 : launches.total[at - launches.start.begin() - 1];
  }

  std::vector<Launches> writers_;
};

}  // namespace ranktap::collector
