// What `ranktap run` is asked to capture, checked before the command starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ranktap::collector {

// "2%" or "2": percent, in millionths.
std::optional<uint32_t> ParseBudget(std::string_view text);

// Why the agent's Python would not take it (agent/sources/torch/python/schedule.py); empty: it
// would.
std::string WhyNoSchedule(std::string_view text);

// A driver of NVIDIA's, or a stand-in for it where the dynamic linker is told to look first.
bool HasDriver();

// The level for "auto": full where no driver is there, else kernels. Another name stays as it is.
// At level full a process is hooked when it loads PyTorch, so that nothing here has to guess which
// do.
std::string ResolvedLevel(const std::string& asked);

// What --sample is with "auto" where it is not given. Level full alone records nothing of a Python
// program that loads no PyTorch.
std::string SampleOfAuto();

// What "auto" became, or that a Python program below level full records little without a driver;
// empty: nothing is to be said. `program`: the file of the command.
std::string AdviceOnLevel(const std::string& asked, const std::string& program);

}  // namespace ranktap::collector
