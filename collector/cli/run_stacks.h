// Options of `ranktap run` about stacks: native ones at calls of CUDA, and how often the agent
// looks where Python threads are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/terminal/arguments.h"

namespace ranktap::collector {

void AddStackOptions(Arguments* app, std::string* stacks, uint32_t* stacks_sample,
                     std::string* sample);

// In nanoseconds, 0 for off. nullopt, after a complaint: it is no time. Not given: 10 ms where
// `is_default`, else off.
std::optional<uint64_t> SamplePeriod(const std::string& sample, bool is_default);

// The agent's variables. A program that does nothing else that is recorded leaves a file only where
// somebody asked for samples.
void AddSampleSettings(const std::string& sample, bool is_default,
                       std::vector<std::pair<std::string, std::string>>* settings);

}  // namespace ranktap::collector
