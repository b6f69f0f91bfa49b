// Arrows between threads, each of two events. A part of kineto_tables.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "collector/import/kineto/kineto_event.h"
#include "collector/import/kineto/kineto_threads.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

class KinetoArrows {
 public:
  explicit KinetoArrows(KinetoThreads* threads) : threads_(threads) {}

  // One end of an arrow. False: it has no id or no time.
  bool Add(const KinetoEvent& event);
  // Adds the arrows with two ends; returns how many others there are.
  size_t AddTo(Trace* trace) const;

 private:
  struct Arrow {
    int64_t start = 0;
    uint16_t writer = 0;
    bool has_start = false, has_end = false;
    int64_t end = 0;
    uint16_t to_writer = 0;
  };
  KinetoThreads* threads_;
  std::map<std::pair<uint8_t, uint64_t>, Arrow> arrows_;  // by kind and id
};

}  // namespace ranktap::collector
