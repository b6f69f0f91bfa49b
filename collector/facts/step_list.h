// One step (iteration) of a training loop, and those of a trace; steps.h finds them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

struct Step {
  int64_t number = 0;
  int64_t start = 0, end = 0;  // on the host; see StepList::on_device
  // Not counted in means: at most three first steps that take over 1.5 medians, where there are
  // three or more. With two nobody can say which is the usual one.
  bool warm_up = false;
  int64_t length() const { return end - start; }
};

struct StepList {
  std::vector<Step> list;  // by start, not overlapping
  std::string source;  // "ProfilerStep", "NVTX train_step", "period of 312 kernels"; empty: none
  // Times are those of the kernels themselves: one launch, of a graph, ran several steps.
  bool on_device = false;
  // We know then that something repeats, and not that it is a training step: a model's layers
  // repeat too.
  bool is_period = false;
  bool is_call = false;  // forwards of a program in which nothing trains
  // Evaluation before few of the steps, which begin after it: forwards, and their time with what
  // lies between them.
  int64_t evaluations = 0, evaluation_ns = 0;
  // "step", "period" or "call"
  std::string_view noun() const { return is_period ? "period" : is_call ? "call" : "step"; }
};

}  // namespace ranktap::collector
