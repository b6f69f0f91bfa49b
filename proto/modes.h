// The small enums of hello.proto and control.proto, for code that must not see protobuf's generated
// classes. A contract test compares the numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ranktap::proto {

// How much is captured (docs/architecture.md).
enum class Level : uint8_t {
  kUnknown = 0,
  kDormant = 1,   // nothing armed
  kRanges = 2,    // NVTX
  kKernels = 3,   // and CUPTI: kinds, callbacks, graphs as a whole
  kFull = 4,      // and stacks, library shims, framework operators, graph nodes
  kCounters = 5,  // not there yet
};

inline constexpr std::array<std::string_view, 6> kLevelNames = {"unknown", "dormant", "ranges",
                                                                "kernels", "full",    "counters"};

constexpr std::string_view NameOf(Level level) { return kLevelNames[static_cast<size_t>(level)]; }

constexpr std::optional<Level> ParseLevel(std::string_view name) {
  for (size_t i = 1; i < kLevelNames.size(); ++i) {
    if (name == kLevelNames[i]) return static_cast<Level>(i);
  }
  return std::nullopt;
}

// At which calls native stacks are taken (RANKTAP_STACKS).
enum class StackPolicy : uint8_t {
  kAuto = 0,  // all at level full, off below
  kOff = 1,
  kLaunch = 2,  // kernel and graph launches
  kSync = 3,    // and synchronisations
  kAll = 4,     // and allocations and copies
};

inline constexpr std::array<std::string_view, 5> kStackPolicyNames = {"auto", "off", "launch",
                                                                      "sync", "all"};

constexpr std::optional<StackPolicy> ParseStackPolicy(std::string_view name) {
  for (size_t i = 0; i < kStackPolicyNames.size(); ++i) {
    if (name == kStackPolicyNames[i]) return static_cast<StackPolicy>(i);
  }
  return std::nullopt;
}

// By which way the agent came into the process.
enum class LoadedBy : uint8_t { kUnknown = 0, kEnvironment = 1, kPreload = 2, kAttach = 3 };

// Why capture was off on purpose.
enum class GapReason : uint8_t {
  kUnknown = 0,
  kLevel = 1,
  kOtherProfiler = 2,
  kFork = 3,
  kError = 4,
  kExit = 5,
  kBudget = 6,
  kConfined = 7,
};

enum class HostClockKind : uint8_t { kUnknown = 0, kTsc = 1, kMonotonicRaw = 2 };

}  // namespace ranktap::proto
