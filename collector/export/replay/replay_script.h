// The part of a replay's script that is the same for all runs: replay.py.
#pragma once

#include <string_view>

namespace ranktap::collector {

// Defines main(data), which takes the texts that replay_exporter.cc writes.
std::string_view ReplayScript();

}  // namespace ranktap::collector
