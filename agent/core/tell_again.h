// How often the collector's file was given names anew (`--keep`): who tells by other ways than the
// dictionary follows.
// Runs on: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace ranktap::agent {

inline constinit std::atomic<uint32_t> g_tell_again{0};

}  // namespace ranktap::agent
