// The options of `ranktap run`, and what they ask for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/cli/hang_alarm.h"
#include "collector/cli/keep.h"
#include "collector/cli/metrics.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/hello.pb.h"

namespace ranktap::collector {

struct RunOptions {
  std::string output, asked_level, level, duration, delay, log, stacks, sample, schedule, budget;
  uint32_t budget_ppm = 0, stacks_sample = 0;  // 0: not given
  bool print_env = false, no_preload = false, dormant = false;
  bool window_signals = false, flop_check = false, no_cuda = false, require = false;
  std::string tensors;
  MetricsOptions metrics;
  HangOptions hang;
  KeepOptions keep;
  uint64_t duration_ns = 0, delay_ns = 0;  // 0: none
  v1::Level wanted_level = v1::LEVEL_KERNELS;
  std::vector<std::string> metadata, command;
};

// An exit status where the command is not to be run.
std::optional<int> ParseRun(std::vector<std::string> arguments, RunOptions* options);

// The window that --delay and --duration ask for: every process hears of it before it begins, or
// when it comes.
std::optional<v1::LevelChange> WindowOf(const RunOptions& options);
v1::Level FirstLevel(const RunOptions& options);
// The environment of the command's agents.
std::vector<std::pair<std::string, std::string>> SettingsOf(const RunOptions& options);
std::map<std::string, std::string> MetadataOf(const RunOptions& options);

}  // namespace ranktap::collector
