#include "collector/cli/run_stacks.h"

#include <fmt/core.h>
#include <unistd.h>

#include "collector/report/human_units.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {

void AddStackOptions(Arguments* app, std::string* stacks, uint32_t* stacks_sample,
                     std::string* sample) {
  app->Add("--stacks", stacks, "native stacks: off, launch, sync, all; auto (all at level full)")
      .Suggests({"auto", "off", "launch", "sync", "all"});
  app->Add("--stacks-sample", stacks_sample, "stack for one call in N (default 1)")
      .From(1, 1'000'000);
  app->Add("--sample", sample,
           "look where all Python threads are this often: 10ms (the default at level full), or off")
      .Suggests({"off", "10ms"});
}

std::optional<uint64_t> SamplePeriod(const std::string& sample, bool is_default) {
  constexpr uint64_t kDefaultNs = 10'000'000, kLeastNs = 1'000'000, kMostNs = 10'000'000'000;
  if (sample.empty()) return is_default ? kDefaultNs : 0;
  if (sample == "off" || sample == "0") return 0;
  const auto period = ParseDuration(sample);
  if (period && *period >= kLeastNs && *period <= kMostNs) return *period;
  Complain(fmt::format("--sample '{}' is not a time from 1ms to 10s, nor off", sample));
  return std::nullopt;
}

void AddSampleSettings(const std::string& sample, bool is_default,
                       std::vector<std::pair<std::string, std::string>>* settings) {
  const uint64_t period_ns = SamplePeriod(sample, is_default).value_or(0);
  if (period_ns == 0) return;
  settings->emplace_back("RANKTAP_SAMPLE_US", std::to_string(period_ns / 1000));
  if (!sample.empty()) settings->emplace_back("RANKTAP_RUN_PID", std::to_string(::getpid()));
}

}  // namespace ranktap::collector
